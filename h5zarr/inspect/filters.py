"""Names of filters, with the setting that people ask for."""

from __future__ import annotations

from collections.abc import Callable

from h5zarr.hdf5.model import Filter
from h5zarr.inspect.escape import readable

BLOSC_COMPRESSORS = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
BLOSC_SHUFFLES = ("", "shuffle", "bitshuffle")


def filter_name(filter: Filter) -> str:
    """Return a short name such as `deflate(4)`, or `filter 32099 (its name)` where the number has no name here."""
    if filter.number in NAMES:
        name, setting = NAMES[filter.number]
        said = setting(filter.values)
        return f"{name}({said})" if said else name
    return f"filter {filter.number} ({readable(filter.name)})" if filter.name else f"filter {filter.number}"


def _none(values: tuple[int, ...]) -> str:
    return ""


def _first(values: tuple[int, ...]) -> str:
    """The level of a compressor. Levels below zero are stored in two's complement."""
    if not values:
        return ""
    return str(values[0] - (1 << 32) if values[0] >= 1 << 31 else values[0])


def _scaleoffset(values: tuple[int, ...]) -> str:
    """Scale type 0 keeps a number of decimal digits of floats; type 2 keeps a number of bits of integers."""
    match values[:2]:
        case (0, digits):
            return f"{digits - (1 << 32) if digits >= 1 << 31 else digits} digits"
        case (2, bits) if bits:
            return f"{bits} bits"
    return ""


def _blosc(values: tuple[int, ...]) -> str:
    said = []
    if len(values) > 6 and values[6] < len(BLOSC_COMPRESSORS):
        said.append(BLOSC_COMPRESSORS[values[6]])
    if len(values) > 4:
        said.append(str(values[4]))
    if len(values) > 5 and 0 < values[5] < len(BLOSC_SHUFFLES):
        said.append(BLOSC_SHUFFLES[values[5]])
    return ", ".join(said)


def _bitshuffle(values: tuple[int, ...]) -> str:
    return {2: "lz4", 3: "zstd"}.get(values[4], "") if len(values) > 4 else ""


NAMES: dict[int, tuple[str, Callable[[tuple[int, ...]], str]]] = {
    1: ("deflate", _first),
    2: ("shuffle", _none),
    3: ("fletcher32", _none),
    4: ("szip", _none),
    5: ("nbit", _none),
    6: ("scaleoffset", _scaleoffset),
    305: ("lzo", _none),
    307: ("bzip2", _first),
    32000: ("lzf", _none),
    32001: ("blosc", _blosc),
    32002: ("mafisc", _none),
    32003: ("snappy", _none),
    32004: ("lz4", _none),
    32008: ("bitshuffle", _bitshuffle),
    32012: ("jpeg-ls", _none),
    32013: ("zfp", _none),
    32014: ("fpzip", _none),
    32015: ("zstd", _first),
    32017: ("sz", _none),
    32018: ("fcidecomp", _none),
    32019: ("jpeg", _none),
    32022: ("bitgroom", _none),
    32023: ("granular bitround", _none),
    32024: ("sz3", _none),
    32026: ("blosc2", _blosc),
    32028: ("sperr", _none),
}
