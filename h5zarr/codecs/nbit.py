"""HDF5 filter 5: only the significant bits. Encoding loses what stands in the others."""

from __future__ import annotations

from h5zarr.codecs.base import FilterCodec, FilterNumcodec
from h5zarr.filters import nbit


class Nbit(FilterCodec, name="h5zarr.nbit", filter=nbit):
    """`count` of elements, and the `layout` of one: number, array, compound or whole; None where nothing is done."""


class NbitV2(FilterNumcodec, name="h5zarr.nbit", filter=nbit):
    """The same for Zarr v2."""
