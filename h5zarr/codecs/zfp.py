"""HDF5 filter 32013: zfp. Needs zfpy. Encoding loses precision, but for the parameters of the reversible mode."""

from __future__ import annotations

from h5zarr.codecs.base import FilterCodec, FilterNumcodec
from h5zarr.filters import zfp


class Zfp(FilterCodec, name="h5zarr.zfp", filter=zfp):
    """`dtype`, `shape` and `byte_order` of a chunk, and zfp's parameters minbits, maxbits, maxprec, minexp."""


class ZfpV2(FilterNumcodec, name="h5zarr.zfp", filter=zfp):
    """The same for Zarr v2."""
