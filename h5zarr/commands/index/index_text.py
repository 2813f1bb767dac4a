"""The text of a run's result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from h5zarr.commands.index.rows import Row
from h5zarr.display import counted, readable, size

if TYPE_CHECKING:
    from h5zarr.commands.index.index_report import IndexReport

_SHOWN = 20  # sources of each kind


def end_lines(report: IndexReport, *, phrase: Callable[[str], str] = str) -> list[str]:
    """Return the result of a run, in a few lines."""
    lines = []
    if report.vanished:
        removed = f"{counted(report.pruned_count, 'output')} removed"
        fate = removed if report.pruned_count else phrase("kept; prune=True removes them")
        lines.append(f"{counted(len(report.vanished), 'source')} vanished: {fate}")
        lines += _some([readable(source) for source in report.vanished])
    if report.given_up:
        lines.append(f"{counted(len(report.given_up), 'source')} given up after {report.given_up[0].attempts} attempts")
        lines += _some([f"{readable(row.source)}: {readable(without_source(row))}" for row in report.given_up])
    if report.ended == "planned":
        return [*lines, phrase("nothing was written: dry_run=True")]
    if not report.indexed_count and not report.failed and report.ended == "finished":
        return [*lines, f"nothing to do: {counted(report.unchanged_count, 'source')} unchanged"]
    took = f"{counted(report.requests, 'request')}, {size(report.bytes_read)} · {report.seconds:.2f} s"
    with_problems = f" ({report.with_problems_count:,} with problems)" if report.with_problems_count else ""
    held = f"{counted(report.indexed_count, 'file')} indexed{with_problems}, {report.failed_count:,} failed"
    lines.append(f"{held} · {counted(report.chunks, 'chunk')} of {counted(report.arrays, 'array')} · {took}")
    return lines if report.ended == "finished" else [*lines, f"not finished: {report.ended}"]


def _some(names: list[str]) -> list[str]:
    more = [f"  and {len(names) - _SHOWN:,} more"] if len(names) > _SHOWN else []
    return [f"  {name}" for name in names[:_SHOWN]] + more


def without_source(row: Row) -> str:
    """Return the reason of a failure without the name of the source, with which it usually begins."""
    kind, _, what = row.reason.partition(": ")
    return what.removeprefix(f"{row.source}:").strip() or kind
