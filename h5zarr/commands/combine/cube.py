"""From pieces to one hierarchy: the axes, then each variable, then groups and attributes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from h5zarr import __version__
from h5zarr.commands.combine.axes import CubeAxis, NotJoinable, find_axes
from h5zarr.commands.combine.cube_members import Member, check_constant, expand, find_times, is_same_part
from h5zarr.commands.combine.outcomes import join_variable
from h5zarr.commands.combine.pieces import CubePiece
from h5zarr.commands.combine.times import bounds_of
from h5zarr.commands.translate.fitted_result import FittedResult
from h5zarr.commands.translate.translation_text import Phrase, count_up, held_text, problem_lines
from h5zarr.containers.container import Fitted
from h5zarr.containers.fitting import fit
from h5zarr.containers.provenance import Provenance
from h5zarr.display import counted, readable, shortened, summary_repr
from h5zarr.encode.inlining import Budget, Inlining
from h5zarr.errors import Problem
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, GroupRecord, Hierarchy, Json, Manifest, VariableRecord


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Cube(FittedResult):
    """One dataset of many files: its axes, Zarr metadata and references, and the files they refer to.

    `problems` lists what is left out. `sources` has the names of the files, in the order given.
    """

    axes: tuple[CubeAxis, ...]
    sources: tuple[str, ...]
    fitted: Fitted
    provenance: Provenance
    seconds: float = 0

    def __repr__(self) -> str:
        joined = ", ".join(f"{axis.name} ({axis.length:,})" for axis in self.axes)
        return summary_repr("Cube", counted(len(self.sources), "file"), f"joined along {joined}", *self._counts())

    def __str__(self) -> str:
        return "\n".join(cube_lines(self))

    def to_json(self) -> dict[str, Json]:
        """Return the result as JSON, for reports."""
        return {
            "sources": list(self.sources),
            "axes": [
                {"name": axis.name, "new": axis.is_new, "length": axis.length, "lengths": list(axis.lengths)}
                for axis in self.axes
            ],
            "slots": [list(axis.slot) for axis in self.axes],
            **count_up(self.hierarchy),
            "uneven": uneven_arrays(self),
            "problems": [problem.to_json() for problem in self.problems],
            "warnings": [problem.to_json() for problem in self.warnings],
            "seconds": round(self.seconds, 6),
        }


def uneven_arrays(cube: Cube) -> list[str]:
    """Return the paths of arrays whose chunks have different lengths. Not every reader opens them."""
    return [path for path, node in cube.arrays().items() if not isinstance(node.grid, RegularGrid)]


def cube_lines(cube: Cube, *, quiet: bool = False, phrase: Phrase = str) -> Iterator[str]:
    """Return all lines about a cube; only the problems if `quiet`."""
    where = counted(len(cube.sources), "file")
    yield from problem_lines(where, cube.problems, phrase=phrase)
    if quiet:
        return
    yield from problem_lines(where, cube.warnings, "warning: ", phrase=phrase)
    for axis in cube.axes:
        kind = "new dimension" if axis.is_new else "dimension"
        yield f"{kind} {readable(axis.name)}: {axis.length:,} in {counted(len(axis.lengths), 'part')}"
    if uneven := uneven_arrays(cube):
        names = shortened(", ".join(map(readable, uneven)), 200)
        yield f"chunks of different lengths in {names}:"
        setting = 'zarr.config.set({"array.rectilinear_chunks": True})'
        yield f'  engine="h5zarr" opens them, and so does zarr from version 3.2 on with {setting}'
    yield f"{where} joined · {held_text(cube.hierarchy)} · {cube.seconds:.2f} s"


def join_pieces(
    pieces: Sequence[CubePiece], along: Sequence[str], inlining: Inlining, broken: tuple[Problem, ...] = ()
) -> Cube:
    """Return the cube of all pieces. Raises NotJoinable, which names the files and the reason.

    `broken` names the files that are left out.
    """
    axes = find_axes(pieces, along)
    variables = _share_equal(_find_members(pieces, axes), axes)
    times = find_times({path: members for path, members in variables.items() if _is_joined(members, axes)})
    budget = Budget(inlining)
    nodes: dict[str, GroupNode | ArrayNode] = {}
    for path in _all_paths(pieces):
        if path in variables:
            members = variables[path]
            if _is_joined(members, axes):
                nodes[path] = join_variable(path, members, axes, times, budget)
            else:
                check_constant(path, members)
                nodes[path] = _shift_urls(members[0])
        else:
            nodes[path] = _join_groups([piece.groups[path] for piece in pieces if path in piece.groups], axes)
    problems = _merge_problems(pieces)
    urls = tuple(url for piece in pieces for url in piece.hierarchy.urls)
    states = tuple(state for piece in pieces for state in piece.states())
    kept = {path: node for path, node in nodes.items() if path not in {problem.path for problem in problems}}
    return Cube(
        axes=axes,
        sources=tuple(piece.name for piece in pieces),
        fitted=fit(Hierarchy(nodes=kept, urls=urls, problems=problems + broken)),
        provenance=Provenance(__version__, states),
    )


def _all_paths(pieces: Sequence[CubePiece]) -> list[str]:
    """Return the paths of all nodes, in the order of the first piece that has them, parents before children."""
    return list(dict.fromkeys(path for piece in pieces for path in piece.hierarchy.nodes))


def _find_members(pieces: Sequence[CubePiece], axes: Sequence[CubeAxis]) -> dict[str, list[Member]]:
    """Return the variables by path, with the pieces that have them."""
    found: dict[str, list[Member]] = {}
    first_url = 0
    new = [axis for axis in axes if axis.is_new]
    for number, piece in enumerate(pieces):
        coordinates = _coordinates(piece)
        for path, node in piece.arrays.items():
            name = path.rpartition("/")[2]
            gained = [axis for axis in new if path not in coordinates or name == axis.name]
            made = expand(node, [axis for axis in gained if node.dimension_names != (axis.name,)])
            slots = tuple(
                (made.dimension_names.index(axis.name), axis.slot[number])
                for axis in axes
                if axis.name in made.dimension_names
            )
            member = Member(piece=piece, path=path, node=made, slots=slots, first_url=first_url)
            found.setdefault(path, []).append(member)
        first_url += len(piece.hierarchy.urls)
    return found


def _coordinates(piece: CubePiece) -> set[str]:
    """Return the paths of coordinates by xarray's rules: named like a dimension, or listed in `coordinates`."""
    found = set()
    for path, node in piece.hierarchy.nodes.items():
        folder = path if isinstance(node, GroupNode) else path.rpartition("/")[0]
        named = node.attributes.get("coordinates")
        if isinstance(named, str):
            found |= {f"{folder.rstrip('/')}/{name}" for name in named.split()}
        if isinstance(node, ArrayNode) and path.rpartition("/")[2] in node.dimension_names:
            found.add(path)
    return found


