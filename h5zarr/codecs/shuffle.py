"""HDF5 filter 2: bytes shuffled, for content that is no multiple of an element, which numcodecs refuses."""

from __future__ import annotations

from h5zarr.codecs.base import FilterCodec, FilterNumcodec
from h5zarr.filters import shuffle


class Shuffle(FilterCodec, name="h5zarr.shuffle", filter=shuffle):
    """`element_nbytes`."""


class ShuffleV2(FilterNumcodec, name="h5zarr.shuffle", filter=shuffle):
    """The same for Zarr v2."""
