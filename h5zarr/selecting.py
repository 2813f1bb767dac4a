"""A part of a tree, as the user wants it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from h5zarr.errors import H5ZarrError, Problem
from h5zarr.patterns import compile_patterns
from h5zarr.tree import Tree, TreeGroup, Variable


class NothingSelected(H5ZarrError):
    """What the user asks for is not in the file."""

    kind = "selection"
    remedy = (
        "Names are case-sensitive, and a pattern without a leading slash matches at any depth. "
        "h5zarr inspect lists the names."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Variables below `group`, which becomes the root, that match one of `include` (all, if there is none) but none of
    `exclude`. A pattern that matches a group matches all that is in it.
    """

    group: str = "/"
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def apply(self, tree: Tree) -> Tree:
        """Return the selected part, problems included."""
        root = "/" + self.group.strip("/")
        if not isinstance(tree.nodes.get(root), TreeGroup):
            raise NothingSelected(f"the file has no group {root}")
        wanted = self._wanted()
        nodes = {
            moved: node
            for path, node in tree.nodes.items()
            if (moved := _below(path, root)) is not None and (isinstance(node, TreeGroup) or wanted(moved))
        }
        if self.include and not any(isinstance(node, Variable) for node in nodes.values()):
            raise NothingSelected(f"nothing matches {', '.join(self.include)}")
        if self.include:
            nodes = _without_idle_groups(nodes)
        return replace(
            tree,
            nodes=nodes,
            problems=_kept(tree.problems, root, wanted),
            warnings=_kept(tree.warnings, root, wanted),
        )

    def _wanted(self) -> Callable[[str], bool]:
        included, excluded = compile_patterns(self.include), compile_patterns(self.exclude)
        return lambda path: (not self.include or included(path)) and not excluded(path)


def _below(path: str, root: str) -> str | None:
    """Return `path` as seen from the group `root`; None where it is elsewhere."""
    if root == "/":
        return path
    if path == root:
        return "/"
    return path.removeprefix(root) if path.startswith(f"{root}/") else None


def _without_idle_groups(nodes: dict[str, TreeGroup | Variable]) -> dict[str, TreeGroup | Variable]:
    """Return nodes without the groups in which nothing is left."""
    used = {"/"}
    for path, node in nodes.items():
        while isinstance(node, Variable) and path:
            used.add(path)
            path = path.rpartition("/")[0]
    return {path: node for path, node in nodes.items() if path in used}


def _kept(problems: tuple[Problem, ...], root: str, wanted: Callable[[str], bool]) -> tuple[Problem, ...]:
    """Return the problems that concern the selected part, or the file as a whole."""
    return tuple(
        problem
        for problem in problems
        if problem.path == "/" or ((moved := _below(problem.path.split("@")[0], root)) is not None and wanted(moved))
    )
