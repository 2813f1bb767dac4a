from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from h5zarr.containers.records import find_records, spans_of
from h5zarr.errors import Unsupported
from h5zarr.zarr_model.hierarchy import Manifest


def make(index: Any, rank: int = 1, **options: Any) -> Manifest:
    rows = np.array(index, np.int64).reshape(len(index), rank)
    return Manifest(index=rows, address=np.arange(len(rows)) + 100, nbytes=np.arange(len(rows)) + 1, **options)


def test_a_record_has_the_chunks_of_its_part_of_the_grid() -> None:
    found = find_records(make([[0, 1], [0, 2], [1, 0], [2, 2]], 2), (3, 3), 4)
    assert found.numbers == (0, 2)
    first, last = found.rows(0), found.rows(2)
    assert (first.count, first.place.tolist(), first.address.tolist()) == (4, [1, 2, 3], [100, 101, 102])
    assert (last.count, last.place.tolist(), last.nbytes.tolist()) == (1, [0], [4])


def test_records_are_shown_as_ranges() -> None:
    assert spans_of(find_records(make([0, 1, 2, 5, 9]), (10,), 1).numbers) == [[0, 3], [5, 6], [9, 10]]
    assert spans_of(find_records(make([]), (10,), 1).numbers) == []


@pytest.mark.parametrize("rows", [0, 1, 1 << 16, (1 << 16) + 1])
def test_as_many_rows_come_out_as_went_in(rows: int) -> None:
    manifest = make(range(rows))
    found = find_records(manifest, (max(rows, 1),), 1000)
    places = [number * 1000 + found.rows(number).place for number in found.numbers]
    assert np.array_equal(np.concatenate([np.empty(0, np.int64), *places]), np.arange(rows))


def test_chunks_out_of_order_are_put_in_order_and_those_outside_the_grid_are_left_out() -> None:
    found = find_records(make([4, 7, 1, -1, 0], source=np.array([0, 1, 2, 3, 4], np.int32)), (5,), 5)
    rows = found.rows(0)
    assert (rows.place.tolist(), rows.address.tolist()) == ([0, 1, 4], [104, 102, 100])
    assert np.asarray(rows.source).tolist() == [4, 2, 0]


def test_inline_chunks_have_records_of_their_own() -> None:
    found = find_records(make([0], inline={(3,): b"x", (7,): b"outside"}), (5,), 2)
    assert found.numbers == (0, 1)
    assert (found.rows(1).inline, len(found.rows(1).place), found.rows(1).count) == ({1: b"x"}, 0, 2)


def test_a_scalar_has_one_row() -> None:
    found = find_records(make([[]], 0), (), 10)
    assert (found.rows(0).count, found.rows(0).place.tolist()) == (1, [0])


def test_a_grid_that_cannot_be_counted_is_refused() -> None:
    with pytest.raises(Unsupported, match="do not fit into 64 bits"):
        find_records(make([[0, 0]], 2), (1 << 40, 1 << 40), 10)
