"""The files that chunks lie in: opened when they are needed, each with the options for its protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from h5zarr.errors import SourceError
from h5zarr.hierarchy import TO_THE_END
from h5zarr.io.allowed import check_referred
from h5zarr.io.fetch_policy import FetchPolicy
from h5zarr.io.grammar import is_chain, protocol_of, split_chain
from h5zarr.io.held_ranges import HeldRanges
from h5zarr.io.ranges import Column, RangeReader, open_ranges
from h5zarr.io.source import Identity
from h5zarr.limits import USUAL, Limits

_MOST_FILES_AT_ONCE = 32
_BESIDE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Files by number. `expected` is what each was when it was recorded; None where it may be anything.

    `references` is where the URLs stand, which then may not name every file, but any below the places in `allow`; None
    where they come from a file that was scanned here, and are known to be harmless.

    It is sent to other processes as this description: readers are found again by it, and shared within a process.
    """

    urls: tuple[str, ...] = field(repr=False)  # which may be signed
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    policy: FetchPolicy = field(default_factory=FetchPolicy)
    expected: tuple[Identity | None, ...] = ()
    references: str | None = field(default=None, repr=False)
    allow: tuple[str, ...] = ()
    limits: Limits = USUAL
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
            reader = open_ranges(url, options_for(url, self.storage_options), self.policy, expected)
            self._readers[number] = reader
        return reader

    def check(self, url: str) -> None:
        """Raise NotAllowed where the references must not name the file at `url`."""
        if self.references is not None:
            check_referred(url, self.references, self.allow)

    def hold(self, number: int, content: memoryview) -> None:
        """Let source `number` be read from memory, in this process."""
        self._readers[number] = HeldRanges(self.urls[number], content)

    def keep(self, reader: RangeReader) -> None:
        """Keep a reader of something else until all are closed: it may share connections with those of the files."""
        self._readers[_BESIDE] = reader

    def close(self) -> None:
        """Let go of files and connections; what is read afterwards opens them again."""
        for reader in list(self._readers.values()):
            reader.close()
        self._readers.clear()

    def __reduce__(self) -> Any:
        rest = (self.references, self.allow, self.limits)
        return _restore, (self.urls, dict(self.storage_options), self.policy, self.expected, *rest)


def _restore(
    urls: tuple[str, ...],
    options: dict[str, Any],
    policy: FetchPolicy,
    expected: Any,
    references: str | None,
    allow: tuple[str, ...],
    limits: Limits,
) -> Sources:
    return Sources(
        urls=urls,
        storage_options=options,
        policy=policy,
        expected=expected,
        references=references,
        allow=allow,
        limits=limits,
    )


def in_each(jobs: Sequence[Callable[[], None]]) -> None:
    """Do what is to be done with each of several files, many at a time: most of it is waiting."""
    if len(jobs) <= 1:
        for job in jobs:
            job()
        return
    with ThreadPoolExecutor(min(_MOST_FILES_AT_ONCE, len(jobs))) as pool:
        for future in [pool.submit(job) for job in jobs]:
            future.result()


def sized(nbytes: Column, reader: RangeReader) -> Column:
    """Return `nbytes` with the size of the file in the place of `TO_THE_END`."""
    unknown = nbytes == TO_THE_END
    return np.where(unknown, reader.nbytes, nbytes) if unknown.any() else nbytes


def options_for(url: str, storage_options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the storage options for one file: all of them, or those under its protocol.

    They are by protocol where every value is a mapping and every name one of fsspec's protocols. For a chain of URLs,
    fsspec takes them so, but those of its own links only.
    """
    if not storage_options or not all(isinstance(value, Mapping) for value in storage_options.values()):
        return storage_options
    from fsspec import available_protocols  # type: ignore[import-untyped, unused-ignore]

    if not set(storage_options) <= set(available_protocols()):
        return storage_options
    if is_chain(url):
        links = {link.partition("://")[0] for link in split_chain(url)}
        return {protocol: options for protocol, options in storage_options.items() if protocol in links}
    found: Mapping[str, Any] = storage_options.get(protocol_of(url), {})
    return found
