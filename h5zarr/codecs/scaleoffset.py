"""HDF5 filter 6: the smallest value and differences from it. Encoding floats rounds them to a decimal digit."""

from __future__ import annotations

from h5zarr.codecs.base import FilterCodec, FilterNumcodec
from h5zarr.filters import scaleoffset


class Scaleoffset(FilterCodec, name="h5zarr.scaleoffset", filter=scaleoffset):
    """`count`, `kind`, `element_nbytes`, `signed`, `byte_order`; `factor`: bits or digits; `fill` in hex."""


class ScaleoffsetV2(FilterNumcodec, name="h5zarr.scaleoffset", filter=scaleoffset):
    """The same for Zarr v2."""
