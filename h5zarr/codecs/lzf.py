"""HDF5 filter 32000: LZF, h5py's own compressor."""

from __future__ import annotations

from h5zarr.codecs.base import FilterCodec, FilterNumcodec
from h5zarr.filters import lzf


class Lzf(FilterCodec, name="h5zarr.lzf", filter=lzf):
    """No settings."""


class LzfV2(FilterNumcodec, name="h5zarr.lzf", filter=lzf):
    """The same for Zarr v2."""
