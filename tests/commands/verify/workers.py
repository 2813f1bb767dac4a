"""Tasks of worker processes in tests, and a command that runs them. `H5ZARR_NOTES` is a directory for notes."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from h5zarr.commands.verify import spreading
from h5zarr.commands.verify.comparing import Run
from h5zarr.commands.verify.spreading import Done, compare_runs


def noting(runs: tuple[Run, ...]) -> list[Done]:
    """Compare, record which process did it, and take long enough for others to take part."""
    note()
    time.sleep(0.1)
    return compare_runs(runs)


def deadly(runs: tuple[Run, ...]) -> list[Done]:
    """Compare, and die at the third part of an array."""
    for run in runs:
        if run.path == "/deadly" and run.first <= 2 < run.last:
            time.sleep(0.2)  # the others have begun, too
            os.kill(os.getpid(), signal.SIGKILL)
    return compare_runs(runs)


def endless(runs: tuple[Run, ...]) -> list[Done]:
    """Record the start, and never end."""
    note()
    time.sleep(60)
    return compare_runs(runs)


def note() -> None:
    """Record the number of this process."""
    (Path(os.environ["H5ZARR_NOTES"]) / str(os.getpid())).touch()


if __name__ == "__main__":
    from h5zarr.cli import main
    from h5zarr.commands.verify import verify
    from tests.commands.verify import workers

    verify.BLOCK_NBYTES = 800
    spreading.compare_runs = workers.endless
    sys.exit(main(sys.argv[1:]))
