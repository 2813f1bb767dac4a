"""What processes took: time of the processor, and memory, of a command and of those that it started."""

from __future__ import annotations

import resource
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_LOOK_SECONDS = 0.1


@dataclass(slots=True)
class Peaks:
    """Bytes of the largest resident set: of a process, and the most that one of its descendants had."""

    own: int = 0
    of_others: int = 0


def processor_seconds() -> float:
    """Seconds of the processor that all processes took which this one started, and which have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_watched(command: list[str]) -> Peaks:
    """Run a command to its end, and return its peaks. The system keeps them, so it is enough to look now and then."""
    peaks = Peaks()
    process = subprocess.Popen(command)
    while process.poll() is None:
        peaks.own = max(peaks.own, _peak_nbytes(process.pid))
        for number in _descendants(process.pid):
            peaks.of_others = max(peaks.of_others, _peak_nbytes(number))
        time.sleep(_LOOK_SECONDS)
    if process.returncode:
        raise SystemExit(f"{' '.join(command[:4])}: exit code {process.returncode}")
    return peaks


def _descendants(number: int) -> set[int]:
    """The numbers of all processes below one."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = {number}
    while added := {one for one, parent in parents.items() if parent in found} - found:
        found |= added
    return found - {number}


def _peak_nbytes(number: int) -> int:
    """The largest resident set so far, by the kernel; 0 of a process that has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{number}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    return 0
