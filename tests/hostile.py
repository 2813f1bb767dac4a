"""Attacks with damaged files: a worker runs in its own process, with limits on time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.collections_of_files import PROJECT

LIMITS = {"seconds": 2.0, "megabytes": 300}
PATIENCE_SECONDS = 3600


def run_worker(module: str, files: list[Path], **task: Any) -> int:
    """Return how many files and damaged copies the worker tried. Fail if one of them ended in the wrong way."""
    done = subprocess.run(
        [sys.executable, "-m", module],
        input=json.dumps({"files": [str(path) for path in files], **LIMITS, **task}),
        capture_output=True,
        text=True,
        cwd=PROJECT,
        env={"PYTHONPATH": str(PROJECT), "PATH": ""},
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout)
    assert not result["wrong"], "\n".join(result["wrong"])
    return int(result["done"])
