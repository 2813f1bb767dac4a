"""Keys that do not lead to a chunk: the library reads fill there, so the chunk must not be shown."""

from __future__ import annotations

import struct
from pathlib import Path

import h5py
import numpy as np
import pytest

import h5zarr
from h5zarr.hdf5.chunks import btree1_small
from h5zarr.hdf5.model import ChunkedLayout, Dataset
from tests.fuzz.mutating import correct_checksums
from tests.fuzz.seeds import map_hdf5

COUNT = 200  # of chunks: two levels of nodes of up to 64


@pytest.fixture(params=["node by node", "level by level"])
def path(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a file that is read in each of the two ways."""
    if request.param == "level by level":
        monkeypatch.setattr(btree1_small, "MOST_LEAVES", 0)
    path = tmp_path / "tree.h5"
    with h5py.File(path, "w", libver="earliest") as file:
        file.create_dataset("x", data=np.arange(2 * COUNT), chunks=(2,), maxshape=(None,))
    return path


def nodes(content: bytes) -> list[tuple[int, int, int]]:
    """Return where the nodes of chunk B-trees are, their levels, and how many entries they have."""
    found = []
    place = content.find(b"TREE\x01")
    while place >= 0:
        level, count = struct.unpack_from("<BH", content, place + 5)
        found.append((place, level, count))
        place = content.find(b"TREE\x01", place + 1)
    return found


def key_at(node: int, number: int) -> int:
    """Return the position of the origin in a key: after the header, the size and the mask."""
    return node + 24 + number * 32 + 8


def scan_problems(path: Path) -> list[str]:
    return [problem.message for problem in h5zarr.scan(str(path)).problems]


def test_the_trees_of_the_library_are_read(path: Path) -> None:
    levels = {level for _, level, _ in nodes(path.read_bytes())}
    assert levels == {0, 1}
    file = h5zarr.scan(str(path))
    assert not file.problems
    ((_, dataset),) = file.datasets()
    assert isinstance(dataset, Dataset)
    assert isinstance(dataset.layout, ChunkedLayout)
    assert len(dataset.layout.chunks) == COUNT


@pytest.mark.parametrize(
    ("level", "entry", "value"),
    [
        (1, 1, 0),  # a child is looked for behind where it begins
        (1, 1, 2 * COUNT),  # the one before it has too much
        (1, -1, 2),  # the last key of the root is before the last chunks
        (0, -1, 0),  # the last key of a leaf is before its last chunk
        (0, 1, 20 * COUNT),  # chunks of a leaf are not in order, one of them being outside the extent
    ],
)
def test_keys_that_lead_astray_are_malformed(path: Path, level: int, entry: int, value: int) -> None:
    content = bytearray(path.read_bytes())
    node, _, count = next(one for one in nodes(content) if one[1] == level)
    struct.pack_into("<Q", content, key_at(node, count if entry < 0 else entry), value)
    path.write_bytes(content)
    with h5py.File(path) as file:
        shown = file["x"][...]
    assert (shown != np.arange(2 * COUNT)).any()
    (problem,) = scan_problems(path)
    assert "lead to" in problem


def test_a_chunk_that_begins_inside_an_element_is_malformed(path: Path) -> None:
    content = bytearray(path.read_bytes())
    node = next(place for place, level, _ in nodes(content) if level == 0)
    struct.pack_into("<Q", content, key_at(node, 3) + 8, 1 << 30)
    path.write_bytes(content)
    (problem,) = scan_problems(path)
    assert "inside an element" in problem


def test_a_chunk_outside_the_extent_must_not_be_in_the_way_of_others(tmp_path: Path) -> None:
    """In a version 2 tree, one record that is moved out of the dataset hides some behind it from the library."""
    path = tmp_path / "tree2.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("x", data=np.arange(36).reshape(6, 6), chunks=(1, 1), maxshape=(None, None))
    seed = map_hdf5("tree2.h5", path.read_bytes())
    content = bytearray(seed.content)
    leaf = content.find(b"BTLF")
    record = leaf + 6 + 18 * 24  # an address and two numbers each; the search begins in the middle
    assert struct.unpack_from("<QQ", content, record + 8) == (3, 0)
    struct.pack_into("<QQ", content, record + 8, 1 << 40, 0)
    correct_checksums(content, seed)
    path.write_bytes(content)
    with h5py.File(path) as file:
        assert (file["x"][...] != np.arange(36).reshape(6, 6)).sum() > 1
    (problem,) = scan_problems(path)
    assert "lead to" in problem
