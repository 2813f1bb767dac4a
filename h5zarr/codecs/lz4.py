"""HDF5 filter 32004: LZ4 in blocks, in HDF5's own framing."""

from __future__ import annotations

from h5zarr.codecs.base import FilterCodec, FilterNumcodec
from h5zarr.filters import lz4


class Lz4(FilterCodec, name="h5zarr.lz4", filter=lz4):
    """`block_nbytes`: bytes of a block, for encoding."""


class Lz4V2(FilterNumcodec, name="h5zarr.lz4", filter=lz4):
    """The same for Zarr v2."""
