"""The plan of a cube: how files would be joined, or why they are refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from h5zarr.commands.combine.along import Along, AlongInput, parse_along
from h5zarr.commands.combine.axes import differing_scalars
from h5zarr.commands.combine.axis_choice import Axis, find_axis
from h5zarr.commands.combine.batches import BATCH, Batches, Spool, may_batch
from h5zarr.commands.combine.cube import Cube, SomeRefused, join_pieces
from h5zarr.commands.combine.cube_text import axis_lines, how_lines, outcome_lines
from h5zarr.commands.combine.facts import find_facts
from h5zarr.commands.combine.members import coordinate_paths
from h5zarr.commands.combine.pieces import UNCUT, CubePiece
from h5zarr.commands.combine.settings import Choices
from h5zarr.commands.combine.sources import FoundSources, OnFile, close_pieces, open_pieces
from h5zarr.commands.translate.options import Options
from h5zarr.commands.translate.translation_text import Phrase
from h5zarr.encode.inlining import Inlining
from h5zarr.errors import H5ZarrError, NotJoinable, Problem
from h5zarr.io.access import Access
from h5zarr.zarr_model.hierarchy import Json


@dataclass(frozen=True, slots=True, eq=False)
class CubePlan:
    """The cube that files would become, or the error that keeps them from it."""

    cube: Cube | None
    error: H5ZarrError | None = None

    @property
    def is_possible(self) -> bool:
        """Whether `h5zarr.combine` joins the files and leaves nothing out."""
        return self.cube is not None and not self.cube.problems

    def lines(self, phrase: Phrase = str) -> Iterator[str]:
        """Return the axes, files and variables of the cube; or what is refused, and why."""
        if self.cube is not None:
            yield from how_lines(self.cube, phrase=phrase, is_plan=True)
            return
        if isinstance(self.error, SomeRefused):
            yield from axis_lines(self.error.axes)
            yield from outcome_lines([one for one in self.error.outcomes if one.notes], phrase=phrase)
        elif self.error is not None:
            yield from (phrase(line) for line in (str(self.error), self.error.remedy) if line)

    def to_json(self) -> dict[str, Json]:
        """Return the plan for machines."""
        if self.cube is not None:
            return {"possible": self.is_possible, **self.cube.to_json()}
        outcomes = [one.to_json() for one in getattr(self.error, "outcomes", ())]
        remedy = "" if self.error is None else self.error.remedy
        return {"possible": False, "message": str(self.error), "remedy": remedy, "variables": outcomes}


def make_plan(
    urls: Sequence[str], along: AlongInput | None, options: Options, access: Access, at_once: int
) -> CubePlan:
    """Return how files would be joined with the usual choices. Nothing is written."""
    try:
        given = None if along is None else parse_along(along)
        cube = join_sources(FoundSources(tuple(urls)), given, options, access, Choices(), at_once=at_once)
    except H5ZarrError as error:
        return CubePlan(None, error)
    return CubePlan(cube)


def join_sources(
    found: FoundSources,
    along: Sequence[Along] | None,
    options: Options,
    access: Access,
    choices: Choices,
    *,
    at_once: int,
    skip_broken: bool = False,
    on_file: OnFile | None = None,
) -> Cube:
    """Open and join files. What is known about each of them is forgotten afterwards. Raises NotJoinable.

    Without axes in `along`, files are merged. None: the files determine the axis.
    """
    options = replace(options, chunk_nbytes=UNCUT)
    how = _HowToOpen(access, options, at_once, skip_broken, on_file)
    if found.count > 2 * BATCH and along != () and may_batch(choices):
        cube = _join_in_batches(found, along, choices, how)
        if cube is not None:
            return cube
    pieces, broken = how.open(found)
    try:
        if along is not None:
            return join_pieces(pieces, along, options.inlining, choices, broken)
        axis = _find_axis(pieces)
        if axis.name is not None:
            return join_pieces(pieces, _check_clear(axis, axis.name), options.inlining, choices, broken)
        return _merge(pieces, axis, options.inlining, choices, broken)
    finally:
        close_pieces(pieces)


@dataclass(frozen=True, slots=True)
class _HowToOpen:
    """How files are opened; see `open_pieces`."""

    access: Access
    options: Options
    at_once: int
    skip_broken: bool
    on_file: OnFile | None

    def open(self, found: FoundSources, total: int = 0) -> tuple[list[CubePiece], tuple[Problem, ...]]:
        """Open files, of `total` if these are a part of them."""
        how: dict[str, Any] = {"at_once": self.at_once, "skip_broken": self.skip_broken, "on_file": self.on_file}
        return open_pieces(found, self.access, self.options, **how, total=total)


def _join_in_batches(
    found: FoundSources, along: Sequence[Along] | None, choices: Choices, how: _HowToOpen
) -> Cube | None:
    """Join many files in batches. None if they must be joined at once: if there are no axes, or these have no order."""
    spool, batches, problems = Spool(how.access), None, list[Problem]()
    try:
        for part in found.batches(BATCH):
            pieces, broken = how.open(part, found.count)
            problems += broken
            try:
                if batches is None and pieces:
                    if along is None:
                        axis = _find_axis(pieces)
                        if axis.name is None:
                            return None
                        along = _check_clear(axis, axis.name)
                    batches = Batches(along, how.options.inlining, choices, found.count, spool.keep)
                if batches is not None and pieces and not batches.add(pieces):
                    return None
            finally:
                close_pieces(pieces)
        # Without a file that can be read, what is wrong is found as usual.
        return None if batches is None else replace(batches.join(tuple(problems)), spool=spool)
    finally:
        if batches is not None:
            batches.close()


def _find_axis(pieces: Sequence[CubePiece]) -> Axis:
    return find_axis([find_facts(piece.hierarchy) for piece in pieces])


def detect_axis(pieces: Sequence[CubePiece]) -> tuple[Along, ...]:
    """Return the axis that files determine. Raises NotJoinable if they do not."""
    axis = _find_axis(pieces)
    if axis.name is None:
        raise NotJoinable(f"{_UNCLEAR}: {axis.reason}", remedy="Give along=[NAME].")
    return _check_clear(axis, axis.name)


_UNCLEAR = "it is not clear along which dimension to join"


def _check_clear(axis: Axis, name: str) -> tuple[Along, ...]:
    """Return the axis that the files determine. Raises NotJoinable if there are several."""
    if axis.others:
        names = ", ".join((name, *axis.others))
        reason = axis.reason.replace("it is", "each is", 1)
        raise NotJoinable(
            f"{_UNCLEAR}: {names} could be meant, because {reason}", remedy="Give along=[NAME], or several."
        )
    return (Along(name),)


def _merge(
    pieces: Sequence[CubePiece], axis: Axis, inlining: Inlining, choices: Choices, broken: tuple[Problem, ...]
) -> Cube:
    """Return files without an axis as one dataset, if they have different variables and agree on those they share.

    Raises NotJoinable if they do not: then they probably belong along a new dimension.
    """
    variables = [frozenset(piece.arrays.keys() - coordinate_paths(piece)) for piece in pieces]
    what = f"{_UNCLEAR}: {axis.reason}"
    if len(set(variables)) == len(variables):
        try:
            return join_pieces(pieces, (), inlining, choices, broken)
        except SomeRefused as error:
            what += f". They cannot be merged, either: {str(error).partition(chr(10))[0]}"
    scalars = differing_scalars(pieces)
    example = f", for example along={scalars[0]!r}: it differs between the files" if scalars else ""
    known = dict.fromkeys(name for node in pieces[0].arrays.values() for name in node.dimension_names)
    listed = f" The files have the dimensions {', '.join(known)}." if known else ""
    raise NotJoinable(what, remedy=f"Give along=[NAME]{example}.{listed}")
