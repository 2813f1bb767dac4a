"""A line at the terminal that shows the progress of long work."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Self

from h5zarr.display import counted, readable, shortened, size
from h5zarr.io.location import Location
from h5zarr.io.log import RequestLog

_FIRST_SECONDS, _STEP_SECONDS = 1.0, 0.25


class Progress:
    """Shows how much has been read from a source, after the first second, and removes the line at the end.

    A thread watches the log of requests, which grows as answers arrive.
    """

    def __init__(self, place: str | Location, *, is_shown: bool) -> None:
        self._name = shortened(readable(str(Location.parse(place))), 40)
        self._is_shown = is_shown
        self._log: RequestLog | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def watch(self, log: RequestLog) -> None:
        """Show this log from now on."""
        self._log = log

    def __enter__(self) -> Self:
        if self._is_shown:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._is_shown:
            self._thread.join()

    def _show(self) -> None:
        if self._ended.wait(_FIRST_SECONDS):
            return
        while not self._ended.wait(_STEP_SECONDS):
            sys.stderr.write(f"\r\x1b[K{self.line()}")
            sys.stderr.flush()
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()

    def line(self) -> str:
        """Return the current text."""
        if self._log is None:
            return f"{self._name}: opening"
        log = self._log
        requests = () if log.is_local else (counted(log.rounds, "round"), counted(log.requests, "request"))
        facts = (*requests, size(log.nbytes))
        return f"{self._name}: reading metadata, {', '.join(facts)}"


class CountLine:
    """A line that shows how many of several things are done."""

    def __init__(self, things: str, *, is_shown: bool) -> None:
        self._things = things
        self._is_shown = is_shown
        self._done = 0

    def show(self, name: str, count: int) -> None:
        """Count `name` as done; there are `count` in all."""
        self._done += 1
        if self._is_shown and count > 1:
            sys.stderr.write(f"\r\x1b[K{self._done:,} of {count:,} {self._things}, {readable(name[-60:])}")
            sys.stderr.flush()

    def wipe(self) -> None:
        """Remove the line."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
