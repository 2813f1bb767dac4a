"""Select the part of a tree that the user asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from h5zarr.errors import ArgumentError, Problem
from h5zarr.patterns import compile_patterns
from h5zarr.tree import Tree, TreeGroup, Variable


class NothingSelected(ArgumentError):
    """The requested part is not in the file."""

    kind = "selection"
    remedy = (
        "Names are case-sensitive, and a pattern without a leading slash matches at any depth. "
        "h5zarr inspect lists the names."
    )


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
        """Return the selected part, including its problems."""
        root = "/" + self.group.strip("/")
        if not isinstance(tree.nodes.get(root), TreeGroup):
            raise NothingSelected(f"the file has no group {root}", remedy="h5zarr inspect lists the groups.")
        below = {moved: node for path, node in tree.nodes.items() if (moved := _below(path, root)) is not None}
        wanted = self._wanted(below)
        nodes = {path: node for path, node in below.items() if isinstance(node, TreeGroup) or wanted(path)}
        if self.exclude and not _has_variable(nodes) and _has_variable(below):
            raise NothingSelected(
                f"{', '.join(self.exclude)} excludes every array",
                remedy="Exclude less: h5zarr inspect lists the names.",
            )
        if self.include:
            nodes = _without_idle_groups(nodes)
        return replace(
            tree,
            nodes=nodes,
            problems=_kept(tree.problems, root, wanted),
            warnings=_kept(tree.warnings, root, wanted),
        )

    def _wanted(self, nodes: Mapping[str, TreeGroup | Variable]) -> Callable[[str], bool]:
        """Return a predicate for paths. Raises NothingSelected if nothing matches `include`."""
        excluded = compile_patterns(self.exclude)
        if not self.include:
            return lambda path: not excluded(path)
        included = compile_patterns(self.include)
        named = [path for path, node in nodes.items() if isinstance(node, Variable) and included(path)]
        if not named:
            raise NothingSelected(f"nothing matches {', '.join(self.include)}")
        along = {coordinate for path in named for coordinate in _coordinates(path, nodes)}
        return lambda path: (included(path) or path in along) and not excluded(path)


def _has_variable(nodes: Mapping[str, TreeGroup | Variable]) -> bool:
    return any(isinstance(node, Variable) for node in nodes.values())


def _coordinates(path: str, nodes: Mapping[str, TreeGroup | Variable]) -> Iterator[str]:
    """Yield the paths of variables named like a dimension of this one, or listed in its `coordinates`.

    The search starts in its own group and continues in the parent groups, whose dimensions are in scope.
    """
    variable = nodes[path]
    assert isinstance(variable, Variable)
    listed = variable.attributes.get("coordinates")
    names = [*variable.dimensions, *(listed.split() if isinstance(listed, str) else ())]
    for name in names:
        group = path
        while group:
            group = group.rpartition("/")[0]
            if isinstance(nodes.get(f"{group}/{name}"), Variable):
                yield f"{group}/{name}"
                break


def _below(path: str, root: str) -> str | None:
    """Return `path` relative to the group `root`; None if it is not below it."""
    if root == "/":
        return path
    if path == root:
        return "/"
    return path.removeprefix(root) if path.startswith(f"{root}/") else None


def _without_idle_groups(nodes: dict[str, TreeGroup | Variable]) -> dict[str, TreeGroup | Variable]:
    """Return nodes without the groups that have become empty."""
    used = {"/"}
    for path, node in nodes.items():
        while isinstance(node, Variable) and path:
            used.add(path)
            path = path.rpartition("/")[0]
    return {path: node for path, node in nodes.items() if path in used}


def _kept(problems: tuple[Problem, ...], root: str, wanted: Callable[[str], bool]) -> tuple[Problem, ...]:
    """Return the problems of the selected part and of the file as a whole."""
    return tuple(
        problem
        for problem in problems
        if problem.path == "/" or ((moved := _below(problem.path.split("@")[0], root)) is not None and wanted(moved))
    )
