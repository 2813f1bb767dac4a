"""Tells what xarray's netCDF engine shows of a file: a path comes in on a line, the name of a pickled answer goes out.

It runs in a process of its own, because the netCDF library does not survive every file.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import warnings
from functools import partial
from typing import Any

import netCDF4
import xarray as xr
from xarray.backends import NetCDF4DataStore

from tests.roundtrip.xarray_view import show_both

MOST_GROUPS = 60


def describe(path: str) -> dict[str, Any] | str:
    """Return what is shown of each group, raw and decoded; or why the library does not open the file."""
    try:
        with netCDF4.Dataset(path) as file:
            groups = list(_walk(file))
            some = groups[:: -(-len(groups) // MOST_GROUPS)]
            return {one.path: show_both(partial(xr.open_dataset, NetCDF4DataStore(one))) for one in some}
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _walk(group: Any) -> Any:
    yield group
    for child in group.groups.values():
        yield from _walk(child)


def main() -> None:
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        path, answer = json.loads(line)
        os.chdir(os.path.dirname(path))
        with open(answer, "wb") as file:
            pickle.dump(describe(path), file)
        print(answer, flush=True)


if __name__ == "__main__":
    main()
