"""Runs of entries as the array-like indexes store them: data blocks, or pages of large ones. Spec: VII.C and VII.D."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from h5zarr.hdf5.checksum import check_checksum
from h5zarr.hdf5.chunks.entries import EntryColumns

_CHECKSUM_NBYTES = 4
_SLAB_COUNT = 1 << 15


class Run(NamedTuple):
    """Entries of chunks with successive numbers."""

    content: memoryview
    first_number: int


def add_runs(columns: EntryColumns, runs: list[Run]) -> None:
    """Take the entries of runs of any length; many short ones cost no more than a long one."""
    counts = [len(run.content) // columns.entry_nbytes for run in runs]
    columns.expect(sum(counts))
    first, waiting = 0, 0
    for number, count in enumerate(counts, start=1):
        waiting += count
        if waiting >= _SLAB_COUNT or number == len(runs):
            _add_slab(columns, runs[first:number], counts[first:number])
            first, waiting = number, 0


def _add_slab(columns: EntryColumns, runs: list[Run], counts: list[int]) -> None:
    content = b"".join([run.content for run in runs]) if len(runs) > 1 else runs[0].content
    numbers = [np.arange(run.first_number, run.first_number + count) for run, count in zip(runs, counts, strict=True)]
    rows = np.frombuffer(content, np.uint8).reshape(-1, columns.entry_nbytes)
    columns.add(rows, np.concatenate(numbers) if len(numbers) > 1 else numbers[0])


def page_runs(
    columns: EntryColumns,
    pages: memoryview,
    *,
    at: int,
    written: npt.NDArray[np.bool_],
    page_count: int,
    entry_count: int,
    first_number: int = 0,
) -> list[Run]:
    """Return the pages that were ever written, each with its checksum verified; the others hold nothing yet.

    A page has `page_count` entries and a checksum; the last may have fewer, so that there are `entry_count` in all.
    """
    runs = []
    page_nbytes = page_count * columns.entry_nbytes + _CHECKSUM_NBYTES
    for page in np.flatnonzero(written).tolist():
        count = min(page_count, entry_count - page * page_count)
        start = page * page_nbytes
        end = start + count * columns.entry_nbytes
        check_checksum(pages[start : end + _CHECKSUM_NBYTES], "chunk index page", at + start)
        runs.append(Run(pages[start:end], first_number + page * page_count))
    return runs
