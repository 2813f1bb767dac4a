"""What the codecs share: a filter, and its settings as the configuration."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from numcodecs.abc import Codec
from numcodecs.compat import ensure_bytes, ndarray_copy
from zarr.abc.codec import BytesBytesCodec

from h5zarr.filters.settings import FilterSettings, configuration_of

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer
    from zarr.core.common import JSON

_GREATEST_CHUNK_NBYTES = 2**32 - 1  # HDF5 has no larger ones


class FilterModule(Protocol):
    """A module of `h5zarr.filters`."""

    @property
    def Settings(self) -> type[FilterSettings]: ...
    @property
    def decode(self) -> Any: ...
    @property
    def encode(self) -> Any: ...


def _settings(filter: FilterModule, name: str, configuration: dict[str, Any]) -> FilterSettings:
    """Return the settings that a configuration names. Raises ValueError where they cannot be."""
    known = {field.name for field in fields(filter.Settings)}  # type: ignore[arg-type]
    if not set(configuration) <= known:
        unknown = ", ".join(sorted(set(configuration) - known))
        raise ValueError(f"codec {name} has no setting {unknown}")
    try:
        return filter.Settings(**configuration)
    except TypeError as error:
        raise ValueError(f"codec {name} lacks settings: {error}") from error


@dataclass(frozen=True, init=False)
class FilterCodec(BytesBytesCodec):
    """A Zarr v3 codec of one HDF5 filter. Its arguments are the fields of the filter's `Settings`."""

    is_fixed_size = False
    codec_name: ClassVar[str]
    filter: ClassVar[FilterModule]
    settings: FilterSettings

    def __init_subclass__(cls, *, name: str, filter: FilterModule) -> None:
        super().__init_subclass__()
        cls.codec_name = name
        cls.filter = filter

    def __init__(self, **configuration: Any) -> None:
        object.__setattr__(self, "settings", _settings(self.filter, self.codec_name, configuration))

    def __hash__(self) -> int:
        return hash((self.codec_name, self.settings.to_values()))

    @classmethod
    def from_dict(cls, data: dict[str, JSON]) -> Self:
        if data.get("name") != cls.codec_name:
            raise ValueError(f"this is codec {cls.codec_name}, not {data.get('name')!r}")
        configuration = data.get("configuration") or {}
        if not isinstance(configuration, dict):
            raise ValueError(f"the configuration of codec {cls.codec_name} must be an object, not {configuration!r}")
        return cls(**configuration)

    def to_dict(self) -> dict[str, JSON]:
        return {"name": self.codec_name, "configuration": configuration_of(self.settings)}

    def _decode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        decoded = self.filter.decode(chunk_bytes.to_bytes(), self.settings.to_values(), _chunk_nbytes(chunk_spec))
        return chunk_spec.prototype.buffer.from_bytes(decoded)

    async def _decode_single(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        return await asyncio.to_thread(self._decode_sync, chunk_bytes, chunk_spec)

    def _encode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        encoded = self.filter.encode(chunk_bytes.to_bytes(), self.settings.to_values())
        return chunk_spec.prototype.buffer.from_bytes(encoded)

    async def _encode_single(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        return await asyncio.to_thread(self._encode_sync, chunk_bytes, chunk_spec)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        raise NotImplementedError


class FilterNumcodec(Codec):  # type: ignore[misc]
    """The same for Zarr v2, which does not say how large a chunk is: decoders are bounded by what HDF5 allows."""

    filter: ClassVar[FilterModule]

    def __init_subclass__(cls, *, name: str, filter: FilterModule) -> None:
        super().__init_subclass__()
        cls.codec_id = name
        cls.filter = filter

    def __init__(self, **configuration: Any) -> None:
        self._settings = _settings(self.filter, str(self.codec_id), configuration)

    def get_config(self) -> dict[str, Any]:
        return {"id": self.codec_id, **configuration_of(self._settings)}

    def encode(self, buf: Any) -> bytes:
        encoded: bytes = self.filter.encode(ensure_bytes(buf), self._settings.to_values())
        return encoded

    def decode(self, buf: Any, out: Any = None) -> Any:
        nbytes = _GREATEST_CHUNK_NBYTES if out is None else memoryview(out).nbytes
        decoded = self.filter.decode(ensure_bytes(buf), self._settings.to_values(), nbytes)
        return ndarray_copy(decoded, out)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in configuration_of(self._settings).items())})"


def _chunk_nbytes(spec: ArraySpec) -> int:
    """Return the size of a chunk. Types of variable length have none that can be known."""
    element_nbytes: int | None = getattr(spec.dtype, "item_size", None)
    return _GREATEST_CHUNK_NBYTES if element_nbytes is None else math.prod(spec.shape) * element_nbytes
