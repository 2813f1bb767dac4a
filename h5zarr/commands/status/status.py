"""The summary of an index: counts by status, and the sources that need attention."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from h5zarr.commands.index.catalog import CATALOG, Catalog
from h5zarr.commands.index.place import Place
from h5zarr.commands.index.rows import Row, Status
from h5zarr.display import counted, readable, summary_repr
from h5zarr.errors import H5ZarrError
from h5zarr.io.access import Access

_SHOWN = 20  # sources for each reason


class NoIndex(H5ZarrError, FileNotFoundError):
    """There is no index in this directory."""

    kind = "output"
    remedy = "Create one with h5zarr index."


@dataclass(slots=True, repr=False)
class Summary:
    """How many sources have each status; `others` are the rows of those that are not indexed."""

    counts: Counter[str] = field(default_factory=Counter)
    others: list[Row] = field(default_factory=list)
    with_problems_count: int = 0
    arrays: int = 0
    chunks: int = 0
    newest: datetime | None = None

    def __repr__(self) -> str:
        counts = (f"{self.counts[status]:,} {status}" for status in Status)
        return summary_repr("Summary", "", *counts)

    def __str__(self) -> str:
        return "\n".join(summary_lines(self))

    def to_json(self) -> dict[str, Any]:
        """Return the summary for machines, with all sources that need attention."""
        told: dict[str, Any] = {"counts": {str(status): self.counts[status] for status in Status}}
        told |= {"with_problems": self.with_problems_count, "arrays": self.arrays, "chunks": self.chunks}
        told["newest"] = None if self.newest is None else self.newest.isoformat()
        for status in (Status.FAILED, Status.STALE, Status.VANISHED):
            told[str(status)] = [_describe(row) for row in self.others if row.status is status]
        return told


def status(
    out: str | os.PathLike[str], *, storage_options: Mapping[str, Any] | None = None, anon: bool = False
) -> Summary:
    """Summarise the catalog of an index.

    Parameters
    ----------
    out
        The directory of the index, as a path or URL.
    storage_options, anon
        How to open it, as in `h5zarr.translate`.

    Returns
    -------
    Summary
        Counts, and the sources that need attention.

    Raises
    ------
    H5ZarrError
        There is no index, or it cannot be read.
    """
    access = Access.from_options(storage_options, anon=anon)
    place = Place(out, access.options_for(os.fspath(out)))
    catalog = Catalog(place)
    summary = Summary()
    for row in catalog.rows():
        summary.counts[row.status] += 1
        summary.newest = max(summary.newest or row.time, row.time)
        if row.status is Status.INDEXED:
            summary.with_problems_count += bool(row.problems)
            summary.arrays += row.arrays
            summary.chunks += row.chunks
        else:
            summary.others.append(row)
    if not summary.counts and place.read(CATALOG) is None:
        raise NoIndex(f"{place.shown}: no index found")
    return summary


def summary_lines(summary: Summary, *, most: int = _SHOWN, phrase: Callable[[str], str] = str) -> Iterator[str]:
    """Yield the summary as text: counts, then up to `most` sources for each reason."""
    counts = summary.counts
    yield ", ".join(f"{counts[status]:,} {status}" for status in Status)
    about = f"{counted(summary.chunks, 'chunk')} of {counted(summary.arrays, 'array')}"
    if summary.with_problems_count:
        about += f"; {counted(summary.with_problems_count, 'source')} with problems, named in the catalog"
    yield about
    if summary.newest is not None:
        yield f"last change {summary.newest:%Y-%m-%d %H:%M:%S} UTC"
    for status in (Status.FAILED, Status.STALE, Status.VANISHED):
        rows = [row for row in summary.others if row.status is status]
        for reason, found in _by_reason(rows[:10_000]).items():
            yield ""
            yield f"{status}: {reason}" if reason else f"{status}:"
            yield from (f"  {readable(row.source)}" for row in found[:most])
            if len(found) > most:
                yield f"  and {len(found) - most:,} more"
            if found[0].remedy:
                yield f"  {readable(phrase(found[0].remedy))}"


def _by_reason(rows: list[Row]) -> dict[str, list[Row]]:
    """Return rows grouped by what is wrong with them, ignoring file names."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        kind, _, what = row.reason.partition(": ")
        short = what.removeprefix(f"{row.source}:").strip()
        found.setdefault(readable(short or kind) if row.status is not Status.VANISHED else "", []).append(row)
    return found


def _describe(row: Row) -> dict[str, Any]:
    return {
        "source": row.source,
        "output": row.output,
        "reason": row.reason,
        "remedy": row.remedy,
        "attempts": row.attempts,
    }
