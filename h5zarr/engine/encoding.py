"""Encoding: what xarray's netCDF engine notes about how a variable is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from h5zarr.engine.elements import Presentation
from h5zarr.engine.record import RecordedFilter
from h5zarr.hierarchy import ArrayNode, Json
from h5zarr.tree import StoredFilter, StoredForm

_DEFLATE, _SHUFFLE, _FLETCHER32, _SZIP, _BZIP2, _BLOSC, _ZSTD = 1, 2, 3, 4, 307, 32001, 32015
_BLOSC_COMPRESSORS = ("blosc_lz", "blosc_lz4", "blosc_lz4hc", "blosc_snappy", "blosc_zlib", "blosc_zstd")
_BLOSC_NAMES = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
_BLOSC_SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}
_SZIP_NEAREST, _SZIP_ENTROPY = 32, 4


def netcdf_encoding(
    array: ArrayNode, form: StoredForm | None, presentation: Presentation, source: str, *, is_classic: bool = False
) -> dict[str, Any]:
    """Return the encoding of a variable, `_FillValue` and what comes from attributes aside.

    Where nothing is recorded of its `form`, it is derived from the chunks and codecs of the array. A classic file has
    neither chunks nor filters.
    """
    encoding: dict[str, Any] = {"dtype": presentation.in_encoding}
    if not is_classic:
        form = form or derive_form(array)
        encoding |= _filters(form.filters) | _chunking(form.chunk_shape, array)
    return encoding | {"source": source, "original_shape": array.shape}


def _chunking(chunk_shape: tuple[int, ...] | None, array: ArrayNode) -> dict[str, Any]:
    if chunk_shape is None:
        return {"contiguous": True, "chunksizes": None}
    chunk_shape += array.shape[len(chunk_shape) :]  # an array type has axes behind those of the chunks
    return {
        "contiguous": False,
        "chunksizes": chunk_shape,
        "preferred_chunks": dict(zip(array.dimension_names, chunk_shape, strict=True)),
    }


def _filters(filters: Sequence[StoredFilter]) -> dict[str, Any]:
    """Return netCDF4's account of a pipeline: filters that netCDF does not know are not in it."""
    found: dict[str, Any] = dict.fromkeys(("zlib", "szip", "zstd", "bzip2", "blosc", "shuffle"), False)
    found |= {"complevel": 0, "fletcher32": False}
    by_number = {one.number: one.values for one in reversed(filters)}
    found["shuffle"], found["fletcher32"] = _SHUFFLE in by_number, _FLETCHER32 in by_number
    if _DEFLATE in by_number:
        found |= {"zlib": True, "complevel": _level(by_number[_DEFLATE])}
    for name, number in (("zstd", _ZSTD), ("bzip2", _BZIP2)):
        if len(by_number.get(number, ())) == 1:
            found |= {name: True, "complevel": _level(by_number[number])}
    if len(values := by_number.get(_BLOSC, ())) == 7 and values[6] < len(_BLOSC_COMPRESSORS):
        found["blosc"] = {"compressor": _BLOSC_COMPRESSORS[values[6]], "shuffle": values[5]}
        found["complevel"] = values[4]
    if values := by_number.get(_SZIP, ()):
        coding = "nn" if values[0] & _SZIP_NEAREST else "ec"
        found["szip"] = {"coding": coding, "pixels_per_block": values[1]}
    return found


def _level(values: Sequence[int]) -> int:
    """Return a level of compression, which may be negative; HDF5 has room for unsigned numbers only."""
    level = values[0] if values else 0
    return level - (1 << 32) if level >= 1 << 31 else level


# --- where nothing is recorded


def derive_form(array: ArrayNode) -> StoredForm:
    """Return how an array seems to be stored in its file, by its chunks and codecs.

    One chunk that is the whole array, and plain, is taken for contiguous values.
    """
    filters = tuple(filter(None, map(_derive_filter, array.codecs)))
    is_whole = all(chunk >= extent for chunk, extent in zip(array.chunk_shape, array.shape, strict=True))
    is_plain = not filters and len(array.codecs) == 1
    return StoredForm(chunk_shape=None if is_whole and is_plain else array.chunk_shape, filters=filters)


def _derive_filter(codec: Json) -> RecordedFilter | None:
    if not isinstance(codec, Mapping):
        return None
    settings = codec.get("configuration", {})
    match str(codec.get("name", "")).removeprefix("numcodecs."):
        case "zlib" | "gzip":
            return RecordedFilter(number=_DEFLATE, values=(settings.get("level", 1),))
        case "zstd":
            return RecordedFilter(number=_ZSTD, values=(settings.get("level", 0),))
        case "bz2":
            return RecordedFilter(number=_BZIP2, values=(settings.get("level", 1),))
        case "shuffle":
            return RecordedFilter(number=_SHUFFLE, values=(settings.get("elementsize", 1),))
        case "fletcher32":
            return RecordedFilter(number=_FLETCHER32, values=())
        case "blosc":
            return _derive_blosc(settings)
        case "h5zarr.szip":
            mask = _SZIP_ENTROPY if settings.get("coding") == "entropy" else _SZIP_NEAREST
            return RecordedFilter(number=_SZIP, values=(mask, settings.get("pixels_per_block", 0)))
    return None


def _derive_blosc(settings: Mapping[str, Any]) -> RecordedFilter:
    name, shuffle = settings.get("cname", "blosclz"), settings.get("shuffle", 1)
    compressor = _BLOSC_NAMES.index(name) if name in _BLOSC_NAMES else len(_BLOSC_NAMES)
    shuffle = _BLOSC_SHUFFLES.get(shuffle, shuffle) if isinstance(shuffle, str) else shuffle
    return RecordedFilter(number=_BLOSC, values=(0, 0, 0, 0, settings.get("clevel", 5), shuffle, compressor))
