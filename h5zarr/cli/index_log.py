"""The messages of a running index job, on stderr: text, with a progress line at a terminal, or JSON lines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from h5zarr.cli.common import phrase, tell, write_message
from h5zarr.commands.catalog.rows import Row, writable
from h5zarr.commands.index.index_report import IndexReport
from h5zarr.commands.index.index_text import end_lines, failure_lines, given_up_lines, unfinished_lines
from h5zarr.commands.index.planning import Plan
from h5zarr.display import counted, readable

_STEP_SECONDS = 0.25


class Voice:
    """Writes the lines of one run to stderr, as text or as JSON objects, all with the id of the run and its collection.

    Text on a terminal has no id: somebody is watching the only run there.
    """

    def __init__(self, run_id: str, collection: str | None = None, *, as_json: bool) -> None:
        self._names = {"run_id": run_id, **({"collection": collection} if collection else {})}
        self.as_json = as_json
        names = list(self._names.values())[1 if sys.stderr.isatty() else 0 :]
        self._mark = f"[{' '.join(names)}] " if names else ""

    def tell(self, lines: Iterable[str]) -> None:
        """Write lines of text."""
        tell(f"{self._mark}{line}" for line in lines)

    def log(self, event: str, **fields: Any) -> None:
        """Write an object."""
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        write_message(json.dumps({"time": moment, **self._names, "event": event, **fields}) + "\n")

    def warn(self, message: str, remedy: str = "") -> None:
        """Report something that does not change the result of the run."""
        if self.as_json:
            self.log("warning", message=writable(message), remedy=writable(remedy) or None)
        else:
            self._complain(message, remedy)

    def end_without_run(self, message: str, remedy: str, how: str) -> None:
        """Report why a run did nothing, or was lost."""
        if self.as_json:
            self.log("ended", how=how, message=writable(message), remedy=writable(remedy) or None)
        else:
            self._complain(message, remedy)

    def _complain(self, message: str, remedy: str) -> None:
        self.tell([f"h5zarr: {readable(message)}", *([f"  {readable(remedy)}"] if remedy else [])])


class RunLog:
    """Reports the progress of a run.

    If `quiet`, it reports only new failures; with `fail_on` "any", also failed retries and sources that were given up.
    """

    def __init__(self, voice: Voice, *, quiet: bool, fail_on: str, max_attempts: int) -> None:
        self._voice = voice
        self._quiet = quiet
        self._fail_on = fail_on
        self._max_attempts = max_attempts
        self._has_line = not quiet and not voice.as_json and sys.stderr.isatty()
        self._remedies: set[str] = set()  # each is told once: a thousand files may fail for the same reason
        self._task_count = self._done_count = self._failed_count = 0
        self._began = self._shown_at = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._wipe()

    def plan(self, plan: Plan) -> None:
        """Report the plan."""
        self._task_count = len(plan.tasks)
        self._began = time.monotonic()
        if self._quiet:
            return
        counts = {
            "new": len(plan.new),
            "changed": len(plan.changed),
            "tried again": len(plan.retried),
            "unchanged": plan.unchanged_count,
            "given up": len(plan.given_up),
            "vanished": len(plan.vanished),
        }
        if self._voice.as_json:
            self._voice.log("planned", **{name.replace(" ", "_"): count for name, count in counts.items()})
        else:
            self._voice.tell([", ".join(f"{count:,} {name}" for name, count in counts.items())])

    def row(self, row: Row) -> None:
        """Report the result of a source; as text only if it failed."""
        self._done_count += 1
        is_failure = row.status.is_failure
        self._failed_count += is_failure
        if self._quiet and not (is_failure and (row.attempts == 1 or self._fail_on == "any")):
            return
        if self._voice.as_json:
            self._log_row(row)
        elif is_failure:
            self._wipe()
            what, *remedy = failure_lines(row, self._max_attempts, phrase)
            self._voice.tell([what, *(line for line in remedy if line not in self._remedies)])
            self._remedies.update(remedy)
        if self._has_line and time.monotonic() - self._shown_at > _STEP_SECONDS:
            self._shown_at = time.monotonic()
            write_message(f"\r\x1b[K{self.line()}")

    def line(self) -> str:
        """Return the progress line."""
        seconds = max(time.monotonic() - self._began, 1e-9)
        rate = self._done_count / seconds
        left = (self._task_count - self._done_count) / rate if rate else 0
        failed = f", {self._failed_count:,} failed" if self._failed_count else ""
        count = counted(self._task_count, "file")
        return f"{self._done_count:,} of {count}{failed}, {rate:.1f} a second, {_clock(left)} left"

    def end(self, report: IndexReport) -> None:
        """Report the result of the run."""
        if self._quiet:
            if self._voice.as_json:
                return
            self._voice.tell(given_up_lines(report, phrase) if self._fail_on == "any" else [])
            failed = [one for one in report.cubes if one.is_failure]
            self._voice.tell(phrase(line) for one in failed for line in one.lines())
            self._voice.tell(unfinished_lines(report) if report.is_failure or report.ended == "stopped" else [])
        elif self._voice.as_json:
            fields = report.to_json()
            for name in (
                "failures",
                "given_up_on",
                "problem_sources",
                "vanished_sources",
                "slowest",
                "version",
                "run_id",
                "message",
                "remedy",
            ):
                fields.pop(name)
            self._voice.log("ended", how=fields.pop("ended"), **fields)
        else:
            self._voice.tell(end_lines(report, phrase))

    def _log_row(self, row: Row) -> None:
        if row.status.is_failure:
            about = {"reason": row.reason, "remedy": row.remedy, "attempts": row.attempts}
        else:
            about = {"output": row.output, "arrays": row.arrays, "chunks": row.chunks}
        event = "failed" if row.status.is_failure else row.status.key
        self._voice.log(event, source=row.source, **about, problems=len(row.problems), seconds=row.seconds)

    def _wipe(self) -> None:
        if self._has_line:
            write_message("\r\x1b[K")


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
