from __future__ import annotations

import numpy as np
import pytest

from h5zarr.hdf5.columns import interleave_rows, pick_rows


def nodes(*rows: str) -> np.ndarray:
    """Return nodes of a byte, records of two bytes, and what is not used."""
    return np.array([list(f"#{row:.<7}".encode()) for row in rows], np.uint8)


def texts(rows: np.ndarray) -> list[str]:
    return [row.tobytes().decode() for row in rows]


@pytest.mark.parametrize(
    ("held", "between", "expected"),
    [
        (["a1a2", "b1b2"], ["ab"], "a1 a2 ab b1 b2"),
        (["a1a2", "b1b2"], ["ab", "bc"], "a1 a2 ab b1 b2 bc"),
        (["a1", "b1b2b3", "c1"], ["ab", "bc"], "a1 ab b1 b2 b3 bc c1"),
        (["", "b1", ""], ["ab", "bc", "cd"], "ab b1 bc cd"),
        (["", ""], ["ab"], "ab"),
        (["a1a2"], [], "a1 a2"),
        ([""], [], ""),
    ],
)
def test_rows_of_nodes_have_those_between_the_nodes_in_their_places(
    held: list[str], between: list[str], expected: str
) -> None:
    counts = np.array([len(row) // 2 for row in held])
    follow = np.array([list(row.encode()) for row in between], np.uint8).reshape(-1, 2)
    assert texts(interleave_rows(nodes(*held), 1, counts, follow)) == expected.split()


def test_rows_of_nodes_are_picked_without_what_is_not_used() -> None:
    picked = pick_rows(nodes("a1", "", "c1c2c3"), 1, np.array([1, 0, 3]), 2)
    assert texts(picked) == ["a1", "c1", "c2", "c3"]
    assert texts(pick_rows(nodes("", ""), 1, np.array([0, 0]), 2)) == []
