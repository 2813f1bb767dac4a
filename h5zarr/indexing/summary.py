"""What a catalog says, in short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from h5zarr.indexing.catalog import CATALOG, Catalog
from h5zarr.indexing.place import Place
from h5zarr.indexing.rows import Row, Status
from h5zarr.inspect.escape import readable
from h5zarr.inspect.quantities import counted


@dataclass(slots=True)
class Summary:
    """How many rows there are of each status, and those that are not as they should be."""

    counts: Counter[str] = field(default_factory=Counter)
    others: list[Row] = field(default_factory=list)
    with_problems_count: int = 0
    arrays: int = 0
    chunks: int = 0
    newest: datetime | None = None


def read_summary(place: Place) -> Summary | None:
    """Return the summary of the catalog at `place`; None where there is none."""
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
    return summary if summary.counts or place.read(CATALOG) is not None else None


def summary_lines(summary: Summary, *, most: int) -> Iterator[str]:
    """Yield the summary for people: counts, then the sources that need attention, at most so many of each kind."""
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
                yield f"  {readable(found[0].remedy)}"


def _by_reason(rows: list[Row]) -> dict[str, list[Row]]:
    """Return rows by what is wrong with them, apart from the names of the files."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        kind, _, what = row.reason.partition(": ")
        short = what.removeprefix(f"{row.source}:").strip()
        found.setdefault(readable(short or kind) if row.status is not Status.VANISHED else "", []).append(row)
    return found


def describe(summary: Summary) -> dict[str, Any]:
    """Return the summary for machines, with all sources that need attention."""
    told: dict[str, Any] = {"counts": {str(status): summary.counts[status] for status in Status}}
    told |= {"with_problems": summary.with_problems_count, "arrays": summary.arrays, "chunks": summary.chunks}
    told["newest"] = None if summary.newest is None else summary.newest.isoformat()
    for status in (Status.FAILED, Status.STALE, Status.VANISHED):
        rows = [row for row in summary.others if row.status is status]
        told[str(status)] = [
            {
                "source": row.source,
                "output": row.output,
                "reason": row.reason,
                "remedy": row.remedy,
                "attempts": row.attempts,
            }
            for row in rows
        ]
    return told
