"""Filter 32026, blosc2: one Blosc2 frame with one chunk, which may be a b2nd array of the chunk's shape.

Client data: version of the filter, bytes of a block (0: the library's choice), size of an element, bytes of a chunk,
level, shuffle, compressor, and for b2nd the rank and shape of a chunk. A frame describes itself, so
decoding needs none of them. Source: blosc2_filter.c of hdf5-blosc2.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from h5zarr.errors import MalformedFile
from h5zarr.filters import blosc
from h5zarr.filters.blosc import SHUFFLES
from h5zarr.filters.toolkit import Values, check, check_choice, check_room, described, load, settings_of

_FILTER_VERSION = 1
_FRAME_MAGIC = b"\x9e\xa8b2frame\x00"
_FRAME_NBYTES_AT = 16
_CHUNK_SIZES = struct.Struct("<4x3I")  # sizes of the uncompressed chunk, of a block, and of the stored chunk
_GREATEST_RANK = 8
_ARRAY_NAMES = ("b2nd", "caterva")  # the second is an older name
_DEFAULTS = (5, 1, 0)  # level, shuffle, compressor
COMPRESSORS = {code: name for code, name in enumerate(blosc.COMPRESSORS) if name != "snappy"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The compression of chunks, which only encoding needs."""

    element_nbytes: int
    level: int = 5
    shuffle: str = "shuffle"
    compressor: str = "blosclz"
    block_nbytes: int = 0

    def __post_init__(self) -> None:
        check(self.element_nbytes, "element_nbytes", 1, 2**31 - 1)
        check(self.level, "level", 0, 9)
        check(self.block_nbytes, "block_nbytes", 0, 2**31 - 1)
        check_choice(self.shuffle, "shuffle", SHUFFLES)
        check_choice(self.compressor, "compressor", tuple(COMPRESSORS.values()))

    @classmethod
    def from_values(cls, values: Values) -> Self:
        _, block_nbytes, element_nbytes, _, level, shuffle, compressor = described(values, "blosc2", 4, _DEFAULTS)
        if shuffle >= len(SHUFFLES) or compressor not in COMPRESSORS:
            raise ValueError(f"shuffle {shuffle} or compressor {compressor} is not known")
        return cls(
            element_nbytes=element_nbytes,
            level=level,
            shuffle=SHUFFLES[shuffle],
            compressor=COMPRESSORS[compressor],
            block_nbytes=block_nbytes,
        )

    def to_values(self) -> Values:
        code = next(code for code, name in COMPRESSORS.items() if name == self.compressor)
        shuffle = SHUFFLES.index(self.shuffle)
        return (_FILTER_VERSION, self.block_nbytes, self.element_nbytes, 0, self.level, shuffle, code)


def decode(content: bytes, values: Values, nbytes: int) -> bytes:
    """Return the decompressed content."""
    if content[:10] != _FRAME_MAGIC:
        raise MalformedFile(f"blosc2 frame begins with {content[:10]!r}, expected {_FRAME_MAGIC!r}")
    stored = int.from_bytes(content[_FRAME_NBYTES_AT : _FRAME_NBYTES_AT + 8], "big")
    if stored != len(content):
        raise MalformedFile(f"blosc2 frame claims to have {stored} bytes, but there are {len(content)}")
    blosc2 = load("blosc2", "blosc2")
    try:
        return _decompressed(blosc2, content, nbytes)
    except MalformedFile:
        raise
    except Exception as error:  # the library may raise anything for damaged metadata
        raise MalformedFile(f"blosc2 frame does not decompress: {error}") from error


def _decompressed(blosc2: Any, content: bytes, nbytes: int) -> bytes:
    """Return the frame's only chunk.

    The library could decode b2nd, too, but it trusts sizes: damaged frames make it allocate, and keep, gigabytes.
    """
    frame = blosc2.schunk_from_cframe(content)
    name = next((name for name in _ARRAY_NAMES if name in frame.meta), None)
    shape, block_shape = _partition(frame.meta[name]) if name else ((), ())
    chunk = frame.get_chunk(0)
    given, block_nbytes, stored = _CHUNK_SIZES.unpack_from(chunk)
    # A chunk of b2nd is padded to whole blocks, which can nearly double each dimension.
    check_room(given >> len(shape), nbytes, "blosc2 chunk")
    if block_nbytes > max(given, 1) or stored != len(chunk):
        raise MalformedFile(f"blosc2 chunk has {len(chunk)} of {stored} bytes, and blocks of {block_nbytes}")
    plain = blosc2.decompress2(chunk)
    return _joined(plain, shape, block_shape) if shape else bytes(plain)


def _partition(description: Sequence[Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of a b2nd array and of its blocks. Source: README_B2ND_METALAYER.rst of c-blosc2."""
    _, rank, shape, _, block_shape = description[:5]
    if not 1 <= rank == len(shape) == len(block_shape) <= _GREATEST_RANK or min(*shape, *block_shape) < 1:
        raise MalformedFile(f"blosc2 frame has an array of shape {shape} in blocks of {block_shape}")
    return tuple(shape), tuple(block_shape)


def _joined(plain: bytes, shape: tuple[int, ...], block_shape: tuple[int, ...]) -> bytes:
    """Return the elements of an array in row-major order. `plain` has them block by block."""
    grid = tuple(-(-length // block) for length, block in zip(shape, block_shape, strict=True))
    blocks = np.frombuffer(plain, np.uint8).reshape(*grid, *block_shape, -1)
    rank = len(shape)
    axes = [axis for pair in zip(range(rank), range(rank, 2 * rank), strict=True) for axis in pair]
    padded = blocks.transpose(*axes, 2 * rank)
    whole = padded.reshape(*(count * block for count, block in zip(grid, block_shape, strict=True)), -1)
    return whole[tuple(slice(length) for length in shape)].tobytes()


def encode(content: bytes, values: Values) -> bytes:
    """Return a frame with one chunk. It is never b2nd; HDF5's filter reads it as well."""
    settings = settings_of(Settings, values)
    blosc2 = load("blosc2", "blosc2")
    filters = [blosc2.Filter.NOFILTER] * 5 + [blosc2.Filter(SHUFFLES.index(settings.shuffle))]
    cparams = blosc2.CParams(
        codec=blosc2.Codec[settings.compressor.upper()],
        clevel=settings.level,
        typesize=settings.element_nbytes,
        blocksize=settings.block_nbytes,
        filters=filters,
        nthreads=1,
    )
    frame = blosc2.SChunk(chunksize=max(len(content), 1), cparams=cparams)
    frame.append_data(content)
    return bytes(frame.to_cframe())


label = blosc.label
