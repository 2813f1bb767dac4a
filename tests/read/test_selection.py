from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h5zarr.read.selection import select_axis
from tests.read.keys import random_key


def taken(key: Any, length: int, chunk: int) -> list[int]:
    """Return the numbers of the selected elements, put together from the parts of chunks."""
    selection = select_axis(key, length, chunk)
    result = np.full(selection.count, -1)
    padded = np.arange(-(-length // chunk) * chunk)
    parts = zip(selection.numbers.tolist(), selection.inside, selection.outside, strict=True)
    for number, inside, outside in parts:
        content = padded[number * chunk : (number + 1) * chunk]
        assert (result[outside] == -1).all()
        result[outside] = content[inside]
    return result.tolist()


@given(st.integers(0, 40), st.integers(1, 15), st.integers(0, 10_000))
def test_parts_of_chunks_make_up_what_is_selected(length: int, chunk: int, seed: int) -> None:
    (key,) = random_key((length,), np.random.default_rng(seed))
    expected = np.atleast_1d(np.arange(length)[key]).tolist()
    assert taken(key, length, chunk) == expected
    selection = select_axis(key, length, chunk)
    assert len(set(selection.numbers.tolist())) == len(selection.numbers)
    assert set(selection.numbers.tolist()) == {number // chunk for number in expected}


def test_a_mask_selects_where_it_is_true() -> None:
    assert taken(np.array([True, False, True, True]), 4, 2) == [0, 2, 3]


@pytest.mark.parametrize("key", [5, -6, np.array([0, 5]), np.array([-6])])
def test_what_is_out_of_bounds_is_an_index_error(key: Any) -> None:
    with pytest.raises(IndexError, match="out of bounds for an axis of 5"):
        select_axis(key, 5, 2)
