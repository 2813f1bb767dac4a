"""The layout of a cube: its axes, and which part of each axis is in which file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from h5zarr.containers.piece_columns import CubePieceState, PieceColumns, piece_columns
from h5zarr.containers.source_state import decode_source, encode_source, without_secrets
from h5zarr.errors import MalformedFile
from h5zarr.io.source import Identity
from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.late_sequence import LateSequence


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeLayout:
    """The length of each axis, by its path, and the files in their order along the axes.

    `recipe` says how the cube is made, so that it can be updated; `misfits` are the files that updates left out.
    `archive` is a hash of all files and their states, if the cube is certain to be up to date with these.
    """

    axes: Mapping[str, int]
    pieces: Sequence[CubePieceState]
    recipe: Mapping[str, Json] = field(default_factory=dict)
    misfits: tuple[CubeMisfit, ...] = ()
    archive: str = ""

    @property
    def columns(self) -> PieceColumns:
        """The files as columns."""
        return piece_columns(self.pieces)

    def part_count(self, path: str) -> int:
        """Return the number of different ranges along an axis that files have."""
        _, position, _, length = self.columns.ranges.along(path)
        return len(np.unique(np.column_stack((position, length)), axis=0))

    def to_json(self, *, has_files: bool = True) -> Json:
        """Return the layout for writing, without secrets; without the files if these are written elsewhere."""
        pieces = [
            {
                "source": without_secrets(piece.url),
                "at": {path: [list(one) for one in ranges] for path, ranges in piece.at.items()},
                **({"lacks": list(piece.lacks)} if piece.lacks else {}),
            }
            for piece in (self.pieces if has_files else ())
        ]
        document: dict[str, Json] = {"axes": dict(self.axes), "pieces": pieces}
        if self.recipe:
            document["recipe"] = dict(self.recipe)
        if self.misfits:
            document["misfits"] = [one.to_json() for one in self.misfits]
        if self.archive:
            document["archive"] = self.archive
        return document

    @classmethod
    def from_json(cls, value: Json) -> CubeLayout:
        """Return the layout that `to_json` encoded, except for secrets. Raises MalformedFile for anything else.

        Pieces of another form raise it when they are used.
        """
        with _expecting_our_form():
            axes = {str(path): _number(length) for path, length in value["axes"].items()}
            pieces = list(value["pieces"])
            return cls(
                axes=axes,
                pieces=LateSequence(len(pieces), partial(_decode_pieces, pieces, axes)),
                recipe=dict(value.get("recipe", {})),
                misfits=tuple(map(CubeMisfit.from_json, value.get("misfits", []))),
                archive=str(value.get("archive", "")),
            )


@contextmanager
def _expecting_our_form() -> Iterator[None]:
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError):
        raise MalformedFile("the layout of the cube does not have h5zarr's form") from None


def _decode_pieces(encoded: Sequence[Json], axes: Mapping[str, int]) -> PieceColumns:
    with _expecting_our_form():
        return piece_columns(_decode_piece(piece, axes) for piece in encoded)


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
