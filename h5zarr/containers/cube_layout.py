"""The layout of a cube: its axes, and which part of each axis is in which file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeLayout:
    """The length of each axis, by its path, and the files in their order along the axes."""

    axes: Mapping[str, int]
    pieces: tuple[CubePieceState, ...]

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
        """Return the layout that `to_json` encoded, except for secrets. Raises MalformedFile for anything else."""
        try:
            axes = {str(path): _number(length) for path, length in value["axes"].items()}
            pieces = tuple(_decode_piece(piece, axes) for piece in value["pieces"])
        except (AttributeError, KeyError, TypeError, ValueError):
            raise MalformedFile("the layout of the cube does not have h5zarr's form") from None
        return cls(axes=axes, pieces=pieces)


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
