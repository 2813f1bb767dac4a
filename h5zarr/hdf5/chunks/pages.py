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


def add_runs(columns: EntryColumns, runs: list[Run], entry_count: int) -> None:
    """Take the entries of runs that have `entry_count` of them each; many short ones cost no more than a long one."""
    step = max(1, _SLAB_COUNT // entry_count)
    for first in range(0, len(runs), step):
        slab = runs[first : first + step]
        if len(slab) == 1:
            content, start = slab[0]
            numbers = np.arange(start, start + entry_count)
        else:
            content = memoryview(b"".join([run.content for run in slab]))
            starts = np.array([run.first_number for run in slab], np.int64)
            numbers = (starts[:, None] + np.arange(entry_count)).ravel()
        columns.add(np.frombuffer(content, np.uint8).reshape(-1, columns.entry_nbytes), numbers)


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
