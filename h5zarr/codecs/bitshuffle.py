"""HDF5 filter 32008: bits shuffled, then compressed with LZ4 or Zstandard, or not."""

from __future__ import annotations

from h5zarr.codecs.base import FilterCodec, FilterNumcodec
from h5zarr.filters import bitshuffle


class Bitshuffle(FilterCodec, name="h5zarr.bitshuffle", filter=bitshuffle):
    """`element_nbytes`; `block_count`, 0 for the default; `compressor`: none, lz4 or zstd; `level` of zstd."""


class BitshuffleV2(FilterNumcodec, name="h5zarr.bitshuffle", filter=bitshuffle):
    """The same for Zarr v2."""
