"""The codec `h5zarr.elements`: converts elements that numpy has no type for to types that readers know.

Examples are integers of odd precision, strings padded with spaces or followed by other bytes, unusual floats, and
records of big-endian numbers. The configuration is the datatype in the file: the content of its datatype message (HDF5
File Format Specification, IV.A.2.d), in base64. This codec comes directly after `bytes`, before the filters.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from h5zarr.codecs.filter_codec import FilterCodec, FilterCodecV2, FilterStep
from h5zarr.errors import H5ZarrError
from h5zarr.filters.table import FilterKind
from h5zarr.filters.toolkit import configuration_of
from h5zarr.hdf5.messages.datatype import decode_datatype
from h5zarr.netcdf4.conversion import convert_elements
from h5zarr.netcdf4.element_forms import TEXT, interpret_element
from h5zarr.zarr_model.codecs import ELEMENTS_CODEC


@dataclass(frozen=True, slots=True)
class Settings:
    """`datatype`: the content of the datatype message, in base64."""

    datatype: str

    def __post_init__(self) -> None:
        try:
            form = interpret_element(decode_datatype(bytes(self.to_values())))
        except H5ZarrError as error:
            raise ValueError(f"this codec cannot read the datatype: {error}") from error
        if form.dtype == TEXT:
            raise ValueError("datatype has variable length, which this codec cannot read")

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        return cls(b64encode(bytes(values)).decode())

    def to_values(self) -> tuple[int, ...]:
        try:
            return tuple(b64decode(self.datatype, validate=True))
        except (Error, TypeError) as error:
            raise ValueError(f"datatype must be base64, not {self.datatype!r}") from error


def decode(content: bytes, values: tuple[int, ...], nbytes: int) -> bytes:
    """Return the converted elements; `values` are the bytes of the datatype message."""
    return convert_elements(bytes(values), content).tobytes()


_KIND = FilterKind(-1, "elements", __name__)  # works like a filter, but HDF5 has no number for it


def _find(configuration: Mapping[str, Any]) -> FilterStep:
    return FilterStep.make(_KIND, configuration, f"codec {ELEMENTS_CODEC}")


class Elements(FilterCodec):
    """The codec for Zarr v3. `datatype`: the content of the HDF5 datatype message, in base64."""

    codec_name = ELEMENTS_CODEC

    def _find(self, configuration: Mapping[str, Any]) -> FilterStep:
        return _find(configuration)

    def configuration(self) -> dict[str, Any]:
        return configuration_of(self.step.settings)


class ElementsV2(FilterCodecV2):
    """The codec for Zarr v2."""

    codec_id = ELEMENTS_CODEC

    def _find(self, configuration: Mapping[str, Any]) -> FilterStep:
        return _find(configuration)

    def configuration(self) -> dict[str, Any]:
        return configuration_of(self._step.settings)
