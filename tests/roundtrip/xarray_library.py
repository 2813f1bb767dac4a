"""xarray's netCDF engine, in a process of its own."""

from __future__ import annotations

import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

from tests.worker import Worker

SECONDS = 30


class Engine:
    """The engine, which opens files for the tests."""

    def __init__(self, module: str = "tests.roundtrip.xarray_worker") -> None:
        self._worker = Worker(module, SECONDS)

    def show(self, path: Path) -> dict[str, Any] | str:
        """Return what the engine shows of each group, raw and decoded; or why it shows nothing."""
        with tempfile.TemporaryDirectory() as folder:
            answer = os.path.join(folder, "answer")
            if self._worker.ask([str(path), answer]):
                shown: dict[str, Any] | str = pickle.loads(Path(answer).read_bytes())
                return shown
        return "the library crashed or did not end"

    def close(self) -> None:
        self._worker.close()
