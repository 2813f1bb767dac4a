"""Tells what xarray's netCDF engine shows of a file: a path comes in on a line, the name of a pickled answer goes out.

It runs in a process of its own, because the netCDF library does not survive every file.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import netCDF4
import xarray as xr
from xarray.backends import NetCDF4DataStore

from tests.roundtrip.xarray_view import show_both

MOST_GROUPS = 60


def describe(path: str, show: Callable[[Any], Any] = show_both, most_groups: int = MOST_GROUPS) -> dict[str, Any] | str:
    """Return what `show` makes of each group, of some if there are many; or why the library does not open the file."""
    try:
        with netCDF4.Dataset(path) as file:
            groups = list(_walk(file))
            some = groups[:: -(-len(groups) // most_groups)]
            return {one.path: show(partial(xr.open_dataset, NetCDF4DataStore(one))) for one in some}
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _walk(group: Any) -> Iterator[Any]:
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
