"""The codec `h5zarr.filter`: one HDF5 filter, by name, with its settings as the configuration.

One codec serves all filters, so a new filter needs no entry point of its own, whichever package it comes from.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numcodecs.abc import Codec
from numcodecs.compat import ensure_bytes, ndarray_copy
from zarr.abc.codec import BytesBytesCodec

from h5zarr.filters.table import FilterKind, find_kind_by_name
from h5zarr.filters.toolkit import OWN_CODEC, FilterSettings, configuration_of

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer
    from zarr.core.common import JSON

_GREATEST_CHUNK_NBYTES = 2**32 - 1  # the limit of HDF5


@dataclass(frozen=True, slots=True)
class FilterStep:
    """A filter with its settings: what a codec does to a chunk. `label` names it in messages."""

    kind: FilterKind
    settings: FilterSettings

    @classmethod
    def find(cls, configuration: Mapping[str, Any]) -> Self:
        """Return the filter that the setting `filter` names, with the other settings. Raises ValueError."""
        settings = dict(configuration)
        name = settings.pop("filter", None)
        kind = find_kind_by_name(name) if isinstance(name, str) else None
        if kind is None:
            raise ValueError(f"codec {OWN_CODEC} does not know filter {name!r}: install the package that provides it")
        return cls.make(kind, settings, f"codec {OWN_CODEC} ({name})")

    @classmethod
    def make(cls, kind: FilterKind, settings: Mapping[str, Any], label: str) -> Self:
        """Return the filter with these settings. Raises ValueError if they are unknown, missing or impossible."""
        known = {field.name for field in fields(kind.settings)}  # type: ignore[arg-type]
        if not set(settings) <= known:
            raise ValueError(f"{label} has no setting {', '.join(sorted(set(settings) - known))}")
        try:
            return cls(kind, kind.settings(**settings))
        except TypeError as error:
            raise ValueError(f"{label} lacks settings: {error}") from error

    def decode(self, content: bytes, nbytes: int) -> bytes:
        return self.kind.decode(content, self.settings.to_values(), nbytes)

    def encode(self, content: bytes) -> bytes:
        return self.kind.encode(content, self.settings.to_values())


def _configuration(step: FilterStep) -> dict[str, Any]:
    return {"filter": step.kind.name, **configuration_of(step.settings)}


@dataclass(frozen=True, init=False, repr=False)
class FilterCodec(BytesBytesCodec):
    """The codec for Zarr v3. Its arguments are `filter` and the fields of that filter's `Settings`."""

    is_fixed_size = False
    codec_name: ClassVar[str] = OWN_CODEC
    step: FilterStep

    def __init__(self, **configuration: Any) -> None:
        object.__setattr__(self, "step", self._find(configuration))

    def _find(self, configuration: Mapping[str, Any]) -> FilterStep:
        return FilterStep.find(configuration)

    def configuration(self) -> dict[str, Any]:
        """Return the configuration for JSON metadata."""
        return _configuration(self.step)

    def __hash__(self) -> int:
        return hash((self.codec_name, self.step.kind.name, self.step.settings.to_values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_arguments(self.configuration())})"

    @classmethod
    def from_dict(cls, data: dict[str, JSON]) -> Self:
        if data.get("name") != cls.codec_name:
            raise ValueError(f"this is codec {cls.codec_name}, not {data.get('name')!r}")
        configuration = data.get("configuration") or {}
        if not isinstance(configuration, dict):
            raise ValueError(f"the configuration of codec {cls.codec_name} must be an object, not {configuration!r}")
        return cls(**configuration)

    def to_dict(self) -> dict[str, JSON]:
        return {"name": self.codec_name, "configuration": self.configuration()}

    def _decode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        decoded = self.step.decode(chunk_bytes.to_bytes(), _chunk_nbytes(chunk_spec))
        return chunk_spec.prototype.buffer.from_bytes(decoded)

    async def _decode_single(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        return await asyncio.to_thread(self._decode_sync, chunk_bytes, chunk_spec)

    def _encode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        return chunk_spec.prototype.buffer.from_bytes(self.step.encode(chunk_bytes.to_bytes()))

    async def _encode_single(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        return await asyncio.to_thread(self._encode_sync, chunk_bytes, chunk_spec)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        raise NotImplementedError


class FilterCodecV2(Codec):  # type: ignore[misc]
    """The codec for Zarr v2. It does not pass the size of a chunk to codecs, so the limit is that of HDF5."""

    codec_id = OWN_CODEC

    def __init__(self, **configuration: Any) -> None:
        self._step = self._find(configuration)

    def _find(self, configuration: Mapping[str, Any]) -> FilterStep:
        return FilterStep.find(configuration)

    def configuration(self) -> dict[str, Any]:
        """Return the configuration for JSON metadata."""
        return _configuration(self._step)

    def get_config(self) -> dict[str, Any]:
        return {"id": self.codec_id, **self.configuration()}

    def encode(self, buf: Any) -> bytes:
        return self._step.encode(ensure_bytes(buf))

    def decode(self, buf: Any, out: Any = None) -> Any:
        nbytes = _GREATEST_CHUNK_NBYTES if out is None else memoryview(out).nbytes
        return ndarray_copy(self._step.decode(ensure_bytes(buf), nbytes), out)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_arguments(self.configuration())})"


def _arguments(configuration: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in configuration.items())


def _chunk_nbytes(spec: ArraySpec) -> int:
    """Return the size of a chunk; the limit of HDF5 for types of variable length."""
    element_nbytes: int | None = getattr(spec.dtype, "item_size", None)
    return _GREATEST_CHUNK_NBYTES if element_nbytes is None else math.prod(spec.shape) * element_nbytes
