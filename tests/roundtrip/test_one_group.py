"""A group that is scanned alone looks the same as in the whole file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from h5zarr.commands.translate import translate as module
from h5zarr.errors import H5ZarrError, Problem
from h5zarr.formats import scan_any
from h5zarr.hdf5.model import H5File
from h5zarr.hdf5.scope import Scope
from h5zarr.io.source import open_source
from h5zarr.netcdf3.classic_file import ClassicFile
from h5zarr.netcdf4.certainty import is_certain
from h5zarr.netcdf4.dimensions import Dimensions
from h5zarr.netcdf4.walk import walk
from h5zarr.opening import Opened, open_hierarchy
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Manifest
from tests.collections_of_files import any_samples, any_shared, sample_files
from tests.containers.hierarchies import assert_same_node
from tests.netcdf4.random_files import make_file

_MOST_GROUPS = 40  # per file


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Counter[bool]:
    """How often a group could be scanned alone, and how often not."""
    counts: Counter[bool] = Counter()
    original = module.is_certain

    def is_certain(file: H5File, *others: Any) -> bool:
        found = original(file, *others)
        counts[found] += 1
        return found

    monkeypatch.setattr(module, "is_certain", is_certain)
    return counts


def check(path: Path) -> None:
    try:
        whole = open_hierarchy(path)
    except H5ZarrError:
        return
    groups = [at for at, node in whole.hierarchy.nodes.items() if isinstance(node, GroupNode)]
    for group in groups[: _MOST_GROUPS // 2] + groups[_MOST_GROUPS // 2 :][-_MOST_GROUPS // 2 :]:
        part = open_hierarchy(path, group=group, is_deep=False)
        try:
            _compare(whole, part, group, {*groups, *_closed_groups(path, group)} - {group})
        finally:
            part.close()
    whole.close()


def _compare(whole: Opened, part: Opened, group: str, closed: set[str]) -> None:
    members = _members(whole, group)
    assert list(_members(part, group)) == list(members)
    for path, node in members.items():
        assert_same_node(node, _renumbered(part.hierarchy.nodes[path], part.sources.urls, whole.sources.urls))
        if path != group:
            assert repr(part.hierarchy.record_of(path)) == repr(whole.hierarchy.record_of(path))
    one, other = (opened.hierarchy.nodes[group] for opened in (whole, part))
    assert isinstance(one, GroupNode)
    assert isinstance(other, GroupNode)
    assert repr(one.record) == repr(other.record)
    for name in ("problems", "warnings"):
        every = [one for one in getattr(whole.hierarchy, name) if _is_about(one, group) and _path_of(one) not in closed]
        assert [one for one in getattr(part.hierarchy, name) if _is_about(one, group)] == every


def _closed_groups(path: Path, group: str) -> set[str]:
    """Return the paths of groups that a scan of one group does not enter."""
    with open_source(path) as source:
        file = scan_any(source, scope=Scope.of(group, is_deep=False))
    if isinstance(file, ClassicFile) or not is_certain(file, Scope.of(group, is_deep=False)):
        return set()
    return {file.paths[address] for address in file.unscanned}


def _renumbered(node: ArrayNode | GroupNode, urls: Sequence[str], wanted: Sequence[str]) -> ArrayNode | GroupNode:
    """Return a node with the numbers that its files have in the whole file."""
    if isinstance(node, GroupNode) or not node.manifest.count:
        return node
    table = np.array([wanted.index(url) if url in wanted else -1 for url in urls], np.int32)
    manifest = node.manifest
    columns = {name: getattr(manifest, name) for name in ("index", "address", "nbytes", "inline")}
    source = table[manifest.source]
    return replace(node, manifest=Manifest(source=source if isinstance(source, np.ndarray) else int(source), **columns))


def _members(opened: Opened, group: str) -> dict[str, ArrayNode | GroupNode]:
    """Return the group and its arrays."""
    found = opened.hierarchy.nodes.items()
    parent = {path: path.rpartition("/")[0] or "/" for path, _ in found}
    return {
        path: node for path, node in found if path == group or (isinstance(node, ArrayNode) and parent[path] == group)
    }


def _is_about(problem: Problem, group: str) -> bool:
    path = _path_of(problem)
    return path == group or (path.rpartition("/")[0] or "/") == group


def _path_of(problem: Problem) -> str:
    return problem.path.partition("@")[0]


@pytest.mark.parametrize("path", any_samples())
def test_groups_of_samples(path: Path) -> None:
    check(path)


@pytest.mark.parametrize("path", any_shared("traps"))
def test_groups_of_traps(path: Path) -> None:
    check(path)


@pytest.mark.parametrize("path", any_shared("hostile"))
def test_groups_of_hostile_files(path: Path) -> None:
    check(path)


@pytest.mark.parametrize("path", any_shared("corpus"))
def test_groups_of_the_corpus(path: Path) -> None:
    check(path)


def test_usually_a_group_is_scanned_alone(alone: Counter[bool]) -> None:
    for path in sample_files():
        check(path)
    assert alone[True] > alone[False], alone


@pytest.mark.parametrize("sane", [True, False])
@pytest.mark.parametrize("seed", [0, 50, *[pytest.param(n, marks=pytest.mark.slow) for n in range(100, 3000, 50)]])
def test_groups_of_random_files(seed: int, sane: bool, tmp_path: Path) -> None:
    for number in range(seed, seed + 50):
        path = tmp_path / f"{number}.h5"
        make_file(path, number, sane=sane)
        if not _has_twins(path):
            check(path)


def _has_twins(path: Path) -> bool:
    """Return whether two dimensions have the same number: the last one gives both its name."""
    with open_source(path) as source:
        file = scan_any(source)
    assert isinstance(file, H5File)
    return Dimensions(walk(file, {})[0])._has_twins
