"""The netCDF library, and xarray's netCDF engine on top of it, in another process: some files crash them."""

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

SECONDS = 90
CRASHED = "the library crashed"
_ATTEMPTS = 3

# glibc fills memory with a pattern when it is allocated or freed. A library that reads uninitialised memory then shows
# the same on every run, instead of what an earlier file has left there.
_ENVIRONMENT = {"MALLOC_PERTURB_": "165"}


class NetcdfLibrary:
    """The library. Each method returns a text with the reason if the library does not open the file.

    The process starts with the first question, and again after it died.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def datasets(self, path: Path) -> dict[str, Any] | str:
        """Return what xarray's engine shows of each group: the result of `show_views`."""
        return self._ask("datasets", path)

    def names(self, path: Path) -> dict[str, Any] | str:
        """Return the names of dimensions, variables and attributes of each group, in the library's order."""
        return self._ask("names", path)

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _ask(self, what: str, path: Path) -> dict[str, Any] | str:
        """Return the answer. If the library crashes, a new process, whose memory is laid out anew, tries again."""
        for _ in range(_ATTEMPTS):
            shown = self._ask_once(what, path)
            if not (isinstance(shown, str) and shown.startswith(CRASHED)):
                break
            self.close()
        return shown

    def _ask_once(self, what: str, path: Path) -> dict[str, Any] | str:
        with tempfile.TemporaryDirectory() as folder:
            answer = os.path.join(folder, "answer")
            process = self._send(json.dumps([what, str(path), answer]) + "\n")
            assert process.stdout is not None
            ready, _, _ = select.select([process.stdout], [], [], SECONDS)
            if ready and process.stdout.readline():
                shown: dict[str, Any] | str = pickle.loads(Path(answer).read_bytes())
                return shown
        self.close()
        return f"{CRASHED}: it ended, or gave no answer within {SECONDS} seconds"

    def _send(self, line: str) -> subprocess.Popen[str]:
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(line)
            process.stdin.flush()
        except BrokenPipeError:  # it died after its last answer
            self.close()
            return self._send(line)
        return process

    def _start(self) -> subprocess.Popen[str]:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.truth.netcdf_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=PROJECT,
            env={**os.environ, **_ENVIRONMENT},
        )
        return self._process
