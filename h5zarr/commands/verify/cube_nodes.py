"""Compare everything but the values of a cube with its files, and plan how to compare those."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from h5zarr.commands.verify.comparing import Planned, Run
from h5zarr.commands.verify.cube_comparing import CubeComparer
from h5zarr.commands.verify.cube_places import StoredVariable, joined_variables
from h5zarr.commands.verify.cube_values import CubeArray, not_equal_attributes
from h5zarr.commands.verify.differences import Difference, Unreadable
from h5zarr.commands.verify.verified_arrays import Verified, verify_group
from h5zarr.errors import H5ZarrError
from h5zarr.zarr_model.hierarchy import GroupNode
from h5zarr.zarr_model.joined import JoinedVariable, is_part

_UNOPENED = (KeyError, OSError, RuntimeError, Unreadable)


class CubeNodes(NamedTuple):
    """The results for groups and arrays so far, and the paths that are in no file."""

    groups: list[Verified]
    arrays: list[Planned]
    not_found: list[str]


def verify_cube_nodes(comparer: CubeComparer) -> CubeNodes:
    """Compare the metadata of all nodes. Raises H5ZarrError if the first file cannot be opened."""
    groups = [
        _verify_group(path, node, comparer)
        for path, node in comparer.work.opened.hierarchy.nodes.items()
        if isinstance(node, GroupNode) and not is_part(path)
    ]
    made = CubeNodes(groups, [], [])
    for path, stored in comparer.stored.items():
        planned = _plan(path, stored, comparer)
        if planned is None:
            made.not_found.append(path)
        else:
            made.arrays.append(planned)
    for path, joined in joined_variables(comparer.work.opened.hierarchy):
        made.arrays.extend(Planned(one, []) for one in _verify_coverage(path, joined, comparer))
    return made


def ordered_runs(planned: list[Planned], comparer: CubeComparer) -> list[Run]:
    """Return all runs in the order of their files, so that each file is opened as seldom as possible."""

    def first_piece(run: Run) -> int:
        stored = comparer.stored[run.path]
        cell = next(stored.cells(comparer.regions(run)[0].part), None)
        return cell.pieces[0] if cell is not None and cell.pieces else 0

    return sorted((run for one in planned for run in one.runs), key=first_piece)


def _verify_group(path: str, node: GroupNode, comparer: CubeComparer) -> Verified:
    """Return how the attributes of a group differ from those of the first file that has it.

    The cube may lack some of them, and have more from other files.
    """
    for number in range(len(comparer.layout.pieces)):
        truth = comparer.truths.open(number)
        try:
            expected = dict(truth.attributes(comparer.truths.place(path).rstrip("/") or "/"))
        except _UNOPENED:
            continue
        both = node.attributes.keys() & expected.keys()
        ours = {name: value for name, value in node.attributes.items() if name in both}
        found = verify_group(path, ours, iter((name, expected[name]) for name in both))
        found.differences = [f"{one}, in {comparer.truths.name(number)}" for one in sorted(found.differences)]
        return found
    return Verified(path, skipped="no library can open this group in any file")


def _plan(path: str, stored: StoredVariable, comparer: CubeComparer) -> Planned | None:
    """Return the differences of an array apart from values, and how to compare these; None if no file has it."""
    wrong = _place_differs(stored, comparer)
    if wrong is not None:
        return Planned(Verified(path, differences=[wrong]), [])
    if _is_made(stored, comparer):
        return Planned(Verified(path, skipped="it was made when the files were joined, and is in none of them"), [])
    try:
        array = comparer.describe(path)
        differences = _find_attributes(array, comparer)
    except Unreadable as error:
        return Planned(Verified(path, skipped=str(error)), [])
    except H5ZarrError as error:
        return Planned(Verified(path, error=str(error)), [])
    if differences is None:
        return None
    runs, total = comparer.plan(path)
    return Planned(Verified(path, total=total, differences=differences), runs)


def _place_differs(stored: StoredVariable, comparer: CubeComparer) -> str | None:
    """Return how the place of an array contradicts the axes of the cube."""
    shape = stored.node.shape
    if stored.boxes is not None:
        if stored.joined[-1] >= len(shape):
            return f"it has {len(shape)} dimensions, which do not fit {stored.variable}"
        ends = (stored.boxes[:, :, 1] + stored.boxes[:, :, 2]).max(axis=0, initial=0).tolist()
        for axis, end in zip(stored.joined, ends, strict=True):
            if end > shape[axis]:
                name = stored.node.dimension_names[axis]
                return f"length of {name} is {shape[axis]}, expected at least {end} for {stored.variable}"
        return None
    for number, along in stored.axes.items():
        if shape[number] != along.edges[-1]:
            name = stored.node.dimension_names[number]
            return f"length of {name} is {shape[number]}, expected {along.edges[-1]}"
    return None


def _is_made(stored: StoredVariable, comparer: CubeComparer) -> bool:
    """Return whether no file has a coordinate: it comes from the names or attributes of the files."""
    if stored.path not in comparer.layout.axes or stored.node.manifest.count:
        return False
    with_axis = (number for number, piece in enumerate(comparer.layout.pieces) if stored.path in piece.at)
    first = next(with_axis, None)
    try:
        return first is None or comparer.truths.find(first, stored.path) is None
    except Unreadable:
        return False


def _find_attributes(array: CubeArray, comparer: CubeComparer) -> list[str] | None:
    """Return how attributes and dimension names differ from those of the first file; None if no file has the variable.

    If several files have the first part, the attributes are those of one of them.
    """
    for cell in array.stored.cells(array.stored.whole):
        found: list[list[str]] = []
        for file in comparer.files(array, cell):
            some: list[Difference] = list(not_equal_attributes(array.node, file.attributes))
            found.append([f"{one}, in {comparer.truths.name(file.number)}" for one in some])
            if not some or cell.pieces is None:
                break
        if found:
            return min(found, key=len)
    return None if array.node.grid.chunk_count and 0 not in array.node.shape else []


def _verify_coverage(path: str, joined: JoinedVariable, comparer: CubeComparer) -> Iterator[Verified]:
    """Yield a result for a joined variable if a file has a part of it that none of its arrays has."""
    parts = [one for one in comparer.stored.values() if one.variable == path and one.boxes is not None]
    if len(parts) < len(joined.parts):
        yield Verified(path, differences=["an array that should have a part of it is missing"])
        return
    for start, pieces in _uncovered(joined, parts):
        for number in pieces:
            if comparer.truths.find(number, path) is not None:
                where = f"at {list(start)}"
                what = f"no array has the part {where}, which is in {comparer.truths.name(number)}"
                yield Verified(path, differences=[what])
                return


def _uncovered(joined: JoinedVariable, parts: list[StoredVariable]) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """Yield the start of each range along the joined axes that is in no box, and the files that may have it."""
    axes = [parts[0].axes.get(axis) for axis in joined.axes] if parts else []
    if not parts or None in axes:
        return
    edges = []
    for at, axis in enumerate(axes):
        assert axis is not None
        starts = np.concatenate([one.boxes[:, at, 0] for one in parts if one.boxes is not None])
        ends = np.concatenate([one.boxes[:, at, 0] + one.boxes[:, at, 2] for one in parts if one.boxes is not None])
        edges.append(np.unique(np.concatenate((starts, ends, axis.edges))))
    covered = np.zeros([len(one) - 1 for one in edges], bool)
    for one in parts:
        for box in one.boxes if one.boxes is not None else ():
            begin = [int(np.searchsorted(edge, box[at, 0])) for at, edge in enumerate(edges)]
            end = [int(np.searchsorted(edge, box[at, 0] + box[at, 2])) for at, edge in enumerate(edges)]
            covered[tuple(map(slice, begin, end))] = True
    for index in np.argwhere(~covered).tolist():
        start = tuple(int(edge[at]) for edge, at in zip(edges, index, strict=True))
        found = [next(axis.split(at, at + 1))[2] for axis, at in zip(axes, start, strict=True) if axis is not None]
        yield start, sorted(set(found[0]).intersection(*found[1:]))
