"""What the netCDF library reads from a netCDF-3 file, in Zarr's terms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from h5zarr.commands.verify.differences import Difference, Unreadable, Values, numbers_differ, texts_differ
from h5zarr.commands.verify.json_values import NotCompared, expected_json

_STREAMING = (1 << 32) - 1  # a record count that means: count them. netCDF classic format, "numrecs"


class ClassicTruth:
    """A netCDF-3 file opened by netCDF4. `is_copy`: all of it is in memory."""

    library = "netCDF4"

    def __init__(self, dataset: Any, *, is_copy: bool = False) -> None:
        self._dataset = dataset
        self.is_copy = is_copy
        dataset.set_auto_maskandscale(False)
        dataset.set_auto_chartostring(False)

    def find(self, path: str) -> ClassicVariable | None:
        variable = self._dataset.variables.get(path.lstrip("/"))
        return None if variable is None else ClassicVariable(variable)

    def attributes(self, path: str) -> Iterator[tuple[str, Any]]:
        return _attributes(self._dataset)

    def close(self) -> None:
        self._dataset.close()


class ClassicVariable:
    """A variable of a netCDF-3 file. It has no storage fill value: every value is in the file."""

    is_empty = False
    fill = None

    def __init__(self, variable: Any) -> None:
        self._variable = variable
        self.shape = self.own_shape = _shape(variable)
        self.grows = (False,) * len(self.shape)

    def read(self, region: tuple[slice, ...]) -> Values:
        return np.asarray(self._variable[region] if self.shape else self._variable[...])

    def differs(self, found: Values, expected: Values) -> Difference | None:
        if expected.dtype.kind == "S":
            return texts_differ(found, expected, lambda text: text)
        return numbers_differ(found, expected)

    def is_named(self, axis: int, name: str) -> bool:
        return bool(self._variable.dimensions[axis] == name)

    def names_of(self, axis: int) -> frozenset[str] | None:
        return frozenset((self._variable.dimensions[axis],))

    def attributes(self) -> Iterator[tuple[str, Any]]:
        return _attributes(self._variable)


def _shape(variable: Any) -> tuple[int, ...]:
    """Return the shape of a variable. Raises Unreadable if the library mistakes "not counted yet" for a count."""
    try:
        shape = tuple(variable.shape)
    except SystemError:
        shape = (_STREAMING,)
    if _STREAMING in shape:
        raise Unreadable("netCDF4 does not count the records of a file that was still being written")
    return shape


def _attributes(owner: Any) -> Iterator[tuple[str, Any]]:
    for name in owner.ncattrs():
        try:
            value = owner.getncattr(name, encoding="latin-1")  # Latin-1 preserves every byte
            yield name, expected_json(value.encode("latin-1") if isinstance(value, str) else value)
        except (NotCompared, ValueError, TypeError):
            yield name, NotCompared
