"""A file as netCDF4 shows it and as h5zarr names it, compared; what is meant to differ is named and counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from h5zarr.formats import scan
from h5zarr.hdf5.datatype import FixedPoint, FloatingPoint, String, VariableLengthString
from h5zarr.hdf5.model import Attribute, ExternalLink, Group, H5File, VirtualLayout
from h5zarr.netcdf4.named_file import NamedGroup, NamedVariable, Naming
from h5zarr.netcdf4.names import interpret_names
from tests.truth.differences import MOST_NAME_NBYTES, RESERVED, Reason
from tests.truth.netcdf_library import NetcdfLibrary

# Hidden by netCDF-C wherever they are; h5zarr shows them where they have nothing to do with dimensions.
HIDDEN = RESERVED | {"_NCProperties", "_nc3_strict", "_Netcdf4Dimid"}


@dataclass(slots=True)
class Agreement:
    """What came out: `allowed` counts the differences that are allowed."""

    refused: str = ""
    variables: int = 0
    differences: list[str] = field(default_factory=list)
    allowed: Counter[Reason] = field(default_factory=Counter)


def named(path: Path) -> Naming:
    """Return the names of a file, whose external links lead to files beside it."""
    file = scan(str(path))
    return interpret_names(file, others_of(file, path))


def others_of(file: H5File, path: Path) -> dict[tuple[H5File, str], H5File]:
    groups = [one for one in file.objects.values() if isinstance(one, Group)]
    links = [link for group in groups for link in group.links.values() if isinstance(link, ExternalLink)]
    found = {link.file for link in links if (path.parent / link.file).is_file()}
    return {(file, name): scan(str(path.parent / name)) for name in found}


def compare(path: Path, library: NetcdfLibrary, naming: Naming | None = None) -> Agreement:
    """Return how the names of a file agree with the library's."""
    agreement, naming = Agreement(), naming or named(path)
    is_cyclic = any("its own ancestor" in problem.message for problem in naming.problems)  # the library would not end
    shown = "a group contains itself" if is_cyclic else library.names(path)
    if isinstance(shown, str):
        agreement.refused = shown
        return agreement
    comparing = _Comparing(naming, agreement)
    ours, theirs = {group.path: group for group in naming.groups}, shown
    if list(ours) != list(theirs):
        agreement.differences.append(f"groups {list(ours)} are {list(theirs)}")
    for group_path in ours.keys() & theirs.keys():
        comparing.group(ours[group_path], theirs[group_path])
    return agreement


class _Comparing:
    def __init__(self, naming: Naming, agreement: Agreement) -> None:
        self.agreement = agreement
        self.left_out = {problem.path for problem in naming.problems if problem.kind == "unrepresentable"}

    def differ(self, where: str, what: str) -> None:
        self.agreement.differences.append(f"{where}: {what}")

    def allow(self, reason: Reason) -> None:
        self.agreement.allowed[reason] += 1

    def group(self, ours: NamedGroup, theirs: dict[str, Any]) -> None:
        self.attributes(ours.path, list(ours.attributes.values()), theirs["attributes"])
        mine = {one.path.rpartition("/")[2]: one for one in ours.variables}
        shown = {name: one for name, one in mine.items() if name in theirs["variables"]}
        skipped = [one for name, one in mine.items() if name not in shown]
        for variable in skipped:
            if len(variable.path.rpartition("/")[2].encode()) > MOST_NAME_NBYTES:
                self.allow(Reason.LONG_NAME)
                continue
            if is_plain(variable.dataset.datatype):
                self.differ(variable.path, "the library does not show it")
            self.allow(Reason.STRANGE)
        for name in theirs["variables"]:
            if name not in mine and len(name.encode()) >= MOST_NAME_NBYTES:
                continue  # cut, and perhaps with whatever stood behind it in memory
            if name not in mine and f"{ours.path.rstrip('/')}/{name}" in self.left_out:
                self.allow(Reason.ZARR_NAME)
            elif name not in mine:
                self.differ(ours.path, f"variable {name!r} is missing")
        if list(shown) != [name for name in theirs["variables"] if name in mine]:
            self.differ(ours.path, "variables come in another order")
        self.dimensions(ours, theirs["dimensions"], shown, skipped)
        for name, variable in shown.items():
            self.agreement.variables += 1
            self.variable(variable, theirs["variables"][name])

    def dimensions(
        self, ours: NamedGroup, theirs: dict[str, Any], shown: dict[str, NamedVariable], skipped: list[NamedVariable]
    ) -> None:
        needed = {name for variable in shown.values() for name in variable.dimensions}
        extra = {name for variable in skipped for name in variable.dimensions} - needed - theirs.keys()
        mine = {one.name: [one.length, one.unlimited] for one in ours.dimensions if one.name not in extra}
        virtual = {
            name for one in shown.values() if isinstance(one.dataset.layout, VirtualLayout) for name in one.dimensions
        }
        if list(mine) != list(theirs):
            self.differ(ours.path, f"dimensions {list(mine)} are {list(theirs)}")
        for name in mine.keys() & theirs.keys():
            if mine[name] != theirs[name] and name not in virtual:
                self.differ(ours.path, f"dimension {name!r} {mine[name]} is {theirs[name]}")
        for _ in extra:
            self.allow(Reason.DIMENSION_OF_STRANGE)

    def variable(self, ours: NamedVariable, theirs: dict[str, Any]) -> None:
        if list(ours.dimensions) != theirs["dimensions"]:
            self.differ(ours.path, f"dimensions {list(ours.dimensions)} are {theirs['dimensions']}")
        if list(ours.shape) != theirs["shape"] and isinstance(ours.dataset.layout, VirtualLayout):
            self.allow(Reason.VIRTUAL_SHAPE)
        elif list(ours.shape) != theirs["shape"]:
            self.differ(ours.path, f"shape {list(ours.shape)} is {theirs['shape']}")
        self.attributes(ours.path, list(ours.attributes.values()), theirs["attributes"])

    def attributes(self, where: str, ours: list[Attribute], theirs: list[str]) -> None:
        names = []
        for attribute in ours:
            is_hidden = attribute.name in HIDDEN or not is_plain(attribute.datatype)
            if attribute.name not in theirs and is_hidden:
                self.allow(Reason.HIDDEN_ATTRIBUTE)
            else:
                names.append(attribute.name)
        if names != theirs:
            self.differ(where, f"attributes {names} are {theirs}")


def is_plain(datatype: Any) -> bool:
    """Return True for the numbers and strings that netCDF has had from the start."""
    if isinstance(datatype, FloatingPoint):
        return 4 <= datatype.nbytes <= 8
    return isinstance(datatype, FixedPoint | String | VariableLengthString)
