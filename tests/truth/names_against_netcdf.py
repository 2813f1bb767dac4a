"""Compares the names that h5zarr gives to variables, dimensions and attributes with those of netCDF4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from h5zarr.formats import scan
from h5zarr.hdf5.datatype import FixedPoint, FloatingPoint, String, VariableLengthString
from h5zarr.hdf5.model import Attribute, ExternalLink, Group, H5File, VirtualLayout
from h5zarr.netcdf4.named_file import NamedGroup, NamedVariable, Naming
from h5zarr.netcdf4.names import interpret_names
from tests.truth.agreement import Agreement, Comparing
from tests.truth.differences import MOST_NAME_NBYTES, RESERVED, Reason
from tests.truth.netcdf_library import NetcdfLibrary

# netCDF-C hides these everywhere. h5zarr shows them if they have nothing to do with dimensions.
HIDDEN = RESERVED | {"_NCProperties", "_nc3_strict", "_Netcdf4Dimid"}


def named(path: Path) -> Naming:
    """Return the names of a file. External links lead to files in its folder."""
    file = scan(str(path))
    return interpret_names(file, others_of(file, path))


def others_of(file: H5File, path: Path) -> dict[tuple[H5File, str], H5File]:
    groups = [one for one in file.objects.values() if isinstance(one, Group)]
    links = [link for group in groups for link in group.links.values() if isinstance(link, ExternalLink)]
    found = {link.file for link in links if (path.parent / link.file).is_file()}
    return {(file, name): scan(str(path.parent / name)) for name in found}


def is_cyclic(naming: Naming) -> bool:
    """Return whether a group contains itself. The library would not end."""
    return any("its own ancestor" in problem.message for problem in naming.problems)


def compare(path: Path, library: NetcdfLibrary, naming: Naming | None = None) -> Agreement:
    """Return how the names of a file agree with the library's."""
    found, naming = Agreement(), naming or named(path)
    theirs = "a group contains itself" if is_cyclic(naming) else library.names(path)
    if isinstance(theirs, str):
        found.unopened[""] = theirs
    else:
        _Comparing(found, naming).groups(theirs)
    return found


class _Comparing(Comparing):
    def __init__(self, found: Agreement, naming: Naming) -> None:
        super().__init__(found)
        self.naming = naming
        self.left_out = {problem.path for problem in naming.problems if problem.kind == "unrepresentable"}

    def groups(self, theirs: dict[str, Any]) -> None:
        ours = {group.path: group for group in self.naming.groups}
        self.equal("/", "groups", list(ours), list(theirs))
        for path in ours.keys() & theirs.keys():
            self.group(ours[path], theirs[path])

    def group(self, ours: NamedGroup, theirs: dict[str, Any]) -> None:
        self.attributes(ours.path, list(ours.attributes.values()), theirs["attributes"])
        mine = {_name(one): one for one in ours.variables}
        shown = {name: one for name, one in mine.items() if name in theirs["variables"]}
        skipped = [one for name, one in mine.items() if name not in shown]
        for variable in skipped:
            is_long = len(_name(variable).encode()) > MOST_NAME_NBYTES
            reason = None if is_plain(variable.dataset.datatype) else Reason.STRANGE
            self.differ(variable.path, "the library does not show it", Reason.LONG_NAME if is_long else reason)
        for name in theirs["variables"].keys() - mine.keys():
            if len(name.encode()) < MOST_NAME_NBYTES:  # a longer one is cut, and perhaps followed by other memory
                place = f"{ours.path.rstrip('/')}/{name}"
                self.differ(place, "is missing", Reason.ZARR_NAME if place in self.left_out else None)
        self.equal(ours.path, "order", list(shown), [name for name in theirs["variables"] if name in mine])
        self.dimensions(ours, theirs["dimensions"], shown, skipped)
        for name, variable in shown.items():
            self.found.compared.add(variable.path)
            self.variable(variable, theirs["variables"][name])

    def dimensions(
        self, ours: NamedGroup, theirs: dict[str, Any], shown: dict[str, NamedVariable], skipped: list[NamedVariable]
    ) -> None:
        needed = {name for variable in shown.values() for name in variable.dimensions}
        extra = {name for variable in skipped for name in variable.dimensions} - needed - theirs.keys()
        mine = {one.name: [one.length, one.unlimited] for one in ours.dimensions if one.name not in extra}
        virtual = {name for one in shown.values() if _is_virtual(one) for name in one.dimensions}
        self.equal(ours.path, "dimensions", list(mine), list(theirs))
        for name in mine.keys() & theirs.keys():
            reason = Reason.VIRTUAL_SHAPE if name in virtual else None
            self.equal(ours.path, f"dimension {name!r}", mine[name], theirs[name], reason)
        for name in extra:
            self.differ(ours.path, f"dimension {name!r}", Reason.DIMENSION_OF_STRANGE)

    def variable(self, ours: NamedVariable, theirs: dict[str, Any]) -> None:
        self.equal(ours.path, "dimensions", list(ours.dimensions), theirs["dimensions"])
        reason = Reason.VIRTUAL_SHAPE if _is_virtual(ours) else None
        self.equal(ours.path, "shape", list(ours.shape), theirs["shape"], reason)
        self.attributes(ours.path, list(ours.attributes.values()), theirs["attributes"])

    def attributes(self, place: str, ours: list[Attribute], theirs: list[str] | None) -> None:
        hidden = {one.name for one in ours if one.name in HIDDEN or not is_plain(one.datatype)} - set(theirs or ())
        for name in hidden:
            self.differ(f"{place}@{name}", "the library does not show it", Reason.HIDDEN_ATTRIBUTE)
        self.equal(place, "attributes", [one.name for one in ours if one.name not in hidden], theirs)


def is_plain(datatype: Any) -> bool:
    """Return True for the numbers and strings that netCDF has had from the start."""
    if isinstance(datatype, FloatingPoint):
        return 4 <= datatype.nbytes <= 8
    return isinstance(datatype, FixedPoint | String | VariableLengthString)


def _name(variable: NamedVariable) -> str:
    return variable.path.rpartition("/")[2]


def _is_virtual(variable: NamedVariable) -> bool:
    return isinstance(variable.dataset.layout, VirtualLayout)
