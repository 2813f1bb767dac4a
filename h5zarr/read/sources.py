"""The files that contain chunks: opened when needed, each with the options for its protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from h5zarr.errors import SourceError
from h5zarr.io.access import USUAL_ACCESS, Access
from h5zarr.io.allowed import check_referred
from h5zarr.io.ranges import Column, HeldRanges, RangeReader, open_ranges
from h5zarr.io.source import Identity
from h5zarr.zarr_model.hierarchy import TO_THE_END

_MOST_FILES_AT_ONCE = 32
_BESIDE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Files by number. `expected` is the recorded state of each; None accepts any.

    `references` is the location of the references that contain the URLs. `check_referred` says which files they may
    name; any file below a directory in `access.allow` is allowed. It is None if the URLs come from a file that was
    scanned here, and are known to be safe.

    Pickles contain only this description. Readers are looked up by it, and shared within a process.
    """

    urls: Sequence[str] = field(repr=False)  # may be signed
    access: Access = USUAL_ACCESS
    expected: Sequence[Identity | None] = field(default=(), repr=False)
    references: str | None = field(default=None, repr=False)
    _readers: dict[int, RangeReader] = field(default_factory=dict, repr=False, compare=False)

    def reader(self, number: int) -> RangeReader:
        """Return the reader of source `number`."""
        reader = self._readers.get(number)
        if reader is None:
            url = self.urls[number]
            if not url:
                raise SourceError("the references do not say which file they refer to")
            self.check(url)
            expected = self.expected[number] if number < len(self.expected) else None
            reader = open_ranges(url, self.access, expected)
            self._readers[number] = reader
        return reader

    def check(self, url: str) -> None:
        """Raise NotAllowed if the references must not name the file at `url`."""
        if self.references is not None:
            check_referred(url, self.references, self.access.allow)

    def hold(self, number: int, content: memoryview) -> None:
        """Read source `number` from memory, in this process."""
        self._readers[number] = HeldRanges(self.urls[number], content)

    def keep(self, reader: RangeReader) -> None:
        """Keep another reader open until `close`, because it may share connections with the readers of the files."""
        self._readers[_BESIDE] = reader

    def close(self) -> None:
        """Close files and connections. Later reads open them again."""
        for reader in list(self._readers.values()):
            reader.close()
        self._readers.clear()

    def __reduce__(self) -> Any:
        return _restore, (self.urls, self.access, self.expected, self.references)


def _restore(urls: Sequence[str], access: Access, expected: Any, references: str | None) -> Sources:
    return Sources(urls=urls, access=access, expected=expected, references=references)


def in_each(jobs: Sequence[Callable[[], None]]) -> None:
    """Call a function for each of several files, many concurrently: most of the time is waiting."""
    if len(jobs) <= 1:
        for job in jobs:
            job()
        return
    with ThreadPoolExecutor(min(_MOST_FILES_AT_ONCE, len(jobs))) as pool:
        for future in [pool.submit(job) for job in jobs]:
            future.result()


def sized(nbytes: Column, reader: RangeReader) -> Column:
    """Return `nbytes`, with `TO_THE_END` replaced by the size of the file."""
    unknown = nbytes == TO_THE_END
    return np.where(unknown, reader.nbytes, nbytes) if unknown.any() else nbytes
