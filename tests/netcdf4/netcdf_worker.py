"""Tells what the netCDF library shows of a file: one path a line comes in, one JSON document a line goes out.

It runs in a process of its own, because the library does not survive every file.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import netCDF4


def describe(path: str) -> dict[str, Any]:
    """Return groups, by path, as netCDF4 shows them; or under "refused" why it does not open the file."""
    try:
        with netCDF4.Dataset(path) as file:
            file.set_auto_maskandscale(False)
            groups: dict[str, Any] = {}
            collect(file, "/", groups)
            return {"groups": groups}
    except Exception as error:
        return {"refused": f"{type(error).__name__}: {error}"}


def collect(group: Any, path: str, groups: dict[str, Any]) -> None:
    groups[path] = {
        "dimensions": {name: [len(one), one.isunlimited()] for name, one in group.dimensions.items()},
        "attributes": names_of(group),
        "variables": {name: describe_variable(one) for name, one in group.variables.items()},
    }
    for name, child in group.groups.items():
        collect(child, f"{path.rstrip('/')}/{name}", groups)


def describe_variable(variable: Any) -> dict[str, Any]:
    return {
        "dimensions": variable.dimensions,
        "shape": [int(extent) for extent in variable.shape],
        "attributes": names_of(variable),
    }


def names_of(owner: Any) -> list[str] | None:
    """Return the names of attributes; None where the library cannot list them: one broken name hides all."""
    try:
        return list(owner.ncattrs())
    except Exception:
        return None


def main() -> None:
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        print(json.dumps(describe(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
