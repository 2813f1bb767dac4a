"""Pages of entries, which both array-like indexes use for large blocks. Spec: VII.C and VII.D."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from h5zarr.hdf5.checksum import check_checksum
from h5zarr.hdf5.chunks.entries import EntryColumns

_CHECKSUM_NBYTES = 4
_SLAB_NBYTES = 4 << 20


def add_pages(
    columns: EntryColumns,
    pages: memoryview,
    *,
    at: int,
    bitmap: npt.NDArray[np.bool_],
    page_count: int,
    entry_count: int,
    first_number: int = 0,
) -> None:
    """Take the entries of all pages that the bitmap says were ever written; the others hold nothing yet.

    A page has `page_count` entries and a checksum; the last may have fewer, so that there are `entry_count` in all.
    """
    page_nbytes = page_count * columns.entry_nbytes + _CHECKSUM_NBYTES
    full_count = entry_count // page_count
    step = max(1, _SLAB_NBYTES // page_nbytes)
    for page in range(0, full_count, step):
        written = page + np.flatnonzero(bitmap[page : min(page + step, full_count)])
        for number in written.tolist():
            start = number * page_nbytes
            check_checksum(pages[start : start + page_nbytes], "chunk index page", at + start)
        if not len(written):
            continue
        count = min(step, full_count - page)
        block = np.frombuffer(pages, np.uint8, count * page_nbytes, page * page_nbytes).reshape(count, page_nbytes)
        rows = block[written - page, :-_CHECKSUM_NBYTES].reshape(-1, columns.entry_nbytes)
        numbers = first_number + (written[:, None] * page_count + np.arange(page_count)).ravel()
        columns.add(rows, numbers)
    left = entry_count - full_count * page_count
    if left and bitmap[full_count]:
        start = full_count * page_nbytes
        nbytes = left * columns.entry_nbytes
        check_checksum(pages[start : start + nbytes + _CHECKSUM_NBYTES], "chunk index page", at + start)
        rows = np.frombuffer(pages, np.uint8, nbytes, start).reshape(left, columns.entry_nbytes)
        columns.add(rows, first_number + full_count * page_count + np.arange(left))
