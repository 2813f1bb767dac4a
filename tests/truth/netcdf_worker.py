"""Answers questions about files with the netCDF library: one line of JSON each. The answer is pickled into a file.

Each file has a forked process, because the library does not survive every file, and starting takes a second.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import netCDF4
import xarray as xr
from xarray.backends import NetCDF4DataStore

from tests.collections_of_files import SAMPLES
from tests.truth.netcdf_library import CRASHED
from tests.truth.xarray_view import show_views

MOST_GROUPS = 60
SECONDS = 60


def describe(what: str, path: str) -> dict[str, Any] | str:
    """Return what the library shows of each group by path, or why it does not open the file."""
    try:
        with netCDF4.Dataset(path) as file:
            return {"names": describe_names, "datasets": describe_datasets}[what](file)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def describe_datasets(file: Any) -> dict[str, Any]:
    """Return what xarray shows of each group, or of some if there are many."""
    groups = list(_walk(file))
    some = groups[:: -(-len(groups) // MOST_GROUPS)]
    return {one.path: show_views(partial(xr.open_dataset, NetCDF4DataStore(one))) for one in some}


def describe_names(file: Any) -> dict[str, Any]:
    return {
        group.path: {
            "dimensions": {name: [len(one), one.isunlimited()] for name, one in group.dimensions.items()},
            "attributes": _attribute_names(group),
            "variables": {name: _describe_variable(one) for name, one in group.variables.items()},
        }
        for group in _walk(file)
    }


def _describe_variable(variable: Any) -> dict[str, Any]:
    return {
        "dimensions": list(variable.dimensions),
        "shape": [int(extent) for extent in variable.shape],
        "attributes": _attribute_names(variable),
    }


def _attribute_names(owner: Any) -> list[str] | None:
    """Return the names of attributes, or None if the library cannot list them: one broken name hides all."""
    try:
        return list(owner.ncattrs())
    except Exception:
        return None


def _walk(group: Any) -> Iterator[Any]:
    yield group
    for child in group.groups.values():
        yield from _walk(child)


def main() -> None:
    warnings.simplefilter("ignore")
    for name in ("ocean.nc", "sizes_4_4_latest.h5"):  # everything is imported once, before the forks
        describe("datasets", str(SAMPLES / name))
    for line in sys.stdin:
        what, path, answer = json.loads(line)
        if (child := os.fork()) == 0:
            signal.alarm(SECONDS)
            os.chdir(os.path.dirname(path))
            _dump(describe(what, path), answer)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            _dump(_describe_end(status), answer)
        print(answer, flush=True)


def _describe_end(status: int) -> str:
    """Return what ended the process of a file: time, or a crash of the library."""
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGALRM:
        return f"the library did not end within {SECONDS} seconds"
    return f"{CRASHED}: {signal.Signals(-code).name if code < 0 else code}"


def _dump(shown: dict[str, Any] | str, answer: str) -> None:
    with open(answer, "wb") as file:
        pickle.dump(shown, file)


if __name__ == "__main__":
    main()
