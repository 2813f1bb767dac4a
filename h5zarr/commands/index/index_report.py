"""The result of a run: for people, for machines and for monitoring."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from h5zarr import __version__
from h5zarr.commands.catalog.rows import Row, Status, writable
from h5zarr.commands.index.cubes import CubeOutcome
from h5zarr.commands.index.index_text import end_lines
from h5zarr.commands.index.metrics import metrics_text, report_gauges
from h5zarr.commands.index.planning import Plan
from h5zarr.commands.index.run_id import make_run_id
from h5zarr.display import summary_repr

COULD_NOT_RUN = "could not run"
ANOTHER_RUN = "another run is active"  # it holds the lease, so this one did nothing
TAKEN_OVER = "another run took over"
TOO_MANY = "too many failures"
FAIL_ON = ("new", "any", "never")
_SLOWEST = 10


@dataclass(slots=True, repr=False)
class IndexReport:
    """What a run did, what state the sources are in, and what it cost. `str()` is the text that `h5zarr index` prints.

    Attributes
    ----------
    out
        The directory of the index, without secrets.
    fail_on
        Decides what `is_failure` means: "new", "any" or "never".
    run_id
        The id of the run, which is also in its log lines and metrics.
    began, seconds
        When the run began, and how long it took.
    ended
        How it ended: finished, planned, stopped, too many failures, another run took over, another run is active, or
        could not run.
    message, remedy
        Why the job could not run, and what to do.
    listed_count, new_count, changed_count, retried_count, unchanged_count
        How many sources were listed, and why the run reads them.
    given_up, vanished
        Sources that failed too often, and sources that are gone.
    pruned_count
        How many vanished sources were removed, with their references.
    states
        Counts of the listed and the vanished sources by status, after the run.
    indexed_count, with_problems_count, with_problems, failed
        What this run has done. `with_problems` and `failed` are rows of the catalog.
    arrays, chunks
        Content of the files that this run has indexed.
    requests, bytes_read, is_remote
        The cost of reading, and whether any source is remote.
    newest_source
        Modification time of the newest listed source that has up-to-date references; None if no store states one.
    last_success
        When the last successful run ended, whether it is this one or an earlier one; None if that is unknown.
    cubes
        What became of each cube.

    Examples
    --------
    >>> import h5zarr
    >>> report = h5zarr.index("ocean*.nc", "refs", workers=1)
    >>> report.ended, report.is_failure
    ('finished', False)
    """

    out: str = ""
    fail_on: str = "new"
    run_id: str = field(default_factory=make_run_id)
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    ended: str = ""
    message: str = ""
    remedy: str = ""
    seconds: float = 0.0
    listed_count: int = 0
    new_count: int = 0
    changed_count: int = 0
    retried_count: int = 0
    unchanged_count: int = 0
    given_up: list[Row] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    pruned_count: int = 0
    states: Counter[Status] = field(default_factory=Counter)
    indexed_count: int = 0
    with_problems_count: int = 0
    with_problems: list[Row] = field(default_factory=list)
    failed: list[Row] = field(default_factory=list)
    arrays: int = 0
    chunks: int = 0
    requests: int = 0
    bytes_read: int = 0
    is_remote: bool = False
    newest_source: datetime | None = None
    last_success: datetime | None = None
    cubes: list[CubeOutcome] = field(default_factory=list)
    _slowest: list[tuple[float, str]] = field(default_factory=list)
    _started: float = field(default_factory=time.perf_counter)

    def __repr__(self) -> str:
        facts = (
            f"{self.indexed_count:,} indexed",
            f"{self.with_problems_count:,} indexed with problems",
            f"{self.unchanged_count:,} unchanged",
            f"{self.failed_count:,} failed",
        )
        return summary_repr("IndexReport", self.out, self.ended or "running", *facts)

    def __str__(self) -> str:
        if not self.has_run:
            return "\n".join(filter(None, (self.message, self.remedy and f"  {self.remedy}")))
        return "\n".join(end_lines(self))

    @property
    def failed_count(self) -> int:
        """How many sources failed in this run."""
        return len(self.failed)

    @property
    def done_count(self) -> int:
        """How many sources were indexed or failed in this run."""
        return self.indexed_count + self.with_problems_count + self.failed_count

    @property
    def remaining_count(self) -> int:
        """How many sources this run planned to read and did not: the next run does."""
        return max(0, self.new_count + self.changed_count + self.retried_count - self.done_count)

    @property
    def new_failures(self) -> list[Row]:
        """The sources that failed in this run and had not failed before, or not since they last changed."""
        return [row for row in self.failed if row.attempts == 1]

    @property
    def has_run(self) -> bool:
        """Whether the job ran at all."""
        return self.ended not in (COULD_NOT_RUN, ANOTHER_RUN)

    @property
    def is_good(self) -> bool:
        """Whether every listed source has up-to-date references."""
        return self.ended in ("finished", "planned") and not self._are_failed

    @property
    def is_success(self) -> bool:
        """Whether the run did all its work and does not count as a failure: the exit code 0."""
        return self.ended == "finished" and not self.is_failure

    @property
    def is_failure(self) -> bool:
        """Whether the run counts as a failure: the exit code 1.

        Too many failures always do. A run that another one took over does not: the other one does the work.
        """
        if self.ended == TOO_MANY:
            return True
        is_new = bool(self.new_failures) or any(one.is_failure for one in self.cubes)
        return {"new": is_new, "any": self._are_failed, "never": False}[self.fail_on]

    @property
    def _are_failed(self) -> bool:
        misfits = [one for one in self.cubes if one.done is None or one.done.misfits or one.done.known_misfits]
        return bool(misfits) or any(count and status.is_failure for status, count in self.states.items())

    def take_plan(self, plan: Plan, listed_count: int, given_up: list[Row]) -> None:
        """Count what is planned.

        Parameters
        ----------
        plan
            The plan.
        listed_count
            How many sources were listed.
        given_up
            Rows of sources that are not tried again.
        """
        self.listed_count = listed_count
        self.new_count, self.changed_count = len(plan.new), len(plan.changed)
        self.retried_count, self.unchanged_count = len(plan.retried), plan.unchanged_count
        self.given_up = given_up
        self.vanished = [row.source for row in plan.vanished]
        self.states = Counter(plan.states)
        self._take_time(plan.newest)

    def take_row(self, row: Row, former: Status | None) -> None:
        """Count the result of one source, which was in the status `former` before.

        Parameters
        ----------
        row
            The result.
        former
            The earlier status, or None if the source is new.
        """
        if former is not None:
            self.states[former] -= 1
        self.states[row.status] += 1
        self.is_remote |= "://" in row.source
        self.requests += row.requests
        self.bytes_read += row.bytes_read
        heapq.heappush(self._slowest, (row.seconds, row.source))
        if len(self._slowest) > _SLOWEST:
            heapq.heappop(self._slowest)
        if not row.status.is_indexed:
            self.failed.append(row)
            return
        self._take_time(row.identity.mtime if row.identity is not None else None)
        self.indexed_count += row.status is Status.INDEXED
        if row.status is Status.INDEXED_WITH_PROBLEMS:
            self.with_problems_count += 1
            self.with_problems.append(row)
        self.arrays += row.arrays
        self.chunks += row.chunks

    def _take_time(self, mtime: str | None) -> None:
        """Note the modification time of a source with up-to-date references."""
        try:
            moment = datetime.fromisoformat(mtime or "")
        except ValueError:
            return
        if moment.tzinfo is not None:
            self.newest_source = max(self.newest_source or moment, moment)

    def take_vanished(self, former: Status, *, is_kept: bool) -> None:
        """Count a vanished source, whose references are kept or removed.

        Parameters
        ----------
        former
            The earlier status.
        is_kept
            Whether the references are kept.
        """
        self.states[former] -= 1
        self.states[Status.VANISHED] += is_kept

    def end(self, how: str) -> IndexReport:
        """Return this report with its end time.

        Parameters
        ----------
        how
            How the run ended.
        """
        self.ended = how
        self.seconds = time.perf_counter() - self._started
        return self

    def could_not_run(self, message: str, remedy: str, how: str = COULD_NOT_RUN) -> IndexReport:
        """Return this report with its end time and the reason why the job could not run, or did not have to.

        Parameters
        ----------
        message
            What happened.
        remedy
            What to do.
        how
            How the run ended.
        """
        self.message, self.remedy = writable(message), writable(remedy)
        return self.end(how)

    def to_json(self) -> dict[str, Any]:
        """Return the report for machines, always with the same keys.

        If the job could not run, the counts are null: it may have failed halfway, so zero would be wrong.
        """
        numbers: dict[str, int | None] = {
            **self.counts(),
            "arrays": self.arrays,
            "chunks": self.chunks,
            "requests": self.requests,
            "bytes_read": self.bytes_read,
        }
        return {
            "version": __version__,
            "run_id": self.run_id,
            "began": self.began.isoformat(),
            "ended": self.ended,
            "message": self.message or None,
            "remedy": self.remedy or None,
            "seconds": round(self.seconds, 3),
            "newest_source": None if self.newest_source is None else self.newest_source.isoformat(),
            "last_success": None if self.last_success is None else self.last_success.isoformat(),
            **(numbers if self.has_run else dict.fromkeys(numbers)),
            "states": {status.key: self.states[status] if self.has_run else None for status in Status},
            "failures": [_describe(row) for row in self.failed],
            "given_up_on": [_describe(row) for row in self.given_up],
            "problem_sources": [_describe_problems(row) for row in self.with_problems],
            "vanished_sources": self.vanished,
            "cubes": [one.to_json() for one in self.cubes],
            "slowest": [{"source": source, "seconds": round(took, 3)} for took, source in sorted(self._slowest)[::-1]],
        }

    def counts(self) -> dict[str, int]:
        """Return what the run did, as numbers of sources."""
        return {
            "listed": self.listed_count,
            "new": self.new_count,
            "changed": self.changed_count,
            "retried": self.retried_count,
            "unchanged": self.unchanged_count,
            "indexed": self.indexed_count,
            "indexed_with_problems": self.with_problems_count,
            "failed": self.failed_count,
            "new_failures": len(self.new_failures),
            "given_up": len(self.given_up),
            "vanished": len(self.vanished),
            "pruned": self.pruned_count,
            "remaining": self.remaining_count,
        }

    def to_metrics(self, index: str = "") -> str:
        """Return the report in Prometheus's text format, version 0.0.4. A job that could not run has no counts.

        Parameters
        ----------
        index
            A label of every metric, which distinguishes several jobs on one machine.
        """
        return metrics_text(report_gauges(self, index))


def _describe(row: Row) -> dict[str, Any]:
    about = {"source": row.source, "status": row.status.key, "reason": row.reason}
    return {**about, "remedy": row.remedy, "attempts": row.attempts}


def _describe_problems(row: Row) -> dict[str, Any]:
    return {"source": row.source, "problems": [problem.to_json() for problem in row.problems]}
