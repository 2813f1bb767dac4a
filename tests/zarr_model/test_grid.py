from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.zarr_model.chunk_selection import ChunkAxis, select_axis
from h5zarr.zarr_model.grid import (
    ChunkGrid,
    RectilinearGrid,
    RegularAxis,
    RegularGrid,
    decode_grid,
    decode_lengths,
    decode_regular,
    make_axis,
    make_grid,
    unravel,
    whole_grid,
)
from tests.read.keys import random_key

regular_grids = st.lists(st.tuples(st.integers(0, 14), st.integers(1, 6)), max_size=3).map(
    lambda axes: RegularGrid(tuple(length for length, _ in axes), tuple(chunk for _, chunk in axes))
)


@st.composite
def uneven_axes(draw: st.DrawFn) -> ChunkAxis:
    """Draw an axis whose last chunk may extend past the end of the array, with whole chunks behind it."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    return make_axis(lengths, draw(st.integers(0, sum(lengths))))


regular_axes = st.builds(RegularAxis, st.integers(0, 14), st.integers(1, 6))
rectilinear_grids = st.lists(st.one_of(uneven_axes(), regular_axes), max_size=3).map(make_grid)
grids = st.one_of(regular_grids, rectilinear_grids)


def divide(values: Any, grid: ChunkGrid) -> dict[int, Any]:
    """Return the stored chunks of an array by number; elements past its end are -1."""
    chunks = {}
    for number, index in enumerate(product(*map(range, grid.grid_shape))):
        chunk = np.full(grid.stored_shape(index), -1)
        part = values[grid.part(index)]
        chunk[tuple(map(slice, part.shape))] = part
        chunks[number] = chunk
    return chunks


def outer(parts: Sequence[Any]) -> Any:
    """Return an index that takes each axis on its own."""
    return np.ix_(*parts) if parts else ()


def positions(part: Any, length: int) -> Any:
    return np.arange(length)[part]


@given(grids, st.integers(0, 10_000))
def test_a_selection_put_together_from_chunks_equals_numpy(grid: ChunkGrid, seed: int) -> None:
    values = np.arange(np.prod(grid.shape, dtype=int)).reshape(grid.shape)
    chunks = divide(values, grid)
    key = random_key(grid.shape, np.random.default_rng(seed))
    axes = grid.select(key)
    result = np.full([axis.count for axis in axes], -1)
    touched = grid.touched(axes).tolist()
    parts = list(product(*[range(len(axis.numbers)) for axis in axes]))
    assert len(touched) == len(parts)
    for number, places in zip(touched, parts, strict=True):
        chunk = chunks[number]
        lengths = zip(axes, places, strict=True)
        inside = [positions(axis.inside[place], size) for (axis, place), size in zip(lengths, chunk.shape, strict=True)]
        outside = [positions(axis.outside[place], axis.count) for axis, place in zip(axes, places, strict=True)]
        assert (result[outer(outside)] == -1).all()
        result[outer(outside)] = chunk[outer(inside)]
    expected = values[outer([np.atleast_1d(np.arange(n)[one]) for one, n in zip(key, grid.shape, strict=True)])]
    np.testing.assert_array_equal(result, expected)
    assert [axis.is_dropped for axis in axes] == [
        np.ndim(np.arange(n)[one]) == 0 for one, n in zip(key, grid.shape, strict=True)
    ]


@given(st.integers(0, 40), st.integers(1, 15), st.integers(0, 10_000))
def test_a_selection_touches_each_chunk_once_and_no_others(length: int, chunk: int, seed: int) -> None:
    (key,) = random_key((length,), np.random.default_rng(seed))
    expected = np.atleast_1d(np.arange(length)[key]).tolist()
    numbers = select_axis(key, RegularAxis(length, chunk)).numbers.tolist()
    assert len(set(numbers)) == len(numbers)
    assert set(numbers) == {number // chunk for number in expected}


@given(grids)
def test_parts_of_chunks_cover_the_array_once(grid: ChunkGrid) -> None:
    count = np.zeros(grid.shape, int)
    for index in product(*map(range, grid.grid_shape)):
        count[grid.part(index)] += 1
        assert all(
            0 < n <= size for n, size in zip(count[grid.part(index)].shape, grid.stored_shape(index), strict=True)
        )
    assert (count == 1).all()
    if grid.chunk_count:
        assert grid.part([0] * len(grid.shape), grid.grid_shape) == tuple(slice(0, length) for length in grid.shape)


@given(grids)
def test_numbers_are_positions_in_row_major_order(grid: ChunkGrid) -> None:
    indices = list(product(*map(range, grid.grid_shape)))
    assert grid.chunk_count == len(indices)
    assert [grid.index(number) for number in range(grid.chunk_count)] == indices
    table = np.array(indices, np.int64).reshape(len(indices), len(grid.shape))
    assert grid.number(table).tolist() == list(range(len(indices)))
    assert grid.contains(table).all()
    assert grid.contains(table + np.array(grid.grid_shape, np.int64)).any() == (not grid.shape)


def test_a_chunk_before_the_first_is_not_in_the_grid() -> None:
    assert RegularGrid((4, 4), (2, 2)).contains(np.array([[0, 1], [-1, 0], [1, 2]])).tolist() == [True, False, False]


def test_the_stored_shape_of_a_chunk_reaches_past_the_end() -> None:
    grid = RegularGrid((5, 3), (2, 4))
    assert grid.grid_shape == (3, 1)
    assert grid.stored_shape((2, 0)) == (2, 4)
    assert grid.part((2, 0)) == (slice(4, 5), slice(0, 3))


def test_a_mask_selects_where_it_is_true() -> None:
    selection = select_axis(np.array([True, False, True, True]), RegularAxis(4, 2))
    assert selection.numbers.tolist() == [0, 1]
    assert [part.tolist() for part in selection.inside] == [[0], [0, 1]]


@pytest.mark.parametrize("key", [5, -6, np.array([0, 5]), np.array([-6])])
def test_what_is_out_of_bounds_is_an_index_error(key: Any) -> None:
    with pytest.raises(IndexError, match="out of bounds for an axis of 5"):
        RegularGrid((5,), (2,)).select([key])


def test_chunks_of_nearly_64_bits_are_selected() -> None:
    length = 2**63 - 1
    (selection,) = RegularGrid((length,), (2**62,)).select([slice(length - 2, None)])
    assert selection.numbers.tolist() == [1]
    assert selection.inside == [slice(2**62 - 3, 2**62 - 1, 1)]


def test_a_grid_that_cannot_be_counted_is_unsupported() -> None:
    grid = RegularGrid((2**40, 2**40), (1, 1))
    assert grid.chunk_count == 2**80
    with pytest.raises(Unsupported, match="do not fit into 64 bits"):
        grid.number(np.zeros((1, 2), np.int64))


def test_a_position_of_a_huge_grid_is_found() -> None:
    assert unravel(2**70 + 5, (2**40, 2**40)) == (2**30, 5)


def test_a_whole_grid_has_one_chunk_with_at_least_one_element() -> None:
    assert whole_grid((3, 0)) == RegularGrid((3, 0), (3, 1))
    assert whole_grid((3, 2), (1, 2)) == RegularGrid((3, 2), (1, 2))
    assert whole_grid(()).chunk_count == 1


@given(grids)
def test_a_grid_survives_json_and_pickling(grid: ChunkGrid) -> None:
    encoded = json.loads(json.dumps(grid.encode()))
    assert decode_grid(list(grid.shape), encoded["name"], encoded["configuration"]) == grid
    assert pickle.loads(pickle.dumps(grid)) == grid


def test_lengths_are_written_as_runs() -> None:
    grid = make_grid([make_axis([10, 10, 10, 1, 10, 10, 8], 58), RegularAxis(20, 8)])
    assert grid.grid_shape == (7, 3)
    assert grid.stored_shape((6, 2)) == (8, 8)
    assert grid.part((6, 2)) == (slice(51, 58), slice(16, 20))
    assert grid.encode() == {
        "name": "rectilinear",
        "configuration": {"kind": "inline", "chunk_shapes": [[[10, 3], 1, [10, 2], 8], [[8, 3]]]},
    }


def test_every_form_of_a_rectilinear_grid_is_read() -> None:
    shapes = [[[10, 3], 1, [10, 2], 8], 8, [8, 8, 4]]
    grid = decode_grid([59, 20, 20], "rectilinear", {"kind": "inline", "chunk_shapes": shapes})
    assert grid == make_grid([make_axis([10, 10, 10, 1, 10, 10, 8], 59), RegularAxis(20, 8), make_axis([8, 8, 4], 20)])


def test_equal_chunks_are_a_regular_grid_however_they_are_written() -> None:
    grid = decode_grid([9, 6], "rectilinear", {"kind": "inline", "chunk_shapes": [[4, 4, 4], [[3, 2]]]})
    assert grid == RegularGrid((9, 6), (4, 3))


def test_a_grid_of_many_chunks_takes_no_more_memory_than_its_metadata() -> None:
    shapes = [[[1, 10**15], [2, 10**15]]]
    grid = decode_grid([3 * 10**15], "rectilinear", {"kind": "inline", "chunk_shapes": shapes})
    assert isinstance(grid, RectilinearGrid)
    assert grid.grid_shape == (2 * 10**15,)
    (selection,) = grid.select([slice(10**15 - 1, 10**15 + 3)])
    assert selection.numbers.tolist() == [10**15 - 1, 10**15, 10**15 + 1]
    assert selection.inside == [slice(0, 1, 1), slice(0, 2, 1), slice(0, 1, 1)]


@pytest.mark.parametrize(
    ("chunk_shapes", "what"),
    [
        (None, "not a list with an entry for each of 1 axes"),
        ([[4], [4]], "not a list with an entry for each of 1 axes"),
        ([[]], "not a positive integer"),
        ([[0, 4]], "not a positive integer"),
        ([[4, -1]], "not a positive integer"),
        ([[[2, 0], 4]], "not a positive integer"),
        ([[[2, 1, 1], 4]], "not a positive integer"),
        ([0], "not a positive integer"),
        ([True], "not a positive integer"),
        (["4"], "not a positive integer"),
        ([[2, 1]], "have 3 elements, but the axis has 4"),
    ],
)
def test_a_rectilinear_grid_that_makes_no_sense_is_malformed(chunk_shapes: Any, what: str) -> None:
    with pytest.raises(MalformedFile, match=what):
        decode_grid([4], "rectilinear", {"kind": "inline", "chunk_shapes": chunk_shapes})


def test_chunks_along_an_axis_without_elements_have_at_least_one() -> None:
    assert decode_regular([0, 4], [0, 2]) == RegularGrid((0, 4), (1, 2))


@pytest.mark.parametrize(
    ("shape", "chunks", "what"),
    [
        ([4], [0], "chunks have no elements"),
        ([4], [2, 2], "has 1 dimensions, but its chunks have 2"),
        (4, [2], "shape is not a list of lengths"),
        ([4], [True], "shape of chunks is not a list of lengths"),
        ([-1], [1], "shape is not a list of lengths"),
        ([2**63], [1], "shape is not a list of lengths"),
    ],
)
def test_a_grid_that_makes_no_sense_is_malformed(shape: Any, chunks: Any, what: str) -> None:
    with pytest.raises(MalformedFile, match=what):
        decode_regular(shape, chunks)


def test_grids_that_h5zarr_does_not_read_are_unsupported() -> None:
    with pytest.raises(Unsupported, match='supports only "regular" and "rectilinear"'):
        decode_grid([4], "hexagonal", {})
    with pytest.raises(Unsupported, match='only if its kind is "inline"'):
        decode_grid([4], "rectilinear", {"kind": "file"})
    with pytest.raises(Unsupported, match="more than 2\\*\\*63 elements"):
        decode_grid([4], "rectilinear", {"kind": "inline", "chunk_shapes": [[[2**40, 2**40]]]})
    with pytest.raises(Unsupported, match="65 dimensions"):
        decode_regular([1] * 65, [1] * 65)


@pytest.mark.parametrize("value", [None, 3, "3", [1.0], [True], [-1], {}, [2**63]])
def test_lengths_must_be_a_list_of_integers(value: Any) -> None:
    assert decode_lengths(value) is None
