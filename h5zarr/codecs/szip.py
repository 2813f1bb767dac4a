"""HDF5 filter 4: szip, extended-Rice coding. Needs imagecodecs."""

from __future__ import annotations

from h5zarr.codecs.base import FilterCodec, FilterNumcodec
from h5zarr.filters import szip


class Szip(FilterCodec, name="h5zarr.szip", filter=szip):
    """`coding` entropy or nearest-neighbor; `byte_order`; `bits_per_pixel`; pixels of a block and of a scan line."""


class SzipV2(FilterNumcodec, name="h5zarr.szip", filter=szip):
    """The same for Zarr v2."""
