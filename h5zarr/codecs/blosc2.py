"""HDF5 filter 32026: Blosc2 frames. Needs blosc2."""

from __future__ import annotations

from h5zarr.codecs.base import FilterCodec, FilterNumcodec
from h5zarr.filters import blosc2


class Blosc2(FilterCodec, name="h5zarr.blosc2", filter=blosc2):
    """`element_nbytes`, `level`, `shuffle`, `compressor`, `block_nbytes`: all for encoding only."""


class Blosc2V2(FilterNumcodec, name="h5zarr.blosc2", filter=blosc2):
    """The same for Zarr v2."""
