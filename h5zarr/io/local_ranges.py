"""Read chunks of local files: as views of a memory map, or directly into the result."""

from __future__ import annotations

import os
import threading
from concurrent.futures import wait

from h5zarr.errors import SourceError
from h5zarr.io.failure import Failure, advising_readers, source_error
from h5zarr.io.local import LocalSource
from h5zarr.io.ranges import Column, Deliver
from h5zarr.io.source import Identity
from h5zarr.io.span import Span
from h5zarr.io.threads import decoding_threads, processor_count
from h5zarr.io.unchanged import check_unchanged

_BATCH_NBYTES = 1 << 20  # less is not worth passing to another thread
_CUT_SHORT = Failure("the file ends before these bytes", SourceError.remedy)


class LocalRanges:
    """A local file. It is mapped on first use, and its identity is checked then."""

    is_fast = True

    def __init__(self, path: str, expected: Identity | None) -> None:
        self.url = path
        self._expected = expected
        self._lock = threading.Lock()
        self._source: LocalSource | None = None

    @property
    def nbytes(self) -> int:
        return self._open().nbytes

    def read(self, address: Column, nbytes: Column, deliver: Deliver, *, is_light: bool = False) -> None:
        buffers = self._open().read_many(list(map(Span, address.tolist(), nbytes.tolist())))
        batches = _cut(nbytes)
        if is_light or len(batches) == 1:
            deliver(range(len(buffers)), buffers)
            return
        pool = decoding_threads()
        futures = [pool.submit(deliver, batch, buffers[batch.start : batch.stop]) for batch in batches]
        try:
            for future in futures:
                future.result()
        finally:
            for future in futures:
                future.cancel()
            wait(futures)

    def read_whole(self) -> bytes:
        source = self._open()
        return bytes(source.read_many([Span(0, source.nbytes)])[0])

    def read_into(self, span: Span, out: memoryview) -> bool:
        """Read with a system call. A memory map is slower for pages that are used only once."""
        source = self._open()
        if not hasattr(os, "preadv"):
            return False
        done = 0
        while done < span.nbytes:
            count = os.preadv(source.descriptor, [out[done:]], span.address + done)
            if count <= 0:
                raise source_error(self.url, _CUT_SHORT, span)
            done += count
        return True

    def close(self) -> None:
        """Release the file. It closes when the last read has finished."""
        with self._lock:
            self._source = None

    def _open(self) -> LocalSource:
        with self._lock:
            if self._source is None:
                with advising_readers():
                    source = LocalSource(self.url)
                if self._expected is not None:
                    check_unchanged(self.url, self._expected, source.identity)
                self._source = source
            return self._source


def _cut(nbytes: Column) -> list[range]:
    """Return the span numbers in batches, a few batches per thread."""
    count, total = len(nbytes), int(nbytes.sum())
    parts = min(count, max(1, total // _BATCH_NBYTES), 4 * processor_count())
    if processor_count() == 1 or parts <= 1:
        return [range(count)]
    step = -(-count // parts)
    return [range(start, min(start + step, count)) for start in range(0, count, step)]
