from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.chunks import chunk_table as table_module
from h5zarr.hdf5.chunks.chunk_table import (
    ChunkGrid,
    _size_unfiltered,
    allocate_table,
    empty_table,
    finish_table,
    grid_indexes,
)
from h5zarr.hdf5.model import ChunkTable
from h5zarr.hdf5.sizes import Sizes

SIZES = Sizes(base=0x100, end=0x1000)


def grid(
    shape: tuple[int, ...],
    chunk_shape: tuple[int, ...],
    max_shape: tuple[int | None, ...] | None = None,
    *,
    filter_count: int = 0,
    edge_chunks_unfiltered: bool = False,
) -> ChunkGrid:
    return ChunkGrid(
        shape=shape,
        max_shape=shape if max_shape is None else max_shape,
        chunk_shape=chunk_shape,
        chunk_nbytes=16,
        filter_count=filter_count,
        edge_chunks_unfiltered=edge_chunks_unfiltered,
    )


def table(*rows: tuple[tuple[int, ...], int, int]) -> ChunkTable:
    """Return a table of chunks: their coordinates, addresses and sizes."""
    return ChunkTable(
        index=np.array([index for index, _, _ in rows], np.int64),
        address=np.array([address for _, address, _ in rows], np.int64),
        nbytes=np.array([nbytes for _, _, nbytes in rows], np.int64),
        filter_mask=np.arange(len(rows), dtype=np.uint32),
    )


def test_a_grid_counts_chunks_that_are_cut_off() -> None:
    found = grid((7, 8, 0), (3, 4, 5), (9, None, 10))
    assert (found.rank, found.grid_shape, found.max_grid_shape) == (3, (3, 2, 0), (3, None, 2))


def test_chunks_come_in_row_major_order_with_all_their_columns() -> None:
    chunks = grid((6, 8), (3, 4), filter_count=2)
    found = finish_table(table(((1, 0), 0x200, 5), ((0, 1), 0x300, 6), ((0, 0), 0x400, 7)), chunks, SIZES)
    assert found.index.tolist() == [[0, 0], [0, 1], [1, 0]]
    assert (found.address.tolist(), found.nbytes.tolist()) == ([0x400, 0x300, 0x200], [7, 6, 5])
    assert found.filter_mask.tolist() == [2, 1, 0]


@pytest.mark.parametrize("outside", [(2, 0), (0, 2), (5, 5), (-1, 0), (0, -1)])
def test_chunks_outside_the_extent_are_left_out_wherever_they_are(outside: tuple[int, int]) -> None:
    rows = [((0, 0), 0x200, 16), (outside, 1 << 50, 16), ((1, 1), 0x300, 16)]
    found = finish_table(table(*rows), grid((6, 8), (3, 4)), SIZES)
    assert found.index.tolist() == [[0, 0], [1, 1]]
    assert found.address.tolist() == [0x200, 0x300]


@pytest.mark.parametrize(("address", "nbytes"), [(0xFF, 16), (0xFF1, 16), (1 << 50, 16), (-1, 16), (0x200, -5)])
def test_a_chunk_outside_the_file_is_malformed(address: int, nbytes: int) -> None:
    rows = [((0, 0), 0x200, 16), ((1, 1), address, nbytes)]
    with pytest.raises(MalformedFile, match=r"chunk \(1, 1\) of .* bytes reaches outside the file") as caught:
        finish_table(table(*rows), grid((6, 8), (3, 4), filter_count=1), SIZES)
    assert caught.value.address == address


def test_chunks_without_filters_have_the_size_of_a_chunk_whatever_the_index_says() -> None:
    found = finish_table(table(((0, 0), 0x200, 16), ((1, 1), 0x300, 99)), grid((6, 8), (3, 4)), SIZES)
    assert found.nbytes.tolist() == [16, 16]
    with pytest.raises(MalformedFile, match="fewer than 16 bytes"):
        finish_table(table(((0, 0), 0x200, 15)), grid((6, 8), (3, 4)), SIZES)


def test_a_chunk_may_touch_both_ends_of_the_file() -> None:
    rows = [((0, 0), 0x100, 16), ((1, 1), 0xFF0, 16)]
    assert len(finish_table(table(*rows), grid((6, 8), (3, 4)), SIZES)) == 2


@pytest.mark.parametrize("shape", [(6, 8), (3 << 40, 4 << 40)])
def test_a_chunk_that_occurs_twice_is_malformed(shape: tuple[int, int]) -> None:
    rows = [((1, 1), 0x200, 16), ((0, 0), 0x300, 16), ((1, 1), 0x400, 16)]
    with pytest.raises(MalformedFile, match=r"chunk \(1, 1\) occurs twice in its index"):
        finish_table(table(*rows), grid(shape, (3, 4)), SIZES)


def test_a_grid_too_large_for_chunk_numbers_is_sorted() -> None:
    """As many chunks as the grid has places are more than 64 bits count."""
    rows = [((1 << 39, 0), 0x200, 16), ((0, 1 << 39), 0x300, 16), ((0, 5), 0x400, 16)]
    found = finish_table(table(*rows), grid((3 << 40, 4 << 40), (3, 4)), SIZES)
    assert found.index.tolist() == [[0, 5], [0, 1 << 39], [1 << 39, 0]]
    assert found.address.tolist() == [0x400, 0x300, 0x200]


def test_an_empty_table_stays_empty() -> None:
    found = finish_table(empty_table(2), grid((0, 8), (3, 4)), SIZES)
    assert len(found) == 0
    assert found.index.shape == (0, 2)


