"""A lease on an index, so that two runs do not do the same work.

The holder writes a new number into the lease every few seconds. Clocks may be wrong, so they are never compared: a run
that finds a lease watches it, and takes it over only if it does not change for several intervals, or if the process
that held it is known to be dead. The lease only saves time: outputs and catalog are correct even if several runs work
at once.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from h5zarr.commands.catalog.place import STATE, Place
from h5zarr.commands.catalog.waiting import Stopped
from h5zarr.errors import H5ZarrError, OutputError

LEASE = f"{STATE}/lease.json"
BEAT_SECONDS = 5.0
_BEATS = 4  # intervals without a change, after which the holder counts as dead
_LOOK_SECONDS = 0.1
_RETRY_SECONDS = 0.01
_SETTLE_SECONDS = 0.2  # time for other runs that found the same dead lease to write theirs


class LeaseHeld(H5ZarrError):
    """Another run is working on the same index."""

    kind = "busy"
    remedy = "To wait until it has finished, use wait=SECONDS."


class Lease:
    """Held while the context lasts. `is_lost`: another run has taken it over, so this one should end.

    `is_inherited`: the previous run died, and may have left temporary files. While waiting for the lease, `is_stopped`
    is called often; Stopped is raised once it returns True.
    """

    def __init__(
        self,
        place: Place,
        *,
        run_id: str = "",
        wait_seconds: float = 0.0,
        beat_seconds: float | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._place = place
        self._run_id = run_id
        self._wait_seconds = wait_seconds
        self._beat_seconds = BEAT_SECONDS if beat_seconds is None else beat_seconds
        self._is_stopped = is_stopped
        self.is_inherited = False
        self._holder = secrets.token_hex(8)
        self._beat = 0
        self._ended = threading.Event()
        self.is_lost = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def __enter__(self) -> Self:
        self._acquire()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        with suppress(OutputError):  # the next run waits a little longer; the work is done anyway
            if not self.is_lost.is_set() and _holder_of(self._place.read(LEASE)) == self._holder:
                self._place.remove(LEASE)

    def _acquire(self) -> None:
        """Take the lease, or raise LeaseHeld."""
        give_up_at = time.monotonic() + self._wait_seconds
        while not self._place.create(LEASE, self._content()):
            found = self._place.read(LEASE)
            if found is None:
                self._pause(_RETRY_SECONDS)  # the other run has just finished
                continue
            if _is_dead(found) or self._is_still(found):
                self._place.write(LEASE, self._content())
                self._pause(min(_SETTLE_SECONDS if self._place.is_local else 5 * _SETTLE_SECONDS, self._beat_seconds))
                if _holder_of(self._place.read(LEASE)) == self._holder:
                    self.is_inherited = True
                    return
            elif time.monotonic() >= give_up_at and self._place.read(LEASE) is not None:
                raise LeaseHeld(f"{self._place.shown}: another run is working there ({_describe(found)})")

    def _is_still(self, found: bytes) -> bool:
        """Return whether the lease stays unchanged for so long that its holder must be dead."""
        end = time.monotonic() + _BEATS * self._beat_seconds
        while time.monotonic() < end:
            self._pause(self._beat_seconds / 4)
            if self._place.read(LEASE) != found:
                return False
        return True

    def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self._is_stopped():
                raise Stopped(f"{self._place.shown}: the run was stopped before it began")
            time.sleep(min(left, _LOOK_SECONDS))

    def _content(self) -> bytes:
        lease: dict[str, Any] = {"holder": self._holder, "beat": self._beat, "process": os.getpid()}
        lease |= {**_this_process(os.getpid()), **({"run_id": self._run_id} if self._run_id else {})}
        return json.dumps(lease).encode()

    def _keep(self) -> None:
        """Renew the lease until this run ends or another run takes over."""
        while not self._ended.wait(self._beat_seconds):
            with suppress(OutputError):  # the next beat may get through
                if _holder_of(self._place.read(LEASE)) != self._holder:
                    self.is_lost.set()
                    return
                self._beat += 1
                self._place.write(LEASE, self._content())


def _decode_lease(content: bytes | None) -> dict[str, Any]:
    with suppress(ValueError):
        lease = json.loads(content or b"{}")
        if isinstance(lease, dict):
            return lease
    return {}


def _holder_of(content: bytes | None) -> str | None:
    holder = _decode_lease(content).get("holder")
    return holder if isinstance(holder, str) else None


def _describe(content: bytes) -> str:
    lease = _decode_lease(content)
    run = f"run {lease['run_id']}, " if lease.get("run_id") else ""
    return f"{run}process {lease.get('process', '?')} on {lease.get('host', 'an unknown machine')}"


def describe_lease(content: bytes | None) -> str:
    """Return what a lease says about its run, for people; "" if there is no lease."""
    if content is None:
        return ""
    if _is_dead(content):
        return f"the last run was killed ({_describe(content)}); the next run continues"
    is_here = _decode_lease(content).get("system") == _system() is not None
    return f"a run is active{'' if is_here else ', or was killed'} ({_describe(content)})"


def _is_dead(content: bytes) -> bool:
    """Return whether the holder was a process of this machine that no longer exists."""
    lease = _decode_lease(content)
    number = lease.get("process")
    if not isinstance(number, int) or lease.get("system") is None:
        return False
    here = _this_process(os.getpid())
    return lease.get("system") == here.get("system") and lease.get("began") != _this_process(number).get("began")


def _this_process(number: int) -> dict[str, str | None]:
    """Return what identifies a process: the machine and its boot, and when the process started."""
    return {"host": platform.node(), "system": _system(), "began": _began(number)}


def _system() -> str | None:
    """Return an identifier of this boot of this machine and of this container, or None if unknown."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    return None


def _began(number: int) -> str | None:
    """Return when a process started, by the kernel's clock; None if it does not exist or is a zombie."""
    with suppress(OSError), open(f"/proc/{number}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    return None
