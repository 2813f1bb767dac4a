"""What interpreting a file may ask of other files: of those that it names, and of the values in them."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import NoReturn, Protocol, TypeVar

from h5zarr.errors import Unsupported
from h5zarr.hdf5.model import H5File
from h5zarr.io.steps import Step
from h5zarr.netcdf4.links import Others

T = TypeVar("T")
SAME_FILE = "."  # how a virtual dataset calls its own file


@dataclass(frozen=True, slots=True)
class RawFile:
    """A file of bare values: its number among `Tree.sources`, and how long it is."""

    number: int
    nbytes: int


class Elsewhere(Protocol):
    """The files that have been found already. Names are as they are written in the file that refers to them."""

    @property
    def links(self) -> Others:
        """The files that external links lead to."""
        ...

    def find(self, file: H5File, name: str) -> H5File | None:
        """Return the file that `file` calls `name`, as it states itself; None where there is none.

        A "." is the file itself. Raises where a file cannot be read.
        """
        ...

    def find_raw(self, file: H5File, name: str) -> RawFile | None:
        """Return the file of bare values that `file` calls `name`, None where there is none."""
        ...

    def number_of(self, file: H5File) -> int:
        """Return the number of a file among `Tree.sources`."""
        ...

    def run(self, number: int, step: Step[T]) -> T:
        """Return what a step returns that reads from source `number`."""
        ...


class Nowhere:
    """One file alone: whatever it refers to is out of reach, and asking for it is an error."""

    links: Others = MappingProxyType({})

    def find(self, file: H5File, name: str) -> H5File:
        if name == SAME_FILE:
            return file
        raise Unsupported(f"the values are in another file, {name!r}, and only this one was opened")

    def find_raw(self, file: H5File, name: str) -> NoReturn:
        raise Unsupported(f"the values are in another file, {name!r}, and only this one was opened")

    def number_of(self, file: H5File) -> int:
        return 0

    def run(self, number: int, step: Step[T]) -> NoReturn:
        raise Unsupported("the values are not where they are read from, and only this file was opened")
