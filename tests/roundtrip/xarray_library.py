"""xarray's netCDF engine, in a process of its own."""

from __future__ import annotations

import json
import os
import pickle
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.collections_of_files import PROJECT

SECONDS = 30


class Engine:
    """The process, which is started again when a file has killed it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def show(self, path: Path) -> dict[str, Any] | str:
        """Return what the engine shows of each group, raw and decoded; or why it shows nothing."""
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            answer = os.path.join(folder, "answer")
            process.stdin.write(json.dumps([str(path), answer]) + "\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], SECONDS)
            if ready and process.stdout.readline():
                shown: dict[str, Any] | str = pickle.loads(Path(answer).read_bytes())
                return shown
        self.close()
        return "the library crashed or did not end"

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        pipe, command = subprocess.PIPE, [sys.executable, "-m", "tests.roundtrip.xarray_worker"]
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, cwd=PROJECT
        )
        return self._process
