"""Elements of an HDF5 type that numpy has no type for, turned into ones that readers know.

Odd precisions and offsets, strings padded with blanks or with something behind their end, unusual floats, records of
big-endian numbers. The configuration is the datatype as the file states it: the content of its datatype message
(HDF5 File Format Specification, IV.A.2.d), in base64. This codec stands first behind `bytes`, before the filters.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error
from dataclasses import dataclass
from typing import ClassVar, Self

from h5zarr.codecs.base import FilterCodec, FilterNumcodec
from h5zarr.errors import H5ZarrError
from h5zarr.hdf5.messages.datatype import decode_datatype
from h5zarr.netcdf4.conversion import convert_elements
from h5zarr.netcdf4.elements import TEXT, interpret_element


@dataclass(frozen=True, slots=True)
class Settings:
    """`datatype`: the content of the datatype message, in base64."""

    filter_name: ClassVar[str] = "elements"
    datatype: str

    def __post_init__(self) -> None:
        try:
            form = interpret_element(decode_datatype(bytes(self.to_values())))
        except H5ZarrError as error:
            raise ValueError(f"datatype is none that this codec reads: {error}") from error
        if form.dtype == TEXT:
            raise ValueError("datatype has variable length, which this codec does not read")

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        return cls(b64encode(bytes(values)).decode())

    def to_values(self) -> tuple[int, ...]:
        try:
            return tuple(b64decode(self.datatype, validate=True))
        except (Error, TypeError) as error:
            raise ValueError(f"datatype must be base64, not {self.datatype!r}") from error


class _Conversion:
    """The shape of a filter's module."""

    Settings = Settings

    @staticmethod
    def decode(content: bytes, values: tuple[int, ...], nbytes: int) -> bytes:
        return convert_elements(bytes(values), content).tobytes()

    @staticmethod
    def encode(content: bytes, values: tuple[int, ...]) -> bytes:
        raise NotImplementedError("codec h5zarr.elements reads only: write in a type that Zarr has")


class Elements(FilterCodec, name="h5zarr.elements", filter=_Conversion()):
    """`datatype`: the content of the HDF5 datatype message, in base64."""


class ElementsV2(FilterNumcodec, name="h5zarr.elements", filter=_Conversion()):
    """The same for Zarr v2."""
