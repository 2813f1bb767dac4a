"""Chunk keys: their layout, the array they belong to, and the coordinates they contain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.zarr_model.digits import Positions, Text, decode_digits
from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.json_forms import decode_named

_COORDINATE_DIGITS = 18  # numbers with this many digits always fit into int64
_ANY_DIGITS = 31  # no grid is so large, but a malformed key may be
_FEW = 16
_LIKE_COORDINATES = re.compile(r"[-+0-9./]+")
_LIKE_MARKED = re.compile(r"c([./].*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KeyLayout:
    """How the chunk keys of an array are written: its path, a mark, then coordinates with a separator.

    The mark is "c" in Zarr version 3 and empty in version 2. The key of a scalar's only chunk ends with the mark, or
    with 0 if there is no mark.
    """

    path: str
    mark: str
    separator: str
    rank: int

    @property
    def directory(self) -> str:
        """The prefix of all keys below the array."""
        return f"{self.path}/".lstrip("/")

    @property
    def prefix(self) -> str:
        """The text before the first coordinate; the whole key for a scalar."""
        if not self.rank:
            return f"{self.directory}{self.mark or '0'}"
        return f"{self.directory}{self.mark}{self.separator}" if self.mark else self.directory

    @property
    def alias(self) -> str | None:
        """The key that VirtualiZarr writes for a scalar in version 2. Other readers do not find it."""
        return None if self.rank or self.mark else self.directory

    @property
    def parts(self) -> tuple[str, ...]:
        """The text before, between and after the coordinates."""
        return (self.prefix, *[self.separator] * (self.rank - 1), "") if self.rank else (self.prefix,)


def decode_key_encoding(path: str, value: Json, rank: int) -> KeyLayout:
    """Return the layout for `chunk_key_encoding` of version 3. The specification has a default separator."""
    name, configuration = decode_named(value, "encoding of chunk keys")
    if name not in ("default", "v2"):
        raise Unsupported(f'h5zarr does not support the chunk key encoding "{name}"')
    separator = configuration.get("separator", "/" if name == "default" else ".")
    if separator not in ("/", "."):
        raise MalformedFile("the separator in chunk keys is neither a slash nor a dot")
    return KeyLayout(path, "c" if name == "default" else "", separator, rank)


@dataclass(frozen=True, slots=True, eq=False)
class Below:
    """The entries below an array: keys and values, in the same order."""

    keys: list[str] = field(default_factory=list)
    values: list[Json] = field(default_factory=list)


def group_entries(entries: Mapping[str, Json], paths: Iterable[str], mark: str) -> dict[str, Below]:
    """Return the entries below each array, by its path. Other entries are left out.

    `mark` follows the path in most keys. It makes finding the array faster.
    """
    below = {path[1:]: Below() for path in paths}
    deepest = max((path.count("/") + 1 for path in below), default=0)
    for key, value in entries.items():
        found = below.get(key[: key.rfind(mark)])
        if found is None:
            found = _find_above(key, below, deepest)
        if found is not None:
            found.keys.append(key)
            found.values.append(value)
    return {f"/{path}": found for path, found in below.items()}


def _find_above(key: str, below: Mapping[str, Below], deepest: int) -> Below | None:
    """Return the entries of the array above `key`, or None. No path of an array has more than `deepest` names."""
    end = -1
    for _ in range(deepest):
        if (end := key.find("/", end + 1)) < 0:
            break
        if (found := below.get(key[:end])) is not None:
            return found
    return None


def decode_keys(below: Below, layout: KeyLayout) -> tuple[Below, npt.NDArray[np.int64]]:
    """Return the chunks among the entries below an array, and their coordinates, one row per chunk.

    Raises MalformedFile for a key that looks like a chunk key, but that no reader would request.
    """
    index = _decode_indices(below.keys, layout)
    if index is None:
        values = dict(zip(below.keys, below.values, strict=True))
        keys = _select_chunks(below.keys, layout)
        below = Below(keys, [values[key] for key in keys])
        index = _decode_indices(keys, layout)
        assert index is not None, "_select_chunks has checked each key"
    return below, index


def decode_all_keys(below: Below, layout: KeyLayout) -> npt.NDArray[np.int64] | None:
    """Return the coordinates of the chunks below an array, one row per chunk; None unless all entries are its chunks.

    This is fast for an array with a million chunks. `match_keys` finds the key that is wrong.
    """
    if not layout.rank:
        return None
    try:
        kept, index = decode_keys(below, layout)
    except MalformedFile:
        return None
    return index if len(kept.keys) == len(below.keys) else None


def match_keys(layout: KeyLayout, keys: Iterable[str]) -> Iterator[tuple[int, ...] | None]:
    """Yield the coordinates in each key, inside the grid or not; None if it is not a chunk key."""
    prefix, coordinates = layout.prefix, _coordinates(layout.separator, layout.rank, _ANY_DIGITS)
    for key in keys:
        if key.startswith(prefix) and (found := coordinates.fullmatch(key, len(prefix))):
            yield tuple(map(int, found[0].split(layout.separator))) if layout.rank else ()
        else:
            yield None


@cache
def _coordinates(separator: str, rank: int, digits: int) -> re.Pattern[str]:
    """Return a pattern for `rank` coordinates without leading zeros, each with at most `digits` digits."""
    number = f"(?:0|[1-9][0-9]{{0,{digits - 1}}})"
    return re.compile(f"{number}(?:{re.escape(separator)}{number}){{{rank - 1}}}" if rank else "")


def _decode_indices(keys: Sequence[str], layout: KeyLayout) -> npt.NDArray[np.int64] | None:
    """Return the coordinates of chunks, one row per key; None unless all keys are valid."""
    prefix = layout.prefix
    if not layout.rank:
        is_one = not keys or list(keys) in ([prefix], [layout.alias])
        return np.empty((len(keys), 0), np.int64) if is_one else None
    if not all(key.startswith(prefix) for key in keys):
        return None
    width = len(prefix)
    behind = [key[width:] for key in keys]
    return _decode_few(behind, layout) if len(keys) <= _FEW else _decode_many(behind, layout)


def _decode_few(texts: Sequence[str], layout: KeyLayout) -> npt.NDArray[np.int64] | None:
    """Return the coordinates of a few chunks. For few, this is faster than `_decode_many`."""
    if not all(map(_coordinates(layout.separator, layout.rank, _COORDINATE_DIGITS).fullmatch, texts)):
        return None
    rows = [text.split(layout.separator) for text in texts]
    return np.array([list(map(int, row)) for row in rows], np.int64).reshape(len(texts), layout.rank)


def _decode_many(texts: Sequence[str], layout: KeyLayout) -> npt.NDArray[np.int64] | None:
    """Return the coordinates of many chunks."""
    columns = np.empty((len(texts), layout.rank), np.int64)
    text = np.frombuffer(("\n".join(texts) + "\n").encode("ascii", "replace"), np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    if len(ends) != len(texts):
        return None
    starts = np.concatenate([[0], ends[:-1] + 1])
    for axis in range(layout.rank):
        values, stops = decode_digits(text, starts)
        behind = layout.separator if axis < layout.rank - 1 else "\n"
        if not (are_plain(text, starts, stops) and (text[stops] == ord(behind)).all()):
            return None
        columns[:, axis] = values
        starts = stops + 1
    return columns


def are_plain(text: Text, starts: Positions, stops: Positions) -> bool:
    """Return whether all coordinates from `starts` to `stops` have digits, not too many, and no leading zeros."""
    widths = stops - starts
    leading_zeros = (text[starts] == ord("0")) & (widths > 1)
    return bool(widths.min() > 0 and widths.max() <= _COORDINATE_DIGITS and not leading_zeros.any())


def _select_chunks(keys: Sequence[str], layout: KeyLayout) -> list[str]:
    """Return the chunk keys. Raises MalformedFile if another key looks like one."""
    prefix, coordinates = layout.prefix, _coordinates(layout.separator, layout.rank, _COORDINATE_DIGITS)
    looks_like_chunk = (_LIKE_MARKED if layout.mark else _LIKE_COORDINATES).fullmatch
    found, aliases = [], []
    for key in keys:
        if key.startswith(prefix) and coordinates.fullmatch(key, len(prefix)):
            found.append(key)
        elif key == layout.alias:
            aliases.append(key)
        elif key.startswith(layout.directory) and looks_like_chunk(key.removeprefix(layout.directory)):
            wanted = f" followed by {layout.rank} coordinates" if layout.rank else ""
            raise MalformedFile(f"{key}: not a valid chunk key, which is {layout.prefix}{wanted}")
    return found or aliases
