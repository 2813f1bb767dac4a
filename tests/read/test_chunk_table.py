"""The rows of a manifest that is read in records: only those that a selection needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from h5zarr.containers.late_manifest import LateManifest
from h5zarr.read.chunk_rows import ChunkTable
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, Manifest

GRID = RegularGrid((10, 6), (1, 2))  # 30 chunks


class Records:
    """Reads records of 7 chunks, and remembers which. Chunk n is at address 100 * n; every fifth is inlined."""

    def __init__(self) -> None:
        self.read: list[Sequence[int] | None] = []

    def __call__(self, numbers: Sequence[int] | None) -> list[Manifest]:
        self.read.append(numbers)
        spans = [range(30)] if numbers is None else [range(7 * n, min(30, 7 * n + 7)) for n in numbers]
        return [self._manifest(np.array(span)) for span in spans]

    def _manifest(self, chunks: np.ndarray) -> Manifest:
        there = chunks[chunks % 5 > 0]
        index = np.stack(np.divmod(there, 3), axis=1)
        inline = {(n // 3, n % 3): bytes([n]) for n in chunks[chunks % 5 == 0].tolist()}
        return Manifest(index=index, address=100 * there, nbytes=there, source=(there % 4).astype("i4"), inline=inline)


def table_of(records: Records) -> ChunkTable:
    node = ArrayNode(
        grid=GRID,
        data_type="int8",
        codecs=(),
        fill_value=0,
        dimension_names=("y", "x"),
        attributes={},
        manifest=LateManifest(records, 7),
    )
    return ChunkTable(node.grid, node.manifest)


def test_only_the_records_of_the_wanted_chunks_are_read_and_each_once() -> None:
    records = Records()
    table = table_of(records)
    for wanted in ([8, 9], [10], [9, 22], [8]):
        table.rows(np.array(wanted))
    assert records.read == [[1], [3]]


@pytest.mark.parametrize("wanted", [[8], [9, 22], [0, 5, 29], list(range(30)), []], ids=str)
def test_records_have_the_rows_that_the_whole_manifest_has(wanted: list[int]) -> None:
    column = np.array(wanted, np.int64)
    whole, found = table_of(Records()).everything(), table_of(Records()).rows(column)
    for one, other in (
        (whole.find(column), found.find(column)),
        (whole.find_inline(column), found.find_inline(column)),
    ):
        assert np.array_equal(one >= 0, other >= 0)
    rows, own = whole.find(column), found.find(column)
    there = rows >= 0
    for name in ("address", "nbytes", "source"):
        assert np.array_equal(getattr(whole, name)[rows[there]], np.atleast_1d(getattr(found, name))[own[there]])
    inline = [found.inline[place] for place in found.find_inline(column).tolist() if place >= 0]
    assert inline == [bytes([n]) for n in wanted if n % 5 == 0]


def test_all_records_together_are_kept_as_one() -> None:
    records = Records()
    table = table_of(records)
    table.rows(np.arange(30))
    assert table.rows(np.array([3])) is table.everything()
    assert records.read == [[0, 1, 2, 3, 4]]


def test_a_manifest_in_memory_has_no_records() -> None:
    (manifest,) = Records()(None)
    with pytest.raises(TypeError, match="this manifest has no records"):
        manifest.read_records([0])
