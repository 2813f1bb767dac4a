"""Settings of every run, and a summary of how the files compare with other libraries."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

with contextlib.suppress(ImportError):
    # Registers the filters that h5py lacks. This must come before netCDF4 is imported, which would break them.
    import hdf5plugin  # noqa: F401

# No deadline per example, because a busy machine would exceed it. Tests are timed as a whole.
settings.register_profile("h5zarr", deadline=None)
settings.load_profile("h5zarr")

# A shell starts background processes with SIGINT ignored, and children inherit that. But tests send SIGINT.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_TO_END_SECONDS = 120

SECTIONS = {
    "hdf5/test_oracle.py": "agreement with h5py",
    "roundtrip/test_values.py": "datasets through zarr, compared with h5py",
    "truth/test_datasets.py": "variables through the engine, compared with xarray's netCDF engine",
}


def _check_descriptor(descriptor: int) -> None:
    """Fail like `os.fsync` for a file that is not open."""
    os.fstat(descriptor)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Hide the collected tests and modules from the garbage collector: visiting half a million objects takes 0.3 s."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def disk_that_need_not_keep_files() -> Iterator[None]:
    """Write without waiting for the disk, which may take minutes: only a power failure would show the difference."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", _check_descriptor)
        yield


@pytest.fixture
def quick_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Find out in less than a second, instead of five, whether another run is active."""
    monkeypatch.setattr("h5zarr.commands.index.lease.BEAT_SECONDS", 0.2)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """End a process that hangs after the last test, and say where: threads of libraries may keep it from ending."""
    faulthandler.dump_traceback_later(_TO_END_SECONDS, exit=True, file=sys.__stderr__)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for module, title in SECTIONS.items():
        scores = _scores(terminalreporter, module)
        if scores:
            terminalreporter.section(title)
        for name, score in sorted(scores.items()):
            terminalreporter.write_line(f"{name}: {', '.join(f'{count:,} {what}' for what, count in score.items())}")


def _scores(terminalreporter: Any, module: str) -> dict[str, Counter[str]]:
    """Return, for each test of a module, the sums of the numbers it recorded, and counts of its other records."""
    scores: dict[str, Counter[str]] = {}
    for status in ("passed", "failed"):
        for report in terminalreporter.stats.get(status, []):
            properties = getattr(report, "user_properties", [])
            if report.when != "call" or f"{module}::" not in report.nodeid or not properties:
                continue
            score = scores.setdefault(report.nodeid.partition("::")[2].partition("[")[0], Counter())
            score["files"] += 1
            score[f"files {status}"] += 1
            for name, value in properties:
                score[name] += value if isinstance(value, int) else 1
    return scores
