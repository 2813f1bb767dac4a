"""Select the part of a file, or of references, that the user asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from h5zarr.errors import ArgumentError, Problem
from h5zarr.patterns import compile_patterns
from h5zarr.tree import Tree, Variable
from h5zarr.zarr_model.hierarchy import ArrayNode, Hierarchy


class NothingSelected(ArgumentError):
    """The requested part is not in the file."""

    kind = "selection"
    remedy = (
        "Names are case-sensitive, and a pattern without a leading slash matches at any depth. "
        "h5zarr inspect lists the names."
    )


@dataclass(frozen=True, slots=True)
class _Array:
    """What a selection needs to know about an array: the names of its dimensions, and its attribute `coordinates`."""

    dimensions: tuple[str, ...]
    coordinates: object


_Whole = TypeVar("_Whole", Tree, Hierarchy)

Nodes: TypeAlias = Mapping[str, _Array | None]
"""Arrays by path; None for a group."""


@dataclass(frozen=True, slots=True)
class _Selected:
    """The selected nodes: their old paths by their new ones, and a predicate for new paths."""

    root: str
    paths: Mapping[str, str]
    wanted: Callable[[str], bool]

    def kept(self, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
        """Return the problems of the selected part and of the file as a whole."""

        def is_kept(problem: Problem) -> bool:
            moved = _below(problem.path.split("@")[0], self.root)
            return problem.path == "/" or (moved is not None and self.wanted(moved))

        return tuple(filter(is_kept, problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Variables below `group`, which becomes the root, that match one of `include` (all, if it is empty) and none of
    `exclude`. A pattern that matches a group matches everything in it. Coordinates of selected variables are
    included.
    """

    group: str = "/"
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def apply(self, tree: Tree) -> Tree:
        """Return the selected part of a file, including its problems."""
        arrays = {
            path: _Array(node.dimensions, node.attributes.get("coordinates"))
            for path, node in tree.nodes.items()
            if isinstance(node, Variable)
        }
        return self._take(tree, arrays)

    def apply_to_references(self, hierarchy: Hierarchy) -> Hierarchy:
        """Return the selected part of references, including their problems."""
        if self == Selection():
            return hierarchy
        arrays = {
            path: _Array(node.dimension_names, node.attributes.get("coordinates"))
            for path, node in hierarchy.nodes.items()
            if isinstance(node, ArrayNode)
        }
        return self._take(hierarchy, arrays)

    def _take(self, whole: _Whole, arrays: Mapping[str, _Array]) -> _Whole:
        """Return the selected part of a tree or hierarchy with these arrays."""
        found = self._select({path: arrays.get(path) for path in whole.nodes})
        return replace(
            whole,
            nodes={path: whole.nodes[old] for path, old in found.paths.items()},
            problems=found.kept(whole.problems),
            warnings=found.kept(whole.warnings),
        )

    def _select(self, nodes: Nodes) -> _Selected:
        """Return what is selected. Raises NothingSelected if there is nothing."""
        root = "/" + self.group.strip("/")
        if nodes.get(root, "") is not None:
            raise NothingSelected(f"the file has no group {root}", remedy="h5zarr inspect lists the groups.")
        old = {moved: path for path in nodes if (moved := _below(path, root)) is not None}
        below = {moved: nodes[path] for moved, path in old.items()}
        wanted = self._wanted(below)
        kept: Nodes = {path: node for path, node in below.items() if node is None or wanted(path)}
        if self.exclude and not any(kept.values()) and any(below.values()):
            raise NothingSelected(
                f"{', '.join(self.exclude)} excludes every array",
                remedy="Exclude less: h5zarr inspect lists the names.",
            )
        if self.include:
            kept = _without_idle_groups(kept)
        return _Selected(root, {path: old[path] for path in kept}, wanted)

    def _wanted(self, nodes: Nodes) -> Callable[[str], bool]:
        """Return a predicate for paths. Raises NothingSelected if nothing matches `include`."""
        excluded = compile_patterns(self.exclude)
        if not self.include:
            return lambda path: not excluded(path)
        included = compile_patterns(self.include)
        named = [path for path, node in nodes.items() if node is not None and included(path)]
        if not named:
            raise NothingSelected(f"nothing matches {', '.join(self.include)}")
        along = {coordinate for path in named for coordinate in _coordinates(path, nodes)}
        return lambda path: (included(path) or path in along) and not excluded(path)


def _coordinates(path: str, nodes: Nodes) -> Iterator[str]:
    """Yield the paths of variables named like a dimension of this one, or listed in its `coordinates`.

    The search starts in its own group and continues in the parent groups, whose dimensions are in scope.
    """
    array = nodes[path]
    assert array is not None
    listed = array.coordinates.split() if isinstance(array.coordinates, str) else ()
    for name in (*array.dimensions, *listed):
        group = path
        while group:
            group = group.rpartition("/")[0]
            if nodes.get(f"{group}/{name}") is not None:
                yield f"{group}/{name}"
                break


def _below(path: str, root: str) -> str | None:
    """Return `path` relative to the group `root`; None if it is not below it."""
    if root == "/":
        return path
    if path == root:
        return "/"
    return path.removeprefix(root) if path.startswith(f"{root}/") else None


def _without_idle_groups(nodes: Nodes) -> Nodes:
    """Return nodes without the groups that have become empty."""
    used = {"/"}
    for path, node in nodes.items():
        while node is not None and path:
            used.add(path)
            path = path.rpartition("/")[0]
    return {path: node for path, node in nodes.items() if path in used}
