"""Codecs of Zarr as filters of HDF5: the way back of `encode/filters.py`."""

from __future__ import annotations

from dataclasses import dataclass

from h5zarr.encode.filters import OWN
from h5zarr.errors import Unrepresentable
from h5zarr.filters.blosc import COMPRESSORS, SHUFFLES
from h5zarr.filters.table import FILTERS
from h5zarr.hierarchy import Json


@dataclass(frozen=True, slots=True)
class CodecFilter:
    """An HDF5 filter: its number, its name and its client data."""

    number: int
    name: str
    values: tuple[int, ...]


def find_filter(codec: Json) -> CodecFilter:
    """Return the HDF5 filter that undoes what `codec` does to a chunk. Raises Unrepresentable if there is none."""
    name, told = codec["name"], codec.get("configuration", {})
    match name:
        case "numcodecs.zlib":
            return CodecFilter(1, name, (told["level"],))
        case "numcodecs.shuffle":
            return CodecFilter(2, name, (told["elementsize"],))
        case "numcodecs.fletcher32":
            return CodecFilter(3, name, ())
        case "numcodecs.bz2":
            return CodecFilter(307, name, (told["level"],))
        case "zstd":
            return CodecFilter(32015, name, (told["level"] % 2**32,))
        case "blosc":
            choices = (told["clevel"], SHUFFLES.index(told["shuffle"]), COMPRESSORS.index(told["cname"]))
            return CodecFilter(32001, name, (2, 2, told["typesize"], 0, *choices))
    for number, known in FILTERS.items():
        if known.settings is not None and name == f"{OWN}{known.name}":
            return CodecFilter(number, name, known.settings(**told).to_values())
    raise Unrepresentable(f"codec {name} is that of no filter")
