"""Tells what xarray's netCDF engine shows of a file: a path comes in on a line, the name of a pickled answer goes out.

It runs in a process of its own, because the netCDF library does not survive every file, and forks one for each, because
starting takes a second.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import warnings
from typing import Any

from tests.collections_of_files import SAMPLES
from tests.engine.view import show_both
from tests.roundtrip.xarray_worker import describe

MOST_GROUPS = 40
SECONDS = 20


def main() -> None:
    warnings.simplefilter("ignore")
    for name in ("ocean.nc", "sizes_4_4_latest.h5"):  # so that all is imported, and need not be again for each file
        describe(str(SAMPLES / name), show_both, MOST_GROUPS)
    for line in sys.stdin:
        path, answer = json.loads(line)
        if (child := os.fork()) == 0:
            signal.alarm(SECONDS)
            _answer(path, answer)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            _dump("the library crashed or did not end", answer)
        print(answer, flush=True)


def _answer(path: str, answer: str) -> None:
    os.chdir(os.path.dirname(path))
    _dump(describe(path, show_both, MOST_GROUPS), answer)


def _dump(shown: dict[str, Any] | str, answer: str) -> None:
    with open(answer, "wb") as file:
        pickle.dump(shown, file)


if __name__ == "__main__":
    main()
