"""Run cases in a worker, and start another if it dies: a crash of a library is a finding, too."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.collections_of_files import PROJECT
from tests.hostile import LIMITS

AT_A_TIME = 5000
DIFFERENTIAL = "tests.fuzz.differential"


@dataclass
class Summary:
    """The result of a run. A finding has the number of the case, what was damaged, and what went wrong."""

    done: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[dict[str, Any]] = field(default_factory=list)
    slowest: float = 0.0
    peak_megabytes: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        parts = [f"{what} {count:,}" for what, count in sorted(self.counts.items())]
        return (
            f"{self.done:,} cases in {self.seconds:.0f} s, {len(self.findings)} findings; {', '.join(parts)}; "
            f"slowest {self.slowest:.2f} s, peak {self.peak_megabytes} MB"
        )


def run_cases(
    count: int,
    *,
    seed: int = 0,
    first: int = 0,
    only: str | None = None,
    budget: float = 3600.0,
    module: str = "tests.fuzz.worker",
    tell: Callable[[Summary], None] = lambda _: None,
) -> Summary:
    """Run `count` cases of a seed, or as many as fit into `budget` seconds, and return the result."""
    summary = Summary()
    began = time.monotonic()
    number, last = first, first + count
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        progress = Path(folder, "progress")
        while number < last and (left := budget - (time.monotonic() - began)) > 0:
            until = min(last, number + AT_A_TIME)
            task = {"seed": seed, "first": number, "last": until, "only": only, "budget": left, "folder": folder}
            ended, reached, stack = _run_worker(
                module, {**task, **LIMITS, "progress": str(progress)}, progress, summary
            )
            if not ended:
                summary.done += reached - number + 1
                if module == DIFFERENTIAL and "/h5py/" in stack[:500]:  # the last calls come first
                    summary.counts["libhdf5 crashed or hung"] += 1
                else:
                    summary.findings.append({"number": reached, "what": "", "wrong": f"the process died: {stack}"})
            number = until if ended else reached + 1
            summary.seconds = time.monotonic() - began
            tell(summary)
    return summary


def _run_worker(module: str, task: dict[str, Any], progress: Path, summary: Summary) -> tuple[bool, int, str]:
    """Return whether a worker finished; if not, the number of the case in which it died, and the call stack."""
    progress.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", module],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        cwd=PROJECT,
        env={"PYTHONPATH": str(PROJECT), "PATH": ""},
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    summary.findings += [line for line in lines if "number" in line]
    ends = [line for line in lines if "done" in line]
    if not ends:
        if not progress.exists():
            raise RuntimeError(f"the worker did not begin: {done.stderr[-3000:]}")
        _, _, stack = done.stderr.rpartition("most recent call first)")  # the main thread is the last
        return False, int(progress.read_text()), stack or done.stderr[-1000:]
    summary.done += ends[0]["done"]
    summary.counts.update(ends[0]["counts"])
    summary.slowest = max(summary.slowest, ends[0]["slowest"])
    summary.peak_megabytes = max(summary.peak_megabytes, ends[0]["peak_megabytes"])
    return True, task["last"], ""
