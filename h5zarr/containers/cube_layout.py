"""The layout of a cube: its axes, and which part of each axis is in which file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import overload

from h5zarr.containers.source_state import decode_source, encode_source
from h5zarr.errors import MalformedFile
from h5zarr.io.location import Location
from h5zarr.io.source import Identity
from h5zarr.zarr_model.hierarchy import Json

Range = tuple[int, int, int]
"""The position of a range on the axis, its start in the file, and its length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CubePieceState:
    """A file of a cube, and its ranges by the path of the axis. `url` may contain secrets, which are not written.

    `lacks` has the variables of the cube that the file does not have.
    """

    url: str
    at: Mapping[str, tuple[Range, ...]]
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeMisfit:
    """A file that was left out of a cube, the state in which it was found, and why it does not fit.

    `url` may contain secrets, which are not written. `kind` is that of the error.
    """

    url: str
    identity: Identity | None
    kind: str
    reason: str
    remedy: str = ""

    def to_json(self) -> dict[str, Json]:
        """Return the misfit as JSON, without secrets."""
        about = {"kind": self.kind, "reason": self.reason, "remedy": self.remedy}
        return {**encode_source(self.url, self.identity), **about}

    @classmethod
    def from_json(cls, value: Json) -> CubeMisfit:
        url, kind, reason = str(value["url"]), str(value["kind"]), str(value["reason"])
        identity = decode_source(value).identity if "nbytes" in value else None
        return cls(url=url, identity=identity, kind=kind, reason=reason, remedy=str(value.get("remedy", "")))


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
    """The length of each axis, by its path, and the files in their order along the axes.

    `recipe` says how the cube is made, so that it can be updated; `misfits` are the files that updates left out.
    """

    axes: Mapping[str, int]
    pieces: Sequence[CubePieceState]
    recipe: Mapping[str, Json] = field(default_factory=dict)
    misfits: tuple[CubeMisfit, ...] = ()

    def moved(self, at: Mapping[str, tuple[Range, ...]], lacks: tuple[str, ...] = ()) -> list[CubePieceState]:
        """Return the files of this cube as files of another one, of which this cube has the ranges `at`.

        `lacks` has the variables of the other cube that this one does not have.
        """
        made = []
        for piece in self.pieces:
            found = dict(at)  # along an axis that only the other one has, all files are where this cube is
            for path, ranges in piece.at.items():
                placed = [one for inner in ranges for one in _place(inner, at.get(path, ()))]
                found[path] = tuple(placed)
            there = {path: ranges for path, ranges in found.items() if ranges}
            made.append(CubePieceState(url=piece.url, at=there, lacks=tuple(dict.fromkeys((*piece.lacks, *lacks)))))
        return made

    def to_json(self) -> Json:
        """Return the layout for writing, without secrets."""
        pieces = [
            {
                "source": Location.parse(piece.url).without_secrets(),
                "at": {path: [list(one) for one in ranges] for path, ranges in piece.at.items()},
                **({"lacks": list(piece.lacks)} if piece.lacks else {}),
            }
            for piece in self.pieces
        ]
        document: dict[str, Json] = {"axes": dict(self.axes), "pieces": pieces}
        if self.recipe:
            document["recipe"] = dict(self.recipe)
        if self.misfits:
            document["misfits"] = [one.to_json() for one in self.misfits]
        return document

    @classmethod
    def from_json(cls, value: Json) -> CubeLayout:
        """Return the layout that `to_json` encoded, except for secrets. Raises MalformedFile for anything else.

        Pieces of another form raise it when they are used.
        """
        with _expecting_our_form():
            axes = {str(path): _number(length) for path, length in value["axes"].items()}
            return cls(
                axes=axes,
                pieces=_LatePieces(list(value["pieces"]), axes),
                recipe=dict(value.get("recipe", {})),
                misfits=tuple(map(CubeMisfit.from_json, value.get("misfits", []))),
            )


def _place(inner: Range, outers: Sequence[Range]) -> Iterator[Range]:
    """Yield where a range of a file in a cube is in another cube, which has ranges of the first, in ascending order."""
    position, start, length = inner
    for moved, first, count in outers[bisect_right(outers, position, key=lambda outer: outer[1] + outer[2]) :]:
        begin, end = max(position, first), min(position + length, first + count)
        if begin >= end:
            return
        yield moved + begin - first, start + begin - position, end - begin


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
    lacks = value.get("lacks", [])
    if not isinstance(lacks, list) or not all(isinstance(path, str) for path in lacks):
        raise TypeError("the variables that a piece lacks are not paths")
    return CubePieceState(url=value["source"], at=at, lacks=tuple(lacks))


def _number(value: Json) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("a position is not a number")
    return value
