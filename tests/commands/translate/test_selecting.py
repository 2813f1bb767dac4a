"""A part of a tree: patterns, groups, and the problems that concern it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from h5zarr.commands.translate.selecting import NothingSelected, Selection
from h5zarr.errors import Problem
from h5zarr.tree import HeldBytes, Tree, TreeGroup, Variable

VARIABLE = Variable(dtype=np.dtype("u1"), shape=(), dimensions=(), storage=HeldBytes(b"1"))
PATHS = ["/time", "/sst", "/lat_bnds", "/forecast/sst", "/forecast/deep/sst", "/forecast/deep/u", "/forecasts/v"]
GROUPS = ["/", "/forecast", "/forecast/deep", "/forecasts", "/empty"]


def select(problems: tuple[str, ...] = (), warnings: tuple[str, ...] = (), **choices: object) -> Tree:
    nodes = {path: TreeGroup() for path in GROUPS} | dict.fromkeys(PATHS, VARIABLE)
    tree = Tree(
        nodes=dict(sorted(nodes.items())),
        sources=("file",),
        problems=tuple(Problem(path, "kind", "message") for path in problems),
        warnings=tuple(Problem(path, "kind", "message") for path in warnings),
    )
    return Selection(**choices).apply(tree)  # type: ignore[arg-type]


def variables(tree: Tree) -> set[str]:
    return {path for path, node in tree.nodes.items() if isinstance(node, Variable)}


def test_without_a_choice_everything_stays() -> None:
    tree = select(problems=("/a", "/"))
    assert set(tree.nodes) == {*PATHS, *GROUPS}
    assert len(tree.problems) == 2


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        (["sst"], {"/sst", "/forecast/sst", "/forecast/deep/sst"}),
        (["/sst"], {"/sst"}),
        (["/*/sst"], {"/forecast/sst"}),
        (["/forecast"], {"/forecast/sst", "/forecast/deep/sst", "/forecast/deep/u"}),
        (["/forecast/**/u"], {"/forecast/deep/u"}),
        (["l[ao]t_*", "time"], {"/lat_bnds", "/time"}),
        (["*"], set(PATHS)),
    ],
)
def test_only_what_is_included_stays(include: list[str], expected: set[str]) -> None:
    assert variables(select(include=include)) == expected


def test_groups_in_which_nothing_is_left_go_with_include_only() -> None:
    included = select(include=["/forecast/deep/u"])
    assert set(included.nodes) == {"/", "/forecast", "/forecast/deep", "/forecast/deep/u"}
    assert "/empty" in select(exclude=["sst"]).nodes


def test_what_is_excluded_goes_even_if_it_is_included() -> None:
    assert variables(select(include=["sst"], exclude=["/forecast"])) == {"/sst"}


def test_a_group_becomes_the_root() -> None:
    for group in ("/forecast", "forecast", "/forecast/"):
        tree = select(group=group)
        assert list(tree.nodes) == ["/", "/deep", "/deep/sst", "/deep/u", "/sst"]


def test_patterns_are_seen_from_the_group() -> None:
    assert variables(select(group="/forecast", include=["/sst"])) == {"/sst"}


@pytest.mark.parametrize(
    "choices", [{"group": "/none"}, {"group": "/sst"}, {"include": ["none"]}, {"include": ["SST"]}]
)
def test_what_is_not_there_is_an_error(choices: dict[str, object]) -> None:
    with pytest.raises(NothingSelected) as caught:
        select(**choices)  # type: ignore[arg-type]
    assert "h5zarr inspect" in caught.value.remedy


def test_problems_of_what_is_left_out_are_left_out() -> None:
    tree = select(problems=("/", "/sst", "/forecast/x", "/time@units"), warnings=("/sst", "/time"), include=["time"])
    assert [problem.path for problem in tree.problems] == ["/", "/time@units"]
    assert [problem.path for problem in tree.warnings] == ["/time"]


def test_problems_stay_with_their_group() -> None:
    tree = select(problems=("/sst", "/forecast/bad", "/forecasts/bad"), group="/forecast")
    assert len(tree.problems) == 1


def test_coordinates_come_along_unless_they_are_excluded() -> None:
    temp = replace(VARIABLE, dimensions=("time", "x"), attributes={"coordinates": "lat other"})
    nodes = {"/": TreeGroup(), "/temp": temp, **dict.fromkeys(["/time", "/lat", "/lon"], VARIABLE)}
    tree = Tree(nodes=nodes, sources=("file",))
    assert variables(Selection(include=["temp"]).apply(tree)) == {"/temp", "/time", "/lat"}
    assert variables(Selection(include=["temp"], exclude=["lat"]).apply(tree)) == {"/temp", "/time"}
