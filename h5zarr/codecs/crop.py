"""The codec `h5zarr.crop`: reads chunks whose stored shape is larger than their shape in the grid.

HDF5 stores every chunk in full, even the last one of a file, which extends past the end of the data. If an array is
joined from several files, that chunk is in the middle, and a rectilinear grid contains only the part with data. This
codec comes first. It passes the stored shape to the codecs after it, and crops their results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from zarr.abc.codec import ArrayArrayCodec

from h5zarr.errors import MalformedFile
from h5zarr.zarr_model.codecs import CROP_CODEC, encode_crop, split_crop

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import NDBuffer
    from zarr.core.common import JSON


@dataclass(frozen=True)
class Crop(ArrayArrayCodec):
    """The codec for Zarr v3. `stored_shape`: the shape in which every chunk is stored."""

    is_fixed_size = False
    stored_shape: tuple[int, ...]

    def __init__(self, stored_shape: Sequence[int]) -> None:
        try:
            found, _ = split_crop([encode_crop(stored_shape)], len(stored_shape))
        except MalformedFile as error:
            raise ValueError(str(error)) from error
        object.__setattr__(self, "stored_shape", found)

    @classmethod
    def from_dict(cls, data: dict[str, JSON]) -> Self:
        configuration = data.get("configuration")
        if data.get("name") != CROP_CODEC or not isinstance(configuration, dict):
            raise ValueError(f"this is not codec {CROP_CODEC} with a configuration: {data!r}")
        stored_shape: Any = configuration.get("stored_shape")
        if not isinstance(stored_shape, list | tuple) or set(configuration) != {"stored_shape"}:
            raise ValueError(f"codec {CROP_CODEC} has one setting, stored_shape, which is a list of lengths")
        return cls(stored_shape)

    def to_dict(self) -> dict[str, JSON]:
        return encode_crop(self.stored_shape)  # type: ignore[no-any-return]

    def resolve_metadata(self, chunk_spec: ArraySpec) -> ArraySpec:
        """Return the description of a chunk for the codecs after this one.

        zarr also calls it with the shape of the whole array, so only decoding can detect a shape that does not fit.
        """
        if len(chunk_spec.shape) != len(self.stored_shape):
            ranks = len(self.stored_shape), len(chunk_spec.shape)
            raise ValueError(f"codec {CROP_CODEC}: stored_shape has rank {ranks[0]}, but the array has rank {ranks[1]}")
        return replace(chunk_spec, shape=self.stored_shape)

    def _decode_sync(self, chunk_array: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        shape = chunk_spec.shape
        if any(wanted > stored for wanted, stored in zip(shape, self.stored_shape, strict=True)):
            raise ValueError(f"codec {CROP_CODEC}: a chunk of {shape} is not part of one of {self.stored_shape}")
        return chunk_array[tuple(slice(0, length) for length in shape)]

    async def _decode_single(self, chunk_array: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        return self._decode_sync(chunk_array, chunk_spec)

    def _encode_sync(self, chunk_array: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        dtype = chunk_array.dtype
        whole = chunk_spec.prototype.nd_buffer.create(
            shape=self.stored_shape, dtype=dtype, order=chunk_spec.order, fill_value=chunk_spec.fill_value
        )
        whole[tuple(slice(0, length) for length in chunk_array.shape)] = chunk_array
        return whole

    async def _encode_single(self, chunk_array: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        return self._encode_sync(chunk_array, chunk_spec)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        raise NotImplementedError
