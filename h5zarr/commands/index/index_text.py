"""The result of a run as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from h5zarr.commands.catalog.rows import UNWRITTEN, Row, Status
from h5zarr.display import counted, readable, size

if TYPE_CHECKING:
    from h5zarr.commands.index.index_report import IndexReport

_SHOWN = 20  # sources in a list


def without_source(row: Row) -> str:
    """Return the reason for a failure without the name of the source, with which it usually begins."""
    kind, _, what = row.reason.partition(": ")
    return what.removeprefix(f"{row.source}:").strip() or kind


def failure_lines(row: Row, max_attempts: int, phrase: Callable[[str], str] = str) -> list[str]:
    """Return why a source failed, whether it will be tried again, and what to do."""
    tried = "" if row.attempts == 1 else f" (attempt {row.attempts:,} of {max_attempts:,})"
    if row.settings == UNWRITTEN:
        tried = ""  # it is tried in every run
    elif row.attempts >= max_attempts:
        tried = f" (given up after {counted(row.attempts, 'attempt')}, until it changes)"
    lines = [f"{readable(row.source)}: {readable(phrase(without_source(row)))}{tried}"]
    return [*lines, f"  {readable(phrase(row.remedy))}"] if row.remedy else lines


def end_lines(report: IndexReport, phrase: Callable[[str], str] = str) -> list[str]:
    """Return the result of a run, in a few lines."""
    lines = [*_vanished_lines(report, phrase), *given_up_lines(report, phrase)]
    if report.ended == "planned":
        return [*lines, phrase("nothing was written: dry_run=True")]
    cubes = [phrase(line) for one in report.cubes for line in one.lines()]
    if not report.done_count and report.ended == "finished":
        what = f"nothing to do: {counted(report.unchanged_count, 'source')} unchanged{_of_them(report)}"
        return [*lines, what, *cubes]
    lines.append(" · ".join(_done_parts(report)))
    if report.with_problems_count and report.out:
        lines.append(f"h5zarr status {report.out} shows the problems")
    return [*lines, *cubes, *unfinished_lines(report)]


def unfinished_lines(report: IndexReport) -> list[str]:
    """Return why a run ended early; nothing if it did not. The next run continues."""
    if report.ended == "finished":
        return []
    left = f", {counted(report.remaining_count, 'file')} left" if report.remaining_count else ""
    return [f"not finished: {report.ended}{left}; the next run continues"]


def _done_parts(report: IndexReport) -> list[str]:
    done = [f"{counted(report.indexed_count, 'file')} indexed"]
    done += [f"{report.with_problems_count:,} indexed with problems"] if report.with_problems_count else []
    new = len(report.new_failures)
    is_mixed = 0 < new < report.failed_count
    done.append(f"{report.failed_count:,} failed{f' ({new:,} for the first time)' if is_mixed else ''}")
    seconds = f"{report.seconds:.2f} s"
    if not report.indexed_count and not report.with_problems_count:
        return [", ".join(done), seconds]
    held = f"{counted(report.chunks, 'chunk')} in {counted(report.arrays, 'array')}"
    asked = f"{counted(report.requests, 'request')}, " if report.is_remote else ""
    return [", ".join(done), held, f"{asked}{size(report.bytes_read)} read", seconds]


def _of_them(report: IndexReport) -> str:
    """Return how many of the unchanged sources have problems: a run that does nothing does not hide them."""
    count = report.states[Status.INDEXED_WITH_PROBLEMS]
    return f", {count:,} of them with problems" if count else ""


def _vanished_lines(report: IndexReport, phrase: Callable[[str], str]) -> list[str]:
    if not report.vanished:
        return []
    is_one = len(report.vanished) == 1
    kept = phrase("it is kept; prune=True removes it" if is_one else "they are kept; prune=True removes them")
    pruned = f"{report.pruned_count:,} removed"
    head = f"{counted(len(report.vanished), 'source')} vanished: {pruned if report.pruned_count else kept}"
    return [head, *_some([readable(source) for source in report.vanished])]


def given_up_lines(report: IndexReport, phrase: Callable[[str], str] = str) -> list[str]:
    """Return the sources that were given up in earlier runs."""
    if not report.given_up:
        return []
    again = phrase("tried again after a change, or with force=True")
    named = [f"{readable(row.source)}: {readable(phrase(without_source(row)))}" for row in report.given_up]
    return [f"{counted(len(named), 'source')} given up: {again}", *_some(named)]


def _some(names: Sequence[str]) -> list[str]:
    more = [f"  and {len(names) - _SHOWN:,} more"] if len(names) > _SHOWN else []
    return [f"  {name}" for name in names[:_SHOWN]] + more
