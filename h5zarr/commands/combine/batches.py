"""Join many files in batches, so that memory does not grow with their number.

A batch of files becomes a cube, which is written to a temporary directory. What is known about each of its files is
forgotten then. In the end, the cubes are joined: a cube is a source like any other.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from h5zarr.commands.combine.along import Along
from h5zarr.commands.combine.cube import Cube, join_pieces
from h5zarr.commands.combine.pieces import CubePiece
from h5zarr.commands.combine.settings import Choices, VariableOutcome
from h5zarr.containers.container import Output
from h5zarr.containers.cube_layout import CubeLayout
from h5zarr.containers.fitting import fit_into
from h5zarr.containers.registry import container_for_output
from h5zarr.display import counted
from h5zarr.encode.inlining import Inlining
from h5zarr.errors import OutputError, PackageMissing, Problem
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.opening import Opened, open_hierarchy, recorded_identities
from h5zarr.read.sources import Sources

BATCH = 500
_MOST_NOTES = 4


def may_batch(choices: Choices) -> bool:
    """Return whether batches give the same result as all files at once.

    What all files agree on, or which of several files wins, cannot be told from cubes.
    """
    return choices.on_duplicate == "refuse" and choices.constant != "along" and choices.attributes != "drop-conflicts"


@dataclass(slots=True)
class Batches:
    """Joins batches of files. `total` is the number of all files; each batch may inline its share.

    `keep` returns a cube as a piece of the next one.
    """

    along: Sequence[Along]
    inlining: Inlining
    choices: Choices
    total: int
    keep: Callable[[Cube], CubePiece]
    _cubes: list[CubePiece] = field(default_factory=list)
    _sources: list[str] = field(default_factory=list)
    _outcomes: dict[str, list[str]] = field(default_factory=dict)
    _new: set[str] = field(default_factory=set)

    def add(self, pieces: Sequence[CubePiece]) -> bool:
        """Join a batch. Return False if an axis has no coordinates, so that the order of all files matters."""
        kept = self.keep_batch(pieces)
        if kept is not None:
            self._cubes.append(kept)
        return kept is not None

    def keep_batch(self, pieces: Sequence[CubePiece]) -> CubePiece | None:
        """Return the cube of a batch as a piece; None if an axis has no coordinates. Raises NotJoinable."""
        inlining = share_of(self.inlining, len(pieces) / max(self.total, len(pieces)))
        cube = join_pieces(pieces, self.along, inlining, self.choices)
        if any(axis.path not in cube.hierarchy.nodes for axis in cube.axes):
            return None
        self._sources += cube.sources
        self._new |= {axis.path for axis in cube.axes if axis.is_new}
        for one in cube.outcomes:
            self._outcomes.setdefault(one.path, []).extend(one.notes)
        return self.keep(cube)

    def join(self, broken: tuple[Problem, ...] = ()) -> Cube:
        """Return the cube of all batches."""
        along = tuple(Along(one.name, layout=one.layout) for one in self.along)  # cubes have the coordinates
        cube = join_pieces(self._cubes, along, self.inlining, self.choices, broken)
        axes = tuple(replace(axis, is_new=axis.path in self._new) for axis in cube.axes)
        return replace(cube, axes=axes, sources=tuple(self._sources), outcomes=tuple(map(self._explain, cube.outcomes)))

    def close(self) -> None:
        """Close the cubes."""
        for piece in self._cubes:
            piece.opened.close()

    def _explain(self, outcome: VariableOutcome) -> VariableOutcome:
        """Return an outcome with what was noted in the batches."""
        notes = dict.fromkeys((*outcome.notes, *self._outcomes.get(outcome.path, ())))
        return replace(outcome, notes=tuple(notes)[: max(_MOST_NOTES, len(outcome.notes))])


class Spool:
    """Keeps cubes in a temporary directory, from which their references are read when they are needed.

    The directory is removed when nobody uses the spool any more. Cubes that it cannot keep stay in memory: there may be
    no disk, or no package for Parquet.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._directory: Path | None = None
        self._count = 0
        with suppress(OSError):
            self._directory = Path(tempfile.mkdtemp(prefix="h5zarr-"))
            weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)

    def keep(self, cube: Cube) -> CubePiece:
        """Write a cube, and return it as a piece."""
        if self._directory is None:
            return hold_cube(cube, self._access)
        location = Location.parse(self._directory / f"{self._count}.parquet")
        self._count += 1
        container = container_for_output(location)
        fitted = fit_into(cube.fitted, container)
        if len(fitted.nodes) < len(cube.fitted.nodes):
            return hold_cube(cube, self._access)
        try:
            container.write(fitted, cube.provenance, Output(location=location))
        except (OutputError, PackageMissing):
            return hold_cube(cube, self._access)
        return open_cube(location, Access(), self._access)


def share_of(inlining: Inlining, share: float) -> Inlining:
    """Return how much a part of a cube may inline."""
    coordinate_nbytes, total_nbytes = int(inlining.coordinate_nbytes * share), int(inlining.total_nbytes * share)
    return replace(inlining, coordinate_nbytes=coordinate_nbytes, total_nbytes=total_nbytes)


def hold_cube(cube: Cube, access: Access) -> CubePiece:
    """Return a cube in memory as a piece."""
    urls = cube.hierarchy.urls
    sources = Sources(urls=urls, access=access, expected=recorded_identities(urls, cube.provenance))
    name, layout = _name_of(cube.provenance.cube), cube.provenance.cube
    return CubePiece(name, Opened(url=name, source=urls[0], hierarchy=cube.hierarchy, sources=sources, cube=layout))


def open_cube(location: Location, own: Access, access: Access) -> CubePiece:
    """Return a cube that h5zarr wrote for itself: it may refer to any file. `own` opens it, and `access` its files."""
    opened = open_hierarchy(location, own)
    sources = replace(opened.sources, access=access, references=None)
    return CubePiece(_name_of(opened.cube), replace(opened, sources=sources))


def _name_of(layout: CubeLayout | None) -> str:
    """Return the name of a batch for messages."""
    urls = () if layout is None else layout.columns.urls
    if not urls:
        return "a cube without files"
    first = str(Location.parse(urls[0]))
    return first if len(urls) == 1 else f"{first} and {counted(len(urls) - 1, 'other file')}"
