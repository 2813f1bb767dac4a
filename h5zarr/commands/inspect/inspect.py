"""The inspect command: scan the metadata of a file, or read references, and show them to people or machines."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from h5zarr.commands.inspect.classic import classic_summary, find_problems, render_classic
from h5zarr.commands.inspect.classic_json import describe_classic
from h5zarr.commands.inspect.inspect_report import problem_lines, summary
from h5zarr.commands.inspect.inspect_text import open_page, render
from h5zarr.commands.inspect.json import describe
from h5zarr.commands.inspect.view import View
from h5zarr.display import counted, size, summary_repr
from h5zarr.errors import ArgumentError, Problem
from h5zarr.formats import scan_any
from h5zarr.hdf5.model import H5File
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.io.log import RequestLog
from h5zarr.io.source import Source, open_source
from h5zarr.netcdf3.classic_file import ClassicFile
from h5zarr.signatures import WrongFormat

if TYPE_CHECKING:
    from h5zarr.commands.inspect.inspected_references import InspectedReferences


class NothingMatches(ArgumentError):
    """No object in the file matches the pattern."""

    kind = "selection"
    remedy = "Names are case-sensitive; a pattern without a leading slash matches at any depth."


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Inspection:
    """What a file or references hold. `str()` is the text that `h5zarr inspect` prints; `to_json()` is complete.

    Attributes
    ----------
    source
        The file or the references, without secrets in the URL.
    file
        The scanned file, as `h5zarr.scan` returns it, or what the references contain.
    nbytes
        Size of the file; None for references in a directory.
    log
        Counts of rounds, requests and bytes.
    path, depth, no_attributes
        What to show, as given to `h5zarr.inspect`.

    Examples
    --------
    >>> import h5zarr
    >>> sorted(h5zarr.inspect("ocean.nc").to_json()["datasets"])[:3]
    ['/lat', '/lon', '/sst']
    """

    source: str
    file: H5File | ClassicFile | InspectedReferences
    nbytes: int | None
    log: RequestLog
    path: str | None = None
    depth: int | None = None
    no_attributes: bool = False

    def __repr__(self) -> str:
        problems = counted(len(self.problems), "problem")
        if isinstance(self.file, H5File | ClassicFile):
            return summary_repr("Inspection", self.source, size(self.nbytes or 0), problems)
        return summary_repr("Inspection", self.source, *self.file.facts(), problems)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What could not be read, and why."""
        return find_problems(self.file) if isinstance(self.file, ClassicFile) else self.file.problems

    def lines(
        self, *, all: bool = False, width: int = 100, color: bool = False, phrase: Callable[[str], str] = str
    ) -> list[str]:
        """Return the text line by line. Raises NothingMatches if it is empty.

        Parameters
        ----------
        all
            Show everything in full.
        width
            Columns of the screen.
        color
            Print names in bold.
        phrase
            Translates option names into the reader's terms.
        """
        view = View(
            everything=all,
            attributes=not self.no_attributes,
            pattern=self.path,
            depth=self.depth,
            width=width,
            colour=color,
            hint=phrase("all=True"),
        )
        problems = self.problems
        warnings: tuple[Problem, ...] = ()
        if isinstance(self.file, ClassicFile):
            shown, last = render_classic(self.file, view), classic_summary(self.file, problems, self.log)
        elif isinstance(self.file, H5File):
            page = open_page(self.file, view)
            shown = [] if page.part.is_empty else render(page)
            last = summary(self.file, self.nbytes or 0, self.log)
        else:
            from h5zarr.commands.inspect.references_text import references_summary, render_references

            shown, last = render_references(self.file, view), references_summary(self.file, self.nbytes, self.log)
            warnings = self.file.warnings
        if not shown:
            raise NothingMatches(f"nothing matches {self.path}")
        below = [*problem_lines(problems, phrase), *problem_lines(warnings, phrase, "warning")]
        return [*shown, *(("", *below) if below else ()), "", last]

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON. Raises NothingMatches if it is empty."""
        attributes = not self.no_attributes
        if isinstance(self.file, ClassicFile):
            found = describe_classic(self.file, self.problems, self.log, pattern=self.path, attributes=attributes)
        elif isinstance(self.file, H5File):
            choices: dict[str, Any] = {"pattern": self.path, "depth": self.depth, "attributes": attributes}
            found = describe(self.file, self.nbytes or 0, self.log, **choices)
        else:
            from h5zarr.commands.inspect.references_json import describe_references

            found = describe_references(self.file, self.nbytes, self.log, attributes=attributes)
        if not (found["groups"] or found["datasets"] or found.get("datatypes")):
            raise NothingMatches(f"nothing matches {self.path}")
        return found


def inspect(
    source: str | os.PathLike[str],
    *,
    path: str | None = None,
    depth: int | None = None,
    no_attributes: bool = False,
    at: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    anon: bool = False,
    network: Mapping[str, float] | None = None,
    limits: Mapping[str, int] | None = None,
) -> Inspection:
    """Show what a file holds: groups, dimensions, variables with type, shape and storage, attributes and links.

    References are shown in the same way, with the files that they refer to, and where each file is in a cube. These
    files are not read.

    Parameters
    ----------
    source
        A path, or any URL that fsspec opens: an HDF5 or netCDF file, or references in any container.
    path
        Show only objects that match this pattern, and what is in them.
    depth
        Open groups down to this many levels; 1 is the root only.
    no_attributes
        Omit attributes.
    at
        Branch, tag or snapshot of an Icechunk repository.
    storage_options, anon, network, limits
        How to open the file, as in `h5zarr.translate`.

    Returns
    -------
    Inspection
        `print()` shows it; `to_json()` has everything.

    Raises
    ------
    H5ZarrError
        The file or the references cannot be read.

    Examples
    --------
    >>> import h5zarr
    >>> print(h5zarr.inspect("ocean.nc", path="lat", no_attributes=True))
    ocean.nc...
      dimensions:
        lat = 40
      variables:
        lat  float32  (lat=40)...
    """
    access = Access.from_options(storage_options, network, limits, anon=anon)
    location = Location.parse(source)
    choices: dict[str, Any] = {"path": path, "depth": depth, "no_attributes": no_attributes}
    if at is not None or location.path is None or not os.path.isfile(location.path):
        # Imported here and below: files are inspected without loading the containers.
        from h5zarr.commands.inspect.opened_references import inspect_location

        if (found := inspect_location(location, access, at, path, depth)) is not None:
            return Inspection(source=str(location), file=found, nbytes=None, log=RequestLog(), **choices)
    with open_source(location, access) as opened:
        file = _scan(opened, location, access, path, depth)
        return Inspection(source=opened.url, file=file, nbytes=opened.nbytes, log=opened.log, **choices)


def _scan(
    source: Source, location: Location, access: Access, path: str | None, depth: int | None
) -> H5File | ClassicFile | InspectedReferences:
    """Return what an open file contains. If it is neither HDF5 nor netCDF, it may have references."""
    try:
        return scan_any(source, access.limits)
    except WrongFormat as error:
        if error.format == "zarr":
            raise
        from h5zarr.commands.inspect.opened_references import inspect_source

        if (found := inspect_source(source, location, access, path, depth)) is None:
            raise
        return found
