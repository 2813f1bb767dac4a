"""Access to other files that a file refers to, and to their values."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import NoReturn, Protocol, TypeVar

from h5zarr.errors import Unsupported
from h5zarr.hdf5.model import H5File
from h5zarr.io.steps import Step
from h5zarr.netcdf4.links import Others

T = TypeVar("T")
SAME_FILE = "."  # how a virtual dataset refers to its own file


@dataclass(frozen=True, slots=True)
class RawFile:
    """A file of raw values: its position in `Tree.sources`, and its size."""

    number: int
    nbytes: int


class Elsewhere(Protocol):
    """The files that have been found already. Names are as written in the file that refers to them."""

    @property
    def links(self) -> Others:
        """The files that external links refer to."""
        ...

    def find(self, file: H5File, name: str) -> H5File | None:
        """Return the file that `file` refers to as `name`, or None if it does not exist.

        "." means the file itself. Raises an H5ZarrError if the file cannot be read.
        """
        ...

    def find_raw(self, file: H5File, name: str) -> RawFile | None:
        """Return the file of raw values that `file` refers to as `name`, or None if it does not exist."""
        ...

    def number_of(self, file: H5File) -> int:
        """Return the position of a file in `Tree.sources`."""
        ...

    def run(self, number: int, step: Step[T]) -> T:
        """Run a step that reads from source `number`, and return its result."""
        ...


class Nowhere:
    """A single file without access to others. Asking for another file is an error."""

    links: Others = MappingProxyType({})

    def find(self, file: H5File, name: str) -> H5File:
        if name == SAME_FILE:
            return file
        raise Unsupported(f"the values are in another file, {name!r}, but only this one was opened")

    def find_raw(self, file: H5File, name: str) -> NoReturn:
        raise Unsupported(f"the values are in another file, {name!r}, but only this one was opened")

    def number_of(self, file: H5File) -> int:
        return 0

    def run(self, number: int, step: Step[T]) -> NoReturn:
        raise Unsupported("the values are in another file, but only this one was opened")
