"""The summary of an index: counts by status, and the sources that need attention."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from h5zarr.commands.catalog.catalog import CATALOG, Catalog
from h5zarr.commands.catalog.place import Place
from h5zarr.commands.catalog.rows import Row, Status
from h5zarr.commands.index.cubes import read_cubes, recorded_lines
from h5zarr.commands.index.index_text import without_source
from h5zarr.commands.index.lease import LEASE, describe_lease
from h5zarr.commands.index.run_record import RunRecord, read_record
from h5zarr.display import counted, readable, summary_repr
from h5zarr.errors import H5ZarrError, SourceTimeout
from h5zarr.io.access import Access

_REASONS, _SOURCES = 10, 5  # how much is shown unless everything is wanted: reasons per status, sources per reason
_ATTENTION = (Status.FAILED, Status.STALE, Status.INDEXED_WITH_PROBLEMS, Status.VANISHED)


class NoIndex(H5ZarrError, FileNotFoundError):
    """There is no index in this directory."""

    kind = "output"
    remedy = "Create one with h5zarr index."


@dataclass(slots=True, repr=False)
class Summary:
    """The summary of an index. `str()` is the text that `h5zarr status` prints.

    Attributes
    ----------
    counts
        How many sources have each status.
    others
        The rows of sources that are not simply indexed, with the reasons.
    arrays, chunks
        What the up-to-date references contain.
    empty_count
        How many valid files contain no arrays, or none of those selected.
    newest
        When the catalog last changed.
    run
        Whether a run is active or has ended early, as text; "" if the last run finished.
    last_run
        The record of the last run that ended: `run_id`, `ended`, `time`, and the time and id of the last successful
        run; None if there is no record.
    cubes
        What became of each cube in the last run.

    Examples
    --------
    >>> import h5zarr
    >>> _ = h5zarr.index("ocean*.nc", "refs", workers=1)
    >>> h5zarr.status("refs").counts["indexed"]
    1
    """

    counts: Counter[str] = field(default_factory=Counter)
    others: list[Row] = field(default_factory=list)
    arrays: int = 0
    chunks: int = 0
    empty_count: int = 0
    newest: datetime | None = None
    run: str = ""
    last_run: RunRecord | None = None
    cubes: list[dict[str, Any]] = field(default_factory=list)

    def __repr__(self) -> str:
        counts = (f"{self.counts[status]:,} {status}" for status in Status)
        return summary_repr("Summary", "", *counts)

    def __str__(self) -> str:
        return "\n".join(summary_lines(self))

    @property
    def is_good(self) -> bool:
        """Whether every source is there and has up-to-date references, with or without problems."""
        return not any(self.counts[status] for status in (Status.FAILED, Status.STALE, Status.VANISHED))

    def to_json(self) -> dict[str, Any]:
        """Return the summary for machines, with all sources that need attention."""
        document: dict[str, Any] = {"counts": {status.key: self.counts[status] for status in Status}}
        document |= {"arrays": self.arrays, "chunks": self.chunks, "without_arrays": self.empty_count}
        document["newest"] = None if self.newest is None else self.newest.isoformat()
        document["run"] = self.run or None
        document["last_run"] = None if self.last_run is None else self.last_run.to_json()
        document["cubes"] = self.cubes
        for status in _ATTENTION:
            document[status.key] = [_describe(row) for row in self.others if row.status is status]
        return document


def status(
    out: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
    anon: bool = False,
    network: Mapping[str, float] | None = None,
) -> Summary:
    """Summarise the catalog of an index.

    Parameters
    ----------
    out
        The directory of the index, as a path or URL.
    storage_options, anon, network
        How to open it, as in `h5zarr.translate`.

    Returns
    -------
    Summary
        Counts, and the sources that need attention.

    Raises
    ------
    H5ZarrError
        There is no index, or it cannot be read.

    Examples
    --------
    >>> import h5zarr
    >>> _ = h5zarr.index("ocean*.nc", "refs", workers=1)
    >>> h5zarr.status("refs").arrays
    6
    """
    access = Access.from_options(storage_options, network, anon=anon)
    place = Place(out, access.options_for(os.fspath(out)), access.network)
    summary = Summary()
    try:
        summary.run = describe_lease(place.read(LEASE))  # before the catalog: a run may finish in between
        summary.last_run = read_record(place)
        summary.cubes = read_cubes(place)
    except SourceTimeout:
        raise  # reading the catalog would take the same time again
    except H5ZarrError:
        pass  # the catalog matters more; reading it reports what is wrong with the directory
    catalog = Catalog(place)
    if catalog.has_parts and not summary.run:
        summary.run = "the last run did not finish; the next run continues"
    for row in catalog.rows():
        summary.counts[row.status] += 1
        summary.newest = max(summary.newest or row.time, row.time)
        if row.status.is_indexed:
            summary.arrays += row.arrays
            summary.chunks += row.chunks
            summary.empty_count += not row.arrays
        if row.status is not Status.INDEXED:
            summary.others.append(row)
    if not summary.counts and place.read(CATALOG) is None:
        raise NoIndex(f"{place.shown}: no index found{summary.run and f': {summary.run}'}")
    return summary


def summary_lines(summary: Summary, *, show_all: bool = False, phrase: Callable[[str], str] = str) -> Iterator[str]:
    """Yield the summary as text: counts, then the sources that need attention, by reason.

    The lists are short unless `show_all`.
    """
    yield ", ".join(f"{summary.counts[status]:,} {status}" for status in Status)
    empty = f"; {counted(summary.empty_count, 'file')} without arrays" if summary.empty_count else ""
    yield f"{counted(summary.chunks, 'chunk')} in {counted(summary.arrays, 'array')}{empty}"
    if summary.newest is not None:
        yield f"catalog last changed {summary.newest:%Y-%m-%d %H:%M:%S} UTC"
    if (last := summary.last_run) is not None:
        yield from _last_lines(last)
    if summary.run:
        yield summary.run
    yield from recorded_lines(summary.cubes)
    for status in _ATTENTION:
        reasons = _by_reason([row for row in summary.others if row.status is status])
        shown = list(reasons.items())[: None if show_all else _REASONS]
        for (reason, remedy), sources in shown:
            yield ""
            yield f"{status}: {readable(phrase(reason))}"
            yield from _some(sources, None if show_all else _SOURCES)
            if remedy:
                yield f"  {readable(phrase(remedy))}"
        if len(reasons) > len(shown):
            yield ""
            yield f"{status}: and {counted(len(reasons) - len(shown), 'more reason')}"


def _last_lines(last: RunRecord) -> Iterator[str]:
    yield f"last run {last.time:%Y-%m-%d %H:%M:%S} UTC: {readable(last.ended)} ({readable(last.run_id)})"
    if last.last_success is not None and last.last_success != last.time:
        run_id = readable(last.last_success_run_id or "unknown run")
        yield f"last successful run {last.last_success:%Y-%m-%d %H:%M:%S} UTC ({run_id})"


def _some(sources: Sequence[str], most: int | None) -> Iterator[str]:
    yield from (f"  {readable(source)}" for source in sources[:most])
    if most is not None and len(sources) > most:
        yield f"  and {len(sources) - most:,} more"


def _by_reason(rows: Sequence[Row]) -> dict[tuple[str, str], list[str]]:
    """Return sources grouped by what is wrong with them and what to do, the most frequent first.

    A source with several problems is in several groups.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for reason in _reasons(row):
            found.setdefault(reason, []).append(f"{row.source}{_tried(row)}")
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def _tried(row: Row) -> str:
    """Return how often a source has failed, if more than once."""
    return f" (failed {row.attempts:,} times)" if row.status.is_failure and row.attempts > 1 else ""


def _reasons(row: Row) -> Iterator[tuple[str, str]]:
    if row.status is Status.INDEXED_WITH_PROBLEMS:
        yield from dict.fromkeys((str(problem), problem.remedy) for problem in row.problems)
    elif row.status is Status.VANISHED:
        yield "the source was no longer found", "h5zarr index --prune removes it."
    else:
        yield without_source(row), row.remedy


def _describe(row: Row) -> dict[str, Any]:
    return {
        "source": row.source,
        "output": row.output,
        "reason": row.reason,
        "remedy": row.remedy,
        "attempts": row.attempts,
        "problems": [problem.to_json() for problem in row.problems],
    }
