"""From pieces to one hierarchy: the axes, then each variable, then groups and attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeAlias

import numpy as np

from h5zarr import __version__
from h5zarr.commands.combine.alignment import align_variables
from h5zarr.commands.combine.along import Along
from h5zarr.commands.combine.attributes import merge
from h5zarr.commands.combine.axes import find_axes
from h5zarr.commands.combine.constants import spread_differing
from h5zarr.commands.combine.cube_axes import Axes, CubeAxis
from h5zarr.commands.combine.cube_text import cube_lines
from h5zarr.commands.combine.file_order import arrange_files
from h5zarr.commands.combine.inline_values import make_inline
from h5zarr.commands.combine.joined_variables import Made, make_variable
from h5zarr.commands.combine.members import Member, find_members
from h5zarr.commands.combine.pieces import CubePiece
from h5zarr.commands.combine.settings import Choices, Context, VariableOutcome
from h5zarr.commands.combine.time_units import find_times
from h5zarr.commands.translate.fitted_result import FittedResult
from h5zarr.commands.translate.translation_text import count_up
from h5zarr.containers.container import Fitted
from h5zarr.containers.cube_layout import CubeLayout, CubeMisfit
from h5zarr.containers.fitting import fit
from h5zarr.containers.piece_columns import CubePieceState, PieceColumns, join_columns, piece_columns
from h5zarr.containers.provenance import Provenance
from h5zarr.display import counted, summary_repr
from h5zarr.encode.inlining import Budget, Inlining
from h5zarr.errors import NotJoinable, Problem
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, GroupRecord, Hierarchy, Json, VariableRecord
from h5zarr.zarr_model.joined import JoinedVariable

Variables: TypeAlias = Mapping[str, Sequence[Member]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Cube(FittedResult):
    """One dataset of many files. `str()` is the text that `h5zarr combine` prints.

    Attributes
    ----------
    axes
        The axes along which the files were joined, with the part of each file.
    sources
        The names of the files, in the order given.
    outcomes
        How each variable was joined.
    fitted
        What was written, or would be.
    provenance
        The files that were read, their states, and their positions.
    seconds
        How long it took.
    is_written
        Whether it was written. If not, it is a plan.
    spool
        What keeps the references of many files while they are not written.

    Examples
    --------
    >>> import h5zarr
    >>> cube = h5zarr.combine(["ocean.nc"], along="time")
    >>> cube.outcomes[0].how
    'constant'
    """

    axes: tuple[CubeAxis, ...]
    sources: tuple[str, ...]
    outcomes: tuple[VariableOutcome, ...]
    fitted: Fitted
    provenance: Provenance
    seconds: float = 0
    is_written: bool = False
    spool: object = None

    def __repr__(self) -> str:
        joined = ", ".join(f"{axis.name} ({axis.length:,})" for axis in self.axes)
        how = f"joined along {joined}" if joined else "merged"
        return summary_repr("Cube", counted(len(self.sources), "file"), how, *self._counts())

    def __str__(self) -> str:
        return "\n".join(cube_lines(self))

    def to_json(self) -> dict[str, Json]:
        """Return the result as JSON, for reports."""
        return {
            "axes": [
                {"name": axis.name, "group": axis.folder or "/", "new": axis.is_new, "length": axis.length}
                for axis in self.axes
            ],
            "pieces": [] if self.provenance.cube is None else self.provenance.cube.to_json()["pieces"],
            "variables": [one.to_json() for one in self.outcomes],
            **count_up(self.hierarchy),
            "uneven": self.uneven,
            "problems": [problem.to_json() for problem in self.problems],
            "warnings": [problem.to_json() for problem in self.warnings],
            "seconds": round(self.seconds, 6),
        }

    @property
    def uneven(self) -> list[str]:
        """The paths of arrays whose chunks have different lengths. Not every reader opens them."""
        return [path for path, node in self.arrays().items() if not isinstance(node.grid, RegularGrid)]


def with_recipe(cube: Cube, recipe: Mapping[str, Json], misfits: Sequence[CubeMisfit] = (), archive: str = "") -> Cube:
    """Return a cube with a record of how it is made, of files that do not fit, and of the state of its archive."""
    assert cube.provenance.cube is not None
    layout = replace(cube.provenance.cube, recipe=recipe, misfits=tuple(misfits), archive=archive)
    return replace(cube, provenance=replace(cube.provenance, cube=layout))


class SomeRefused(NotJoinable):
    """Variables that cannot be joined. `outcomes` has all variables, and `axes` the axes."""

    def __init__(self, axes: Sequence[CubeAxis], outcomes: Sequence[VariableOutcome]) -> None:
        self.axes, self.outcomes = tuple(axes), tuple(outcomes)
        refused = [one for one in outcomes if one.how == "refused"]
        more = f" ({counted(len(refused) - 1, 'other variable')} refused, too)" if len(refused) > 1 else ""
        super().__init__(f"{refused[0].path}: {refused[0].notes[0]}{more}", remedy=refused[0].notes[1])


class NothingJoined(NotJoinable):
    """No file has a variable that can be joined."""

    def __init__(self, problems: Sequence[Problem], files: str) -> None:
        what = f"there is no variable to join in {files}, for example because of {problems[0]}"
        super().__init__(what, remedy="h5zarr inspect shows what files have.")


def join_pieces(
    pieces: Sequence[CubePiece],
    along: Sequence[Along],
    inlining: Inlining,
    choices: Choices,
    broken: tuple[Problem, ...] = (),
) -> Cube:
    """Return the cube of all pieces. Raises NotJoinable, which names the files and the reason.

    `broken` names the files that are left out.
    """
    axes = find_axes(pieces, along)
    problems = _merge_problems(pieces)
    left_out = {problem.path for problem in problems}
    order = _in_order(pieces, axes)
    found = align_variables(find_members(pieces, order, axes), pieces, axes)
    members: Variables = {path: some for path, some in found.items() if some and path not in left_out}
    if not members and problems:
        raise NothingJoined(problems, counted(len(pieces), "file"))
    if choices.constant == "along":
        members = spread_differing(members, axes)
    context = Context(
        axes=axes,
        choices=choices,
        times=find_times(members, axes),
        budget=Budget(inlining),
        paths=frozenset(path for piece in pieces for path in piece.variables.paths),
    )
    made = {path: make_variable(path, some, context) for path, some in members.items()}
    outcomes = tuple(one.outcome for one in made.values())
    if any(one.how == "refused" for one in outcomes):
        raise SomeRefused(axes.main, outcomes)
    nodes = _assemble([pieces[number] for number in order], made, axes, choices)
    hierarchy = Hierarchy(
        nodes=nodes,
        urls=tuple(url for number in order for url in pieces[number].hierarchy.urls),
        problems=problems + broken,
    )
    layout = _layout(pieces, order, axes, members)
    if any(piece.opened.cube is not None for piece in pieces):
        hierarchy, states = arrange_files(hierarchy, layout, [pieces[number] for number in order])
    else:
        states = tuple(state for number in order for state in pieces[number].states())
    return Cube(
        axes=axes.main,
        sources=tuple(piece.name for piece in pieces),
        outcomes=outcomes,
        fitted=fit(hierarchy),
        provenance=Provenance(__version__, states, cube=layout),
    )


def _in_order(pieces: Sequence[CubePiece], axes: Axes) -> list[int]:
    """Return the numbers of the pieces in the order of their positions, so that the first file is the earliest."""

    def position(number: int) -> tuple[int, ...]:
        found = [axis.sections[number] for axis in axes.main]
        return (*[one[0].position if one else -1 for one in found], number)

    return sorted(range(len(pieces)), key=position)


def _layout(pieces: Sequence[CubePiece], order: Sequence[int], axes: Axes, variables: Variables) -> CubeLayout:
    """Return the files of all pieces, in the order of their positions. Axes of cubes among them remain axes."""
    lengths = {axis.path: axis.length for axis in axes.by_place.values()}
    inner = {path: one.length_of(path) for one in pieces for path in one.cube_axes if path not in lengths}
    made: list[PieceColumns | CubePieceState] = []
    for number in order:
        at = {
            axis.path: tuple((one.position, one.start, one.length) for one in axis.sections[number])
            for axis in axes.by_place.values()
            if axis.sections[number]
        }
        piece = pieces[number]
        whole = {path: piece.length_of(path) for path in inner}
        at |= {path: ((0, 0, length),) for path, length in whole.items() if length}
        lacks = tuple(path for path in variables if path not in piece.variables.stored)
        if piece.opened.cube is None:
            made.append(CubePieceState(url=piece.opened.source, at=at, lacks=lacks))
        else:
            made.append(piece.opened.cube.columns.moved(at, lacks))
    joined = join_columns(list(_in_columns(made)))
    firsts = [joined.first_positions(axis.path) for axis in axes.main]
    arranged = np.lexsort(firsts[::-1]) if firsts else np.arange(len(joined))
    return CubeLayout(axes={**lengths, **inner}, pieces=joined.take(arranged))


def _in_columns(files: Sequence[PieceColumns | CubePieceState]) -> Iterator[PieceColumns]:
    """Yield files as columns, of which some are in columns already."""
    for _, some in groupby(files, lambda one: isinstance(one, PieceColumns)):
        several = list(some)
        yield from [one for one in several if isinstance(one, PieceColumns)]
        if single := [one for one in several if isinstance(one, CubePieceState)]:
            yield piece_columns(single)


def _assemble(
    pieces: Sequence[CubePiece], made: Mapping[str, Made], axes: Axes, choices: Choices
) -> dict[str, GroupNode | ArrayNode]:
    """Return the nodes of the cube, parents before children."""
    paths = dict.fromkeys(path for piece in pieces for path in piece.variables.paths)
    nodes: dict[str, GroupNode | ArrayNode] = {}
    for path in paths:
        groups = [(piece.name, piece.groups[path]) for piece in pieces if path in piece.groups]
        if groups:
            nodes[path] = _join_groups(path, groups, made, axes, choices)
        elif path in made:
            nodes |= made[path].nodes
    for axis in axes.by_place.values():
        path = axis.path
        if axis.coordinate is not None and path not in nodes:
            nodes[path] = make_inline(axis.coordinate.values, (axis.name,), axis.coordinate.attributes)
    return nodes


def _join_groups(
    path: str, groups: Sequence[tuple[str, GroupNode]], made: Mapping[str, Made], axes: Axes, choices: Choices
) -> GroupNode:
    """Return a group with the attributes and variables of all pieces."""
    attributes, _ = merge(path, [(name, group.attributes) for name, group in groups], choices.attributes)
    prefix = path.rstrip("/") + "/"
    records: dict[str, VariableRecord] = {}
    joined: dict[str, JoinedVariable] = {}
    for at, one in made.items():
        if at.startswith(prefix) and "/" not in (name := at[len(prefix) :]):
            records |= {name: one.records[at]} if at in one.records else {}
            joined |= {} if one.joined is None else {name: one.joined}
    first = groups[0][1].record
    if first is None and not joined and not any(one.parameters for one in records.values()):
        return GroupNode(attributes=attributes)
    first = first or GroupRecord()
    is_classic = all(group.record is not None and group.record.is_classic for _, group in groups)
    record = replace(first, is_classic=is_classic, variables=records, joined=joined)
    return GroupNode(attributes=attributes, record=record)


def _merge_problems(pieces: Sequence[CubePiece]) -> tuple[Problem, ...]:
    """Return the problems of all pieces, each once, with the name of the first file that has it."""
    found: dict[tuple[str, str], Problem] = {}
    for piece in pieces:
        for problem in piece.hierarchy.problems:
            key = problem.path, problem.kind
            if key not in found:
                # The problems of a cube name their files already.
                about = f" ({piece.name})" if piece.opened.cube is None else ""
                found[key] = replace(problem, message=f"{problem.message}{about}")
    return tuple(found.values())
