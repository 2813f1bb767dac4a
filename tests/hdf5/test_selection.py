from __future__ import annotations

import struct

import numpy as np
import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.cursor import Cursor
from h5zarr.hdf5.selection import (
    AllSelection,
    BlockSelection,
    NoneSelection,
    PointSelection,
    RegularSelection,
    Selection,
    decode_selection,
)
from tests.fake_file import uint

NONE, POINTS, HYPERSLAB, ALL = range(4)
BEHIND = b"what follows"


def numbers(values: list[int], width: int) -> bytes:
    return b"".join(uint(value, width) for value in values)


def points_v1(*points: tuple[int, ...]) -> bytes:
    flat = [number for point in points for number in point]
    return struct.pack("<IIIIII", POINTS, 1, 0, 0, 2, len(points)) + numbers(flat, 4)


def points_v2(*points: tuple[int, ...], width: int) -> bytes:
    flat = [number for point in points for number in point]
    return struct.pack("<IIBI", POINTS, 2, width, 2) + uint(len(points), width) + numbers(flat, width)


def blocks_v1(*corners: int) -> bytes:
    return struct.pack("<IIIIII", HYPERSLAB, 1, 0, 0, 2, len(corners) // 4) + numbers(list(corners), 4)


def blocks_v3(*corners: int, width: int) -> bytes:
    head = struct.pack("<IIBBI", HYPERSLAB, 3, 0, width, 2)
    return head + uint(len(corners) // 4, width) + numbers(list(corners), width)


def regular_v2(*axes: tuple[int, int, int, int]) -> bytes:
    head = struct.pack("<IIBII", HYPERSLAB, 2, 1, 0, len(axes))
    return head + numbers([number for axis in axes for number in axis], 8)


def regular_v3(*axes: tuple[int, int, int, int], width: int) -> bytes:
    head = struct.pack("<IIBBI", HYPERSLAB, 3, 1, width, len(axes))
    return head + numbers([number for axis in axes for number in axis], width)


def decode(stored: bytes) -> Selection:
    """Return the selection, and check that the cursor is after it."""
    cursor = Cursor(stored + BEHIND, "selection")
    found = decode_selection(cursor)
    assert cursor.take(cursor.left) == BEHIND
    return found


def test_nothing_and_everything() -> None:
    assert decode(struct.pack("<IIII", NONE, 1, 0, 0)) == NoneSelection()
    assert decode(struct.pack("<IIII", ALL, 1, 0, 0)) == AllSelection()


@pytest.mark.parametrize(
    "stored", [points_v1((1, 2), (30, 40)), *(points_v2((1, 2), (30, 40), width=w) for w in (2, 4, 8))]
)
def test_points_of_every_version_and_width(stored: bytes) -> None:
    found = decode(stored)
    assert isinstance(found, PointSelection)
    assert found.points.tolist() == [[1, 2], [30, 40]]
    assert found.points.dtype == np.uint64


@pytest.mark.parametrize(
    "stored",
    [
        blocks_v1(0, 0, 1, 1, 5, 6, 7, 8),
        *(blocks_v3(0, 0, 1, 1, 5, 6, 7, 8, width=width) for width in (2, 4, 8)),
    ],
)
def test_blocks_anywhere_of_every_version_and_width(stored: bytes) -> None:
    found = decode(stored)
    assert isinstance(found, BlockSelection)
    assert found.first.tolist() == [[0, 0], [5, 6]]
    assert found.last.tolist() == [[1, 1], [7, 8]]


def test_blocks_of_version_2_that_are_not_regular_have_eight_bytes() -> None:
    head = struct.pack("<IIBII", HYPERSLAB, 2, 0, 0, 1)
    found = decode(head + numbers([2, 0, 3, 8, 9], 8))
    assert isinstance(found, BlockSelection)
    assert (found.first.tolist(), found.last.tolist()) == ([[0], [8]], [[3], [9]])


@pytest.mark.parametrize(
    ("stored", "unlimited"),
    [
        (regular_v2((1, 2, 3, 4), (5, 6, (1 << 64) - 1, 8)), 8),
        (regular_v3((1, 2, 3, 4), (5, 6, 0xFFFF, 8), width=2), 2),
        (regular_v3((1, 2, 3, 4), (5, 6, 0xFFFFFFFF, 8), width=4), 4),
        (regular_v3((1, 2, 3, 4), (5, 6, (1 << 64) - 1, 8), width=8), 8),
    ],
)
def test_regular_selections_may_have_no_end(stored: bytes, unlimited: int) -> None:
    assert decode(stored) == RegularSelection(start=(1, 5), stride=(2, 6), count=(3, None), block=(4, 8))


def test_a_block_may_have_no_end_and_narrow_ones_in_wide_numbers_do_not_count() -> None:
    found = decode(regular_v3((0, 1, 0xFFFF, 0xFFFFFFFF), width=4))
    assert found == RegularSelection(start=(0,), stride=(1,), count=(0xFFFF,), block=(None,))


@pytest.mark.parametrize("stored", [points_v1(), points_v2(width=2), blocks_v1(), blocks_v3(width=4)])
def test_a_selection_may_have_no_members(stored: bytes) -> None:
    found = decode(stored)
    rows = found.points if isinstance(found, PointSelection) else found.first  # type: ignore[union-attr]
    assert rows.shape == (0, 2)


@pytest.mark.parametrize(
    ("stored", "complaint"),
    [
        (struct.pack("<IIII", 4, 1, 0, 0), "unknown type 4"),
        (struct.pack("<IIBI", POINTS, 3, 2, 2), "point selection has unknown version 3"),
        (struct.pack("<IIBI", HYPERSLAB, 4, 2, 2), "hyperslab selection has unknown version 4"),
        (struct.pack("<IIBI", POINTS, 2, 3, 2), "selection has numbers of 3 bytes, expected 2, 4 or 8"),
        (struct.pack("<IIBBI", HYPERSLAB, 3, 1, 1, 2), "selection has numbers of 1 bytes"),
        (struct.pack("<IIBBI", HYPERSLAB, 3, 1, 2, 0), "rank 0"),
        (struct.pack("<IIBBI", HYPERSLAB, 3, 1, 2, 33), "selection has rank 33, expected 1 to 32"),
        (struct.pack("<IIBIQ", POINTS, 2, 8, 2, 1 << 60), "inside a field"),
        (struct.pack("<IIIIII", HYPERSLAB, 1, 0, 0, 2, 0xFFFFFFFF), "inside a field"),
    ],
)
def test_an_impossible_selection_is_malformed(stored: bytes, complaint: str) -> None:
    with pytest.raises(MalformedFile, match=complaint):
        decode(stored)


@pytest.mark.parametrize(
    "stored",
    [
        struct.pack("<IIII", ALL, 1, 0, 0),
        points_v1((1, 2)),
        points_v2((1, 2), width=2),
        blocks_v1(0, 0, 1, 1),
        regular_v2((1, 2, 3, 4)),
        regular_v3((1, 2, 3, 4), width=2),
    ],
)
def test_a_selection_cut_short_anywhere_is_malformed(stored: bytes) -> None:
    for nbytes in range(len(stored)):
        with pytest.raises(MalformedFile):
            decode_selection(Cursor(stored[:nbytes], "selection"))
