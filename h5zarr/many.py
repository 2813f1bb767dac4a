"""Many files, several at a time, in one process: connections are shared, and memory is bounded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from h5zarr.errors import H5ZarrError
from h5zarr.io.policy import ReadPolicy
from h5zarr.translating import Options, Translation, translate

T = TypeVar("T")


class Outcome(NamedTuple):
    """What became of one file: its translation, or the reason why there is none."""

    source: str
    translation: Translation | None
    error: H5ZarrError | None


def translate_many(
    sources: Iterable[str | os.PathLike[str]],
    *,
    storage_options: Mapping[str, Any] | None = None,
    policy: ReadPolicy | None = None,
    options: Options | None = None,
    at_once: int = 8,
) -> Iterator[Outcome]:
    """Yield what becomes of each of `sources`, in the order in which they are finished, `at_once` of them under way.

    While one waits for an answer, others are parsed, so that the time is that of the requests or that of the processor,
    not the sum. A file that cannot be read does not end the others. Nothing is begun for which nobody has asked: what
    is not taken out of the iterator holds up the next.
    """
    names = (os.fspath(source) for source in sources)

    def work(source: str) -> Outcome:
        try:
            made = translate(source, storage_options=storage_options, policy=policy, options=options)
        except H5ZarrError as error:
            return Outcome(source, None, error)
        return Outcome(source, made, None)

    return work_through(names, work, at_once)


def work_through(names: Iterable[str], work: Callable[[str], T], at_once: int) -> Iterator[T]:
    """Return an iterator over what `work` returns for each name, as they are finished, `at_once` in threads."""
    if at_once < 1:
        raise ValueError(f"at_once is {at_once}, but must be positive")
    return _work_through(iter(names), work, at_once)


def _work_through(names: Iterator[str], work: Callable[[str], T], at_once: int) -> Iterator[T]:
    with ThreadPoolExecutor(at_once) as pool:
        running: set[Future[T]] = {pool.submit(work, name) for name in islice(names, at_once)}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for finished in done:
                    yield finished.result()
                    running |= {pool.submit(work, name) for name in islice(names, 1)}
        finally:
            for future in running:
                future.cancel()
