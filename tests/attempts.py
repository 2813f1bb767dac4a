"""Attempts on damaged files, in a process of their own: each ends in time, with a result or an H5ZarrError."""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Callable
from typing import Any

from h5zarr.errors import H5ZarrError


class TooSlow(BaseException):
    """Not an Exception, so that nothing in the parser can swallow it."""


def attempt(act: Callable[[], str | None], seconds: float) -> str | None:
    """Return what `act` finds wrong, or what went wrong in an unforeseen way, or None.

    `seconds` is processor time; ten times as much real time may pass. An attempt that takes longer is repeated once,
    because a busy machine may charge its waiting time to the process.
    """
    signal.signal(signal.SIGALRM, give_up)
    signal.signal(signal.SIGPROF, give_up)
    try:
        return _try(act, seconds)
    except TooSlow:
        began = time.perf_counter()
    try:
        return _try(act, seconds)
    except TooSlow:
        return f"not done after {time.perf_counter() - began:.1f} s: {traceback.format_exc(limit=-3)}"


def _try(act: Callable[[], str | None], seconds: float) -> str | None:
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 10 * seconds)
    try:
        return act()
    except H5ZarrError:
        return None
    except TooSlow:
        raise
    except BaseException:
        return traceback.format_exc(limit=-4)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def give_up(*_: Any) -> None:
    raise TooSlow