def test_all_chunks_may_lie_outside() -> None:
    found = finish_table(table(((5, 5), 0x200, 16)), grid((6, 8), (3, 4)), SIZES)
    assert found.index.shape == (0, 2)


@pytest.mark.parametrize(
    ("shape", "edges"),
    [((6, 8), set()), ((5, 8), {(1, 0), (1, 1)}), ((6, 7), {(0, 1), (1, 1)}), ((5, 7), {(1, 0), (0, 1), (1, 1)})],
)
def test_edges_left_unfiltered_are_masked(shape: tuple[int, int], edges: set[tuple[int, int]]) -> None:
    rows = [((row, column), 0x200 + 32 * (2 * row + column), 16) for row in (0, 1) for column in (0, 1)]
    chunks = table(*rows)
    chunks.filter_mask[:] = 0
    found = finish_table(chunks, grid(shape, (3, 4), filter_count=2, edge_chunks_unfiltered=True), SIZES)
    masked = {
        tuple(index) for index, mask in zip(found.index.tolist(), found.filter_mask.tolist(), strict=True) if mask
    }
    assert masked == edges
    assert set(found.filter_mask.tolist()) <= {0, 0b11}


# --- from numbers to places


def places(numbers: list[int], chunks: ChunkGrid) -> list[list[int]]:
    index = np.empty((len(numbers), chunks.rank), np.int64)
    grid_indexes(np.array(numbers, np.int64), chunks, index)
    return index.tolist()


def test_numbers_run_over_the_largest_grid_the_last_axis_fastest() -> None:
    assert places([0, 1, 4, 5, 11], grid((2, 2), (1, 1), (3, 5))) == [[0, 0], [0, 1], [0, 4], [1, 0], [2, 1]]


@pytest.mark.parametrize(
    ("max_shape", "expected"),
    [
        ((None, 3, 4), [5, 1, 2]),
        ((2, None, 4), [1, 8, 2]),
        ((2, 3, None), [0, 0, 11]),
    ],
)
def test_the_unlimited_axis_counts_as_the_first(max_shape: tuple[int | None, ...], expected: list[int]) -> None:
    if max_shape[0] is None:
        number = 5 * 12 + 1 * 4 + 2
    elif max_shape[1] is None:
        number = 8 * 8 + 1 * 4 + 2
    else:
        number = 11 * 6
    assert places([number], grid((1, 1, 1), (1, 1, 1), max_shape)) == [expected]


def test_a_limit_of_zero_and_a_limit_beyond_64_bits_do_no_harm() -> None:
    assert places([], grid((0, 1), (1, 1), (0, 5))) == []
    assert places([7], grid((1, 1), (1, 1), (5, 1 << 64))) == [[0, 7]]


# --- few chunks are looked at in Python, many by numpy


@st.composite
def small_tables(draw: st.DrawFn) -> list[tuple[tuple[int, ...], int, int]]:
    """Rows that are as they should be, more or less: one of them may be changed, and all may be out of order."""
    places = draw(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), unique=True, max_size=6))
    rows = [(place, 0x200 + 0x40 * number, 16) for number, place in enumerate(sorted(places))]
    if rows and draw(st.booleans()):
        number = draw(st.integers(0, len(rows) - 1))
        place = draw(st.tuples(st.integers(-1, 3), st.integers(-1, 3)))
        address = draw(st.sampled_from([-1, 0, 0xFF, 0x100, 0xFF0, 0xFF1, 1 << 62]))
        rows[number] = (place, address, draw(st.sampled_from([-1, 0, 15, 16, 17, 1 << 62])))
    return draw(st.permutations(rows)) if draw(st.booleans()) else rows


def finished(rows: list[tuple[tuple[int, ...], int, int]], chunks: ChunkGrid, few: int, *, is_searched: bool) -> object:
    """Return what becomes of a table where up to `few` rows are few; of one that is refused, why."""
    made = table(*rows) if rows else empty_table(2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_module, "_FEW", few)
        try:
            found = finish_table(made, chunks, SIZES, is_searched=is_searched)
        except MalformedFile as error:
            return str(error)
    return [column.tolist() for column in (found.index, found.address, found.nbytes, found.filter_mask)]


@given(small_tables(), st.sampled_from([0, 2]), st.booleans(), st.booleans())
def test_few_chunks_are_finished_as_many_are(
    rows: list[tuple[tuple[int, ...], int, int]], filter_count: int, edges: bool, is_searched: bool
) -> None:
    chunks = grid((6, 10), (3, 4), filter_count=filter_count, edge_chunks_unfiltered=edges)
    in_python, by_numpy = (finished(rows, chunks, few, is_searched=is_searched) for few in (16, -1))
    assert in_python == by_numpy


def test_an_unfiltered_chunk_that_is_too_short_is_malformed() -> None:
    table = allocate_table(1, 1)
    table.nbytes[:] = 7
    grid = ChunkGrid(shape=(4,), max_shape=(4,), chunk_shape=(2,), chunk_nbytes=8, filter_count=0)
    with pytest.raises(MalformedFile, match="an unfiltered chunk takes fewer than 8 bytes in the file"):
        _size_unfiltered(table, grid)


def test_chunks_are_not_numbered_along_several_unlimited_axes() -> None:
    grid = ChunkGrid(shape=(4, 4), max_shape=(None, None), chunk_shape=(2, 2), chunk_nbytes=16, filter_count=0)
    with pytest.raises(MalformedFile, match="several unlimited axes has an array-like chunk index"):
        grid_indexes(np.arange(2), grid, np.zeros((2, 2), np.int64))
