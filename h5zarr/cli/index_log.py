"""The output of a running index job: a line with rate and time left at a terminal, or JSON, one object per line."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from h5zarr.cli.common import phrase, tell
from h5zarr.commands.index.index_report import COULD_NOT_RUN, IndexReport
from h5zarr.commands.index.index_text import end_lines, without_source
from h5zarr.commands.index.planning import Plan
from h5zarr.commands.index.rows import Row, Status, writable
from h5zarr.display import readable

_STEP_SECONDS = 0.25


class RunLog:
    """Reports the progress of a run."""

    def __init__(self, *, quiet: bool, as_json: bool) -> None:
        self._quiet = quiet
        self._as_json = as_json
        self._has_line = not quiet and not as_json and sys.stderr.isatty()
        self._task_count = self._done_count = self._failed_count = 0
        self._began = self._shown_at = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._wipe()

    def plan(self, plan: Plan) -> None:
        """Report what is planned."""
        counts = {"new": len(plan.new), "changed": len(plan.changed), "tried again": len(plan.retried)}
        self._task_count = len(plan.tasks)
        self._began = time.monotonic()
        if self._as_json:
            _log("planned", **{name.replace(" ", "_"): n for name, n in counts.items()}, **_rest(plan))
        elif not self._quiet:
            parts = [f"{count:,} {name}" for name, count in counts.items()]
            parts += [f"{count:,} {name.replace('_', ' ')}" for name, count in _rest(plan).items()]
            tell([", ".join(parts)])

    def row(self, row: Row) -> None:
        """Report the result of a source; at a terminal only if it failed."""
        self._done_count += 1
        is_indexed = row.status is Status.INDEXED
        self._failed_count += not is_indexed
        if self._as_json and not (self._quiet and is_indexed):
            _log(
                "indexed" if is_indexed else "failed",
                source=row.source,
                **({"output": row.output, "arrays": row.arrays, "chunks": row.chunks} if is_indexed else {}),
                **({} if is_indexed else {"reason": row.reason, "remedy": row.remedy, "attempts": row.attempts}),
                problems=len(row.problems),
                seconds=row.seconds,
            )
        elif not is_indexed and not self._as_json:
            self._wipe()
            tell([f"{readable(row.source)}: {readable(without_source(row))}", f"  {readable(phrase(row.remedy))}"])
        if self._has_line and time.monotonic() - self._shown_at > _STEP_SECONDS:
            self._shown_at = time.monotonic()
            sys.stderr.write(f"\r\x1b[K{self.line()}")
            sys.stderr.flush()

    def line(self) -> str:
        """Return the progress line."""
        seconds = max(time.monotonic() - self._began, 1e-9)
        rate = self._done_count / seconds
        left = (self._task_count - self._done_count) / rate if rate else 0
        failed = f", {self._failed_count:,} failed" if self._failed_count else ""
        return f"{self._done_count:,} of {self._task_count:,} files{failed}, {rate:.1f} a second, {_clock(left)} left"

    def end(self, report: IndexReport) -> None:
        """Report the result of the run."""
        if self._as_json:
            told = report.to_json()
            for name in ("failures", "given_up_on", "vanished_sources", "slowest", "version", "message", "remedy"):
                told.pop(name)
            _log("ended", how=told.pop("ended"), **told)
        elif not self._quiet:
            tell(end_lines(report, phrase=phrase))

    def _wipe(self) -> None:
        if self._has_line:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def log_could_not_run(message: str, remedy: str, *, as_json: bool) -> None:
    """Report why a run could not start, or was lost."""
    if as_json:
        _log("ended", how=COULD_NOT_RUN, message=writable(message), remedy=writable(remedy) or None)
    else:
        tell([f"h5zarr: {readable(phrase(message))}", *([f"  {readable(phrase(remedy))}"] if remedy else [])])


def _log(event: str, **told: Any) -> None:
    moment = datetime.now(UTC).isoformat(timespec="milliseconds")
    sys.stderr.write(json.dumps({"time": moment, "event": event, **told}) + "\n")
    sys.stderr.flush()


def _rest(plan: Plan) -> dict[str, int]:
    """Return the numbers of sources that need nothing."""
    return {"unchanged": plan.unchanged_count, "given_up": len(plan.given_up), "vanished": len(plan.vanished)}


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
