"""A line at the terminal that shows how far a long scan has come."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Self

from h5zarr.inspect.escape import readable, shortened
from h5zarr.inspect.quantities import counted, size
from h5zarr.io.log import RequestLog
from h5zarr.io.url import display_url

_FIRST_SECONDS, _STEP_SECONDS = 1.0, 0.25


class Progress:
    """Shows what has been asked of a source, from the first second on, and wipes the line when it is done.

    A thread looks at the log of requests, which grows as answers arrive: nothing else needs to know.
    """

    def __init__(self, name: str, *, is_shown: bool) -> None:
        self._name = shortened(readable(display_url(name)), 40)
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
        """Return what is shown now."""
        if self._log is None:
            return f"{self._name}: opening"
        log = self._log
        told = (counted(log.rounds, "round"), counted(log.requests, "request"), size(log.nbytes))
        return f"{self._name}: reading metadata, {', '.join(told)}"
