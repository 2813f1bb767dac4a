"""The netCDF library, and xarray's netCDF engine on top of it, in a process of their own: some files crash them."""

from __future__ import annotations

import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

from tests.truth.worker import Worker

SECONDS = 90


class NetcdfLibrary:
    """The library. Either method returns a text, which says why, for a file that it does not open."""

    def __init__(self) -> None:
        self._worker = Worker("tests.truth.netcdf_worker", SECONDS)

    def datasets(self, path: Path) -> dict[str, Any] | str:
        """Return what xarray's engine shows of each group, raw and decoded: a pair of `ShownGroup`."""
        return self._ask("datasets", path)

    def names(self, path: Path) -> dict[str, Any] | str:
        """Return the names of dimensions, variables and attributes of each group, in the library's order."""
        return self._ask("names", path)

    def close(self) -> None:
        self._worker.close()

    def _ask(self, what: str, path: Path) -> dict[str, Any] | str:
        with tempfile.TemporaryDirectory() as folder:
            answer = os.path.join(folder, "answer")
            if self._worker.ask([what, str(path), answer]):
                shown: dict[str, Any] | str = pickle.loads(Path(answer).read_bytes())
                return shown
        return "the library crashed or did not end"
