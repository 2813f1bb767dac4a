"""Filters of HDF5 as codecs of Zarr: which codec, and its configuration.

Codecs of Zarr and numcodecs are preferred, so that references need h5zarr only for what those lack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from h5zarr.filters import blosc, bzip2, deflate, fletcher32, shuffle, zstd
from h5zarr.filters.pipeline import Applied, unknown_filter
from h5zarr.filters.settings import FilterSettings, configuration_of, first, settings_of, signed
from h5zarr.filters.table import FILTERS, unchanged

Codec: TypeAlias = dict[str, Any]
Values: TypeAlias = tuple[int, ...]

OWN = "h5zarr."


def encode_filters(filters: Sequence[Applied], *, element_nbytes: int, nbytes: int) -> tuple[Codec, ...]:
    """Return the codecs for a whole pipeline, in the order of writing, which is Zarr's order too.

    Raises `Unsupported` where one of the filters has no codec.
    """
    codecs = []
    known_nbytes: int | None = nbytes
    for one in filters:
        codec = encode_filter(one, element_nbytes=element_nbytes, nbytes=known_nbytes)
        if codec is not None:
            codecs.append(codec)
        known_nbytes = _after(one.number, known_nbytes)
    return tuple(codecs)


def encode_filter(filter: Applied, *, element_nbytes: int, nbytes: int | None) -> Codec | None:
    """Return the codec of one filter as Zarr v3 metadata has it, or None where nothing is to be done on reading.

    `nbytes` is the size of what the filter was given when it was written: that of a chunk for the first filter, None
    where an earlier one compresses. `element_nbytes` is the size of an element of the dataset.
    """
    kind = FILTERS.get(filter.number)
    if kind is None:
        raise unknown_filter(filter)
    if kind.decode is unchanged:
        return None
    if filter.number in _STOCK:
        return _STOCK[filter.number](filter.values, element_nbytes, nbytes)
    assert kind.settings is not None
    return own_codec(kind.name, kind.settings, filter.values)


def own_codec(name: str, settings: type[FilterSettings], values: Values) -> Codec:
    """Return one of h5zarr's own codecs."""
    return _codec(OWN + name, **configuration_of(settings_of(settings, values)))


def _after(number: int, nbytes: int | None) -> int | None:
    """Return how many bytes a filter gives for `nbytes`, or None where that depends on their values."""
    if nbytes is None or number == _SHUFFLE or FILTERS[number].decode is unchanged:
        return nbytes
    return nbytes + fletcher32.CHECKSUM_NBYTES if number == _FLETCHER32 else None


def _codec(name: str, **configuration: Any) -> Codec:
    return {"name": name, "configuration": configuration}


def _deflate(values: Values, element_nbytes: int, nbytes: int | None) -> Codec:
    """Not Zarr's `gzip`: HDF5 writes zlib's framing."""
    return _codec("numcodecs.zlib", level=min(first(values, default=deflate.DEFAULT_LEVEL), 9))


def _shuffle(values: Values, element_nbytes: int, nbytes: int | None) -> Codec | None:
    """The client data may differ from the element size: libhdf5 takes the type that the filter was made for.

    numcodecs refuses content that is no multiple of the size, where libhdf5 leaves the rest as it is.
    """
    width = first(values, default=1)
    if width <= 1 or (nbytes is not None and nbytes < 2 * width):
        return None
    if nbytes is None or nbytes % width:
        return own_codec("shuffle", shuffle.Settings, values)
    return _codec("numcodecs.shuffle", elementsize=width)


def _fletcher32(values: Values, element_nbytes: int, nbytes: int | None) -> Codec:
    """numcodecs knows only the checksum of libhdf5 1.6.3 and later; which one a file has, its metadata do not say."""
    return _codec("numcodecs.fletcher32")


def _bzip2(values: Values, element_nbytes: int, nbytes: int | None) -> Codec:
    return _codec("numcodecs.bz2", level=min(max(first(values, default=bzip2.DEFAULT_LEVEL), 1), 9))


def _zstd(values: Values, element_nbytes: int, nbytes: int | None) -> Codec:
    level = min(signed(first(values, default=zstd.DEFAULT_LEVEL)), zstd.GREATEST_LEVEL)
    return _codec("zstd", level=level, checksum=False)


def _blosc(values: Values, element_nbytes: int, nbytes: int | None) -> Codec:
    width, level, shuffle_name, compressor = blosc.described(values)
    if compressor == "snappy":
        raise blosc.SnappyInBlosc("filter 32001 (blosc) was used with the compressor snappy")
    return _codec("blosc", typesize=width, cname=compressor, clevel=level, shuffle=shuffle_name, blocksize=0)


_SHUFFLE, _FLETCHER32 = 2, 3
_STOCK: dict[int, Callable[[Values, int, int | None], Codec | None]] = {
    1: _deflate,
    2: _shuffle,
    3: _fletcher32,
    307: _bzip2,
    32001: _blosc,
    32015: _zstd,
}
