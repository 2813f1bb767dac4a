"""The files of a cube, opened by other libraries. Only some are open at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from h5zarr.commands.verify.differences import Unreadable
from h5zarr.commands.verify.opening import Truth, open_truth
from h5zarr.commands.verify.verified_arrays import TrueVariable
from h5zarr.containers.cube_layout import CubeLayout
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.zarr_model.calendars import TimeUnits, bounds_of, parse_units

_MOST_OPEN = 32


class Truths:
    """The files of a cube by number. `root` is the group of each that is the root of the cube."""

    def __init__(self, layout: CubeLayout, access: Access, root: str) -> None:
        self._layout, self._access, self._root = layout, access, root
        self._open: OrderedDict[int, tuple[Truth, ExitStack]] = OrderedDict()
        self._libraries: set[str] = set()

    @property
    def library(self) -> str:
        """The libraries that have read files."""
        return " and ".join(sorted(self._libraries))

    def name(self, number: int) -> str:
        """Return the name of a file, safe to show."""
        return str(Location.parse(self._layout.pieces[number].url))

    def open(self, number: int) -> Truth:
        """Return a file. Raises H5ZarrError if it cannot be opened."""
        if number in self._open:
            self._open.move_to_end(number)
            return self._open[number][0]
        while len(self._open) >= _MOST_OPEN:
            self._open.popitem(last=False)[1][1].close()
        stack = ExitStack()
        truth = stack.enter_context(open_truth(Location.parse(self._layout.pieces[number].url), self._access))
        self._open[number] = truth, stack
        self._libraries.add(truth.library)
        return truth

    def find(self, number: int, path: str) -> TrueVariable | None:
        """Return a variable of a file; None if it has none at this path. Raises Unreadable or H5ZarrError."""
        return self.open(number).find(self.place(path))

    def place(self, path: str) -> str:
        """Return the path of a node in each file."""
        return f"/{self._root}{path}" if self._root else path

    def attributes(self, number: int, path: str) -> Mapping[str, Any]:
        """Return the attributes of a variable in their expected JSON form; none if the file does not have it."""
        try:
            variable = self.find(number, path)
            return {} if variable is None else dict(variable.attributes())
        except Unreadable:
            return {}

    def close(self) -> None:
        """Close all files."""
        for _, stack in self._open.values():
            stack.close()
        self._open.clear()


def time_units(attributes: Mapping[str, Any], owner: Mapping[str, Any]) -> TimeUnits | None:
    """Return the time units of a variable. Bounds have those of their `owner`."""
    return parse_units(attributes) or parse_units(owner)


def owner_of_bounds(path: str, nodes: Mapping[str, Any]) -> str | None:
    """Return the path of the variable whose bounds are at `path`; None if they are not bounds."""
    folder, _, name = path.rpartition("/")
    for other, node in nodes.items():
        if other.rpartition("/")[0] == folder and other != path and bounds_of(node.attributes) == name:
            return other
    return None
