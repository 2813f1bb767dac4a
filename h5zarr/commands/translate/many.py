"""Translate many files concurrently in one process. They share connections, and memory is bounded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from h5zarr.commands.translate.options import make_options
from h5zarr.commands.translate.translate import run_translation
from h5zarr.commands.translate.translation import Translation
from h5zarr.commands.translate.translation_text import held_text
from h5zarr.display import readable, shortened, summary_repr
from h5zarr.errors import H5ZarrError
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.logs import LOG

T = TypeVar("T")
Named = TypeVar("Named")


class Outcome(NamedTuple):
    """The result for one of many files. `str()` is the text of the translation, or of the error.

    Attributes
    ----------
    source
        The file, as it was given. It may be a signed URL; `repr` leaves secrets out.
    translation
        The `Translation`, or None if it failed.
    error
        The `H5ZarrError` that prevented it, or None.

    Examples
    --------
    >>> import h5zarr
    >>> next(h5zarr.translate_many(["ocean.nc"]))
    <h5zarr.Outcome of ocean.nc: <h5zarr.Translation of ocean.nc: 6 arrays, 60 chunks, 0 problems>>
    """

    source: str
    translation: Translation | None
    error: H5ZarrError | None

    def __repr__(self) -> str:
        place = str(Location.parse(self.source))
        if self.translation is None:
            what = shortened(readable(f"{type(self.error).__name__}: {self.error}"), 200)
            return summary_repr("Outcome", place, what)
        return summary_repr("Outcome", place, repr(self.translation))

    def __str__(self) -> str:
        return str(self.error if self.translation is None else self.translation)


def translate_many(
    sources: Iterable[str | os.PathLike[str]],
    *,
    at_once: int = 8,
    group: str = "/",
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    strict: bool = False,
    zarr_format: int = 3,
    nz: bool = False,
    chunk_bytes: int | None = None,
    inline_bytes: int | None = None,
    max_inline_bytes: int | None = None,
    joinable: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    anon: bool = False,
    network: Mapping[str, float] | None = None,
    limits: Mapping[str, int] | None = None,
    allow: Sequence[str] = (),
) -> Iterator[Outcome]:
    """Translate many files concurrently, and yield each outcome as soon as it is finished.

    While one file waits for the network, others are parsed. Lazy: files are processed as you iterate.

    Parameters
    ----------
    sources
        Paths, or URLs that fsspec opens.
    at_once
        How many files to work on at a time.
    group, include, exclude, strict, zarr_format, nz, chunk_bytes, inline_bytes, max_inline_bytes, joinable
        What to translate and how, as in `h5zarr.translate`.
    storage_options, anon, network, limits, allow
        How to open the files, as in `h5zarr.translate`.

    Yields
    ------
    Outcome
        A file that cannot be read does not stop the others: its outcome has the `error`.

    Raises
    ------
    ValueError or TypeError
        An option has an invalid value.

    Examples
    --------
    >>> import h5zarr
    >>> for outcome in h5zarr.translate_many(["ocean.nc", "missing.nc"], at_once=1):
    ...     print(outcome.source, outcome.translation, type(outcome.error).__name__, sep=" | ")
    ocean.nc | 6 arrays, 60 chunks referenced... | NoneType
    missing.nc | None | SourceGone
    """
    options = make_options(
        group=group,
        include=include,
        exclude=exclude,
        strict=strict,
        zarr_format=zarr_format,
        nz=nz,
        chunk_bytes=chunk_bytes,
        inline_bytes=inline_bytes,
        max_inline_bytes=max_inline_bytes,
        joinable=joinable,
    )
    access = Access.from_options(storage_options, network, limits, allow, anon=anon)

    def work(location: Location) -> Outcome:
        try:
            made = run_translation(location, None, options, access)
        except H5ZarrError as error:
            LOG.warning("translate: %s", readable(str(error)))
            return Outcome(location.text, None, error)
        LOG.info("translate: %s: %s, %.2f s", readable(made.source), held_text(made.hierarchy), made.seconds)
        return Outcome(location.text, made, None)

    return work_through((Location.parse(source) for source in sources), work, at_once)


def work_through(names: Iterable[Named], work: Callable[[Named], T], at_once: int) -> Iterator[T]:
    """Return an iterator over the results of `work` for each name, as they finish, `at_once` in threads."""
    if at_once < 1:
        raise ValueError(f"at_once is {at_once}, but must be positive")
    return _work_through(iter(names), work, at_once)


def _work_through(names: Iterator[Named], work: Callable[[Named], T], at_once: int) -> Iterator[T]:
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
