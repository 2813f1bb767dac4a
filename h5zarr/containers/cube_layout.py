"""The layout of a cube: its axes, and which part of each axis is in which file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import overload

from h5zarr.errors import MalformedFile
from h5zarr.io.location import Location
from h5zarr.zarr_model.hierarchy import Json

Range = tuple[int, int, int]
"""The position of a range on the axis, its start in the file, and its length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CubePieceState:
    """A file of a cube, and its ranges by the path of the axis. `url` may contain secrets, which are not written."""

    url: str
    at: Mapping[str, tuple[Range, ...]]


class _LatePieces(Sequence[CubePieceState]):
    """Pieces that are decoded when they are used: opening a cube of many files does not need them."""

    def __init__(self, encoded: Sequence[Json], axes: Mapping[str, int]) -> None:
        self._encoded, self._axes = encoded, axes
        self._decoded: tuple[CubePieceState, ...] | None = None

    def __len__(self) -> int:
        return len(self._encoded)

    @overload
    def __getitem__(self, number: int) -> CubePieceState: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[CubePieceState]: ...
    def __getitem__(self, number: int | slice) -> CubePieceState | Sequence[CubePieceState]:
        if self._decoded is None:
            with _expecting_our_form():
                self._decoded = tuple(_decode_piece(piece, self._axes) for piece in self._encoded)
        return self._decoded[number]


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeLayout:
    """The length of each axis, by its path, and the files in their order along the axes."""

    axes: Mapping[str, int]
    pieces: Sequence[CubePieceState]

    def moved(self, at: Mapping[str, tuple[Range, ...]]) -> list[CubePieceState]:
        """Return the files of this cube as files of another one, of which this cube has the ranges `at`."""
        made = []
        for piece in self.pieces:
            found = dict(at)  # along an axis that only the other one has, all files are where this cube is
            for path, ranges in piece.at.items():
                placed = [_place(inner, outer) for inner in ranges for outer in at.get(path, ())]
                found[path] = tuple(one for one in placed if one is not None)
            made.append(CubePieceState(url=piece.url, at={path: ranges for path, ranges in found.items() if ranges}))
        return made

    def to_json(self) -> Json:
        """Return the layout for writing, without secrets."""
        pieces = [
            {
                "source": Location.parse(piece.url).without_secrets(),
                "at": {path: [list(one) for one in ranges] for path, ranges in piece.at.items()},
            }
            for piece in self.pieces
        ]
        return {"axes": dict(self.axes), "pieces": pieces}

    @classmethod
    def from_json(cls, value: Json) -> CubeLayout:
        """Return the layout that `to_json` encoded, except for secrets. Raises MalformedFile for anything else.

        Pieces of another form raise it when they are used.
        """
        with _expecting_our_form():
            axes = {str(path): _number(length) for path, length in value["axes"].items()}
            return cls(axes=axes, pieces=_LatePieces(list(value["pieces"]), axes))


def _place(inner: Range, outer: Range) -> Range | None:
    """Return where a range of a file in a cube is in another cube, which has a range of the first; None for nowhere."""
    position, start, length = inner
    moved, first, count = outer
    begin, end = max(position, first), min(position + length, first + count)
    return (moved + begin - first, start + begin - position, end - begin) if begin < end else None


@contextmanager
def _expecting_our_form() -> Iterator[None]:
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError):
        raise MalformedFile("the layout of the cube does not have h5zarr's form") from None


def _decode_piece(value: Json, axes: Mapping[str, int]) -> CubePieceState:
    at = {}
    for path, ranges in value["at"].items():
        found = []
        for position, start, length in ranges:
            if _number(position) + _number(length) > axes[path]:
                raise ValueError("a piece of a cube is outside of its axis")
            found.append((position, _number(start), length))
        at[str(path)] = tuple(found)
    if not isinstance(value["source"], str):
        raise TypeError("the source of a piece is not text")
    return CubePieceState(url=value["source"], at=at)


def _number(value: Json) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("a position is not a number")
    return value
