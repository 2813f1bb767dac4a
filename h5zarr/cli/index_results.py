"""Where the results of a run go: the report and the metrics."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from h5zarr.cli.common import phrase
from h5zarr.cli.outputs import write_report, write_text

if TYPE_CHECKING:
    from h5zarr.cli.index_log import Voice
    from h5zarr.commands.index.index_report import IndexReport
    from h5zarr.commands.index.metrics import Gauge

_PATIENCE, _HURRY = 10.0, 2.0  # seconds for a push; a run that was stopped must end soon


class Results:
    """Writes what the arguments ask for. What cannot be written is reported, and does not change the exit code."""

    def __init__(self, arguments: argparse.Namespace, voice: Voice) -> None:
        self._arguments = arguments
        self._voice = voice

    def write(self, report: IndexReport, exit_code: int) -> int:
        """Write the results of a run, and return its exit code."""
        from h5zarr.commands.index.metrics import lasting_lines, report_gauges

        if place := self._arguments.metrics:
            before = "" if report.has_run else lasting_lines(_read(place))
            write_text(place, report.to_metrics(_label(self._arguments)) + before, self._complain)
        self._write_report(report, exit_code)
        if report.ended != "planned":  # a dry run must not replace the metrics of the last run
            gauges = report_gauges(report, _label(self._arguments))
            self._push(gauges, keep_others=not report.has_run, seconds=_HURRY if exit_code > 128 else _PATIENCE)
        return exit_code

    def note_skipped(self, report: IndexReport, exit_code: int) -> int:
        """Note in the metrics that this run did nothing, and keep what the last one wrote. Return the exit code.

        The active run cannot end and write its own just now: its lease was renewed a moment ago.
        """
        from h5zarr.commands.index.metrics import replace_metrics, skipped_gauge

        if self._arguments.metrics:
            text = replace_metrics(_read(self._arguments.metrics), [skipped_gauge(_label(self._arguments))])
            write_text(self._arguments.metrics, text, self._complain)
        self._write_report(report, exit_code)
        self._push([skipped_gauge(_label(self._arguments))], keep_others=True, seconds=_PATIENCE)
        return exit_code

    def _write_report(self, report: IndexReport, exit_code: int) -> None:
        about = {"exit_code": exit_code, "collection": getattr(self._arguments, "collection_name", None)}
        write_report(self._arguments, {**about, **report.to_json()}, self._complain)

    def _push(self, gauges: list[Gauge], *, keep_others: bool, seconds: float) -> None:
        """Send metrics to the servers that the user names. `keep_others`: those not among these are still right."""
        from h5zarr.commands.index.otel import push_to_collector
        from h5zarr.commands.index.pushing import Receiver, push_to_gateway

        if url := self._arguments.push_metrics:
            index = _label(self._arguments)
            send = partial(push_to_gateway, Receiver.parse(url), gauges, index, keep_others=keep_others)
            self._try("push_metrics=", partial(send, seconds=seconds))
        if url := self._arguments.otel:
            self._try("otel=", partial(push_to_collector, Receiver.parse(url), gauges, seconds=seconds))

    def _try(self, option: str, send: Callable[[], None]) -> None:
        from h5zarr.errors import H5ZarrError

        try:
            send()
        except H5ZarrError as error:
            self._voice.warn(phrase(f"{option} failed: {error}"), phrase(error.remedy))

    def _complain(self, place: str, message: str, remedy: str) -> None:
        from h5zarr.io.location import Location

        shown = str(Location.parse(place))
        self._voice.warn(f"{shown}: {phrase(message.removeprefix(f'{shown}:').strip())}", phrase(remedy))


def _read(path: str) -> str:
    """Return the text of a file, or nothing if it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""


def _label(arguments: argparse.Namespace) -> str:
    """Return the label `index` of the metrics: unique on this machine, and without secrets."""
    from h5zarr.io.location import Location

    if arguments.job:
        return str(arguments.job)
    out = Location.parse(arguments.out)
    return str(Location.parse(arguments.out.rstrip("/"))) if out.path is None else out.absolute()
