"""Every filter that h5zarr knows, once: its number, what undoes it, and whether it has a codec of its own.

Numbers: https://github.com/HDFGroup/hdf5_plugins/blob/master/docs/RegisteredFilterPlugins.md
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from h5zarr.filters import (
    bitshuffle,
    blosc,
    blosc2,
    bzip2,
    deflate,
    fletcher32,
    lz4,
    lzf,
    nbit,
    scaleoffset,
    shuffle,
    szip,
    zfp,
    zstd,
)
from h5zarr.filters.settings import FilterSettings

Decode: TypeAlias = Callable[[bytes, tuple[int, ...], int], bytes]
Encode: TypeAlias = Callable[[bytes, tuple[int, ...]], bytes]


@dataclass(frozen=True, slots=True)
class Known:
    """A filter that can be undone. `settings` are those of the codec `h5zarr.<name>`; None where there is none."""

    name: str
    decode: Decode
    encode: Encode
    settings: type[FilterSettings] | None = None


def unchanged(content: bytes, values: tuple[int, ...], nbytes: int = 0) -> bytes:
    """Return the content: the filter rounded the values when they were written, and there is nothing to undo."""
    return content


FILTERS = {
    1: Known("deflate", deflate.decode, deflate.encode),
    2: Known("shuffle", shuffle.decode, shuffle.encode, shuffle.Settings),
    3: Known("fletcher32", fletcher32.decode, fletcher32.encode),
    4: Known("szip", szip.decode, szip.encode, szip.Settings),
    5: Known("nbit", nbit.decode, nbit.encode, nbit.Settings),
    6: Known("scaleoffset", scaleoffset.decode, scaleoffset.encode, scaleoffset.Settings),
    307: Known("bzip2", bzip2.decode, bzip2.encode),
    32000: Known("lzf", lzf.decode, lzf.encode, lzf.Settings),
    32001: Known("blosc", blosc.decode, blosc.encode),
    32004: Known("lz4", lz4.decode, lz4.encode, lz4.Settings),
    32008: Known("bitshuffle", bitshuffle.decode, bitshuffle.encode, bitshuffle.Settings),
    32013: Known("zfp", zfp.decode, zfp.encode, zfp.Settings),
    32015: Known("zstd", zstd.decode, zstd.encode),
    32022: Known("bitgroom", unchanged, unchanged),
    32023: Known("granular bitround", unchanged, unchanged),
    32026: Known("blosc2", blosc2.decode, blosc2.encode, blosc2.Settings),
    32032: Known("bitround", unchanged, unchanged),
}

# Filters that people meet, with the reason why they are not undone.
REFUSED = {
    305: "is LZO, whose library h5zarr could not depend on without taking its licence",
    32002: "is MAFISC, for which no Python library is known",
    32003: "is Snappy, which numcodecs does not have",
    32012: "is JPEG-LS, which h5zarr does not decode yet",
    32017: "is SZ, for which no Python library is known",
    32018: "is FCIDECOMP, a form of JPEG-LS, which h5zarr does not decode yet",
    32019: "is JPEG, of which different decoders make different values",
    32020: "is VBZ, for which no Python library is known",
    32024: "is SZ3, whose Python library aborts the process on some content",
}