def _is_joined(members: Sequence[Member], axes: Sequence[CubeAxis]) -> bool:
    names = {name for one in members for name in one.node.dimension_names}
    return any(axis.name in names for axis in axes)


def _share_equal(variables: Mapping[str, Sequence[Member]], axes: Sequence[CubeAxis]) -> dict[str, list[Member]]:
    """Return the variables with one member for each part of them.

    Raises NotJoinable if two pieces have the same part of the data, or different values of a coordinate.
    """
    found: dict[str, list[Member]] = {}
    for path, members in variables.items():
        first: dict[tuple[tuple[int, int], ...], Member] = {}
        for one in members if _is_joined(members, axes) else ():
            other = first.setdefault(one.slots, one)
            if other is one:
                continue
            names = f"{other.piece.name} and {one.piece.name}"
            if not _may_share(one, axes):
                raise NotJoinable(f"{names}: both have the same part of {path}", remedy="Leave out one of the files.")
            if not is_same_part(other, one):
                raise NotJoinable(f"{names}: {path} differs between them", remedy="Leave out one of the files.")
        found[path] = list(first.values()) if first else list(members)
    return found


def _may_share(member: Member, axes: Sequence[CubeAxis]) -> bool:
    """Return whether several pieces may have the same part of a variable: a coordinate, bounds, or without an axis."""
    arrays = member.piece.arrays.values()
    is_bounds = member.path.rpartition("/")[2] in {bounds_of(node.attributes) for node in arrays}
    return len(member.slots) < len(axes) or len(member.node.dimension_names) == 1 or is_bounds


def _shift_urls(member: Member) -> ArrayNode:
    manifest = member.node.manifest
    shifted = Manifest(
        index=manifest.index,
        address=manifest.address,
        nbytes=manifest.nbytes,
        source=manifest.source + member.first_url,
        inline=manifest.inline,
    )
    return replace(member.node, manifest=shifted)


def _join_groups(groups: Sequence[GroupNode], axes: Sequence[CubeAxis]) -> GroupNode:
    """Return a group with the attributes and variables of all pieces. If they differ, the first piece decides."""
    attributes: dict[str, Json] = {}
    for group in groups:
        for name, value in group.attributes.items():
            attributes.setdefault(name, value)
    first = groups[0].record
    if first is None:
        return GroupNode(attributes=attributes)
    variables: dict[str, VariableRecord] = {}
    for group in reversed(groups):
        variables |= {} if group.record is None else dict(group.record.variables)
    is_classic = all(group.record is not None and group.record.is_classic for group in groups)
    grows = tuple(dict.fromkeys((*first.unlimited, *[axis.name for axis in axes if axis.name in first.unlimited])))
    record: GroupRecord = replace(first, unlimited=grows, is_classic=is_classic, variables=variables)
    return GroupNode(attributes=attributes, record=record)


def _merge_problems(pieces: Sequence[CubePiece]) -> tuple[Problem, ...]:
    """Return the problems of all pieces, each once, with the name of the first file that has it."""
    found: dict[str, Problem] = {}
    for piece in pieces:
        for problem in piece.hierarchy.problems:
            key = json.dumps([problem.path, problem.kind])
            found.setdefault(key, replace(problem, message=f"{problem.message} ({piece.name})"))
    return tuple(found.values())
