"""A file as netCDF4 shows it and as h5zarr names it, compared; what is meant to differ is named and counted."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from h5zarr.hdf5.datatype import FixedPoint, FloatingPoint, String, VariableLengthString
from h5zarr.hdf5.model import Attribute, ExternalLink, Group, H5File, VirtualLayout
from h5zarr.netcdf4.model import NamedGroup, NamedVariable, Naming
from h5zarr.netcdf4.names import interpret_names
from h5zarr.scanning import scan
from tests.worker import Worker

SECONDS = 20
MOST_NAME_NBYTES = 256  # NC_MAX_NAME
# Hidden by netCDF-C wherever they stand; h5zarr shows them where they have nothing to do with dimensions.
RESERVED = {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_NCProperties", "_nc3_strict", "_Netcdf4Dimid"}


class Library:
    """The netCDF library, which opens files for the tests."""

    def __init__(self) -> None:
        self._worker = Worker("tests.netcdf4.netcdf_worker", SECONDS)

    def show(self, path: Path) -> dict[str, Any]:
        """Return what the library shows of a file; under "refused" why it does not."""
        if answer := self._worker.ask(str(path)):
            shown: dict[str, Any] = json.loads(answer)
            return shown
        return {"refused": "the library crashed or did not end"}

    def close(self) -> None:
        self._worker.close()


@dataclass(slots=True)
class Agreement:
    """What came out: `meant` counts differences that are explained, by their kind."""

    refused: str = ""
    variables: int = 0
    differences: list[str] = field(default_factory=list)
    meant: Counter[str] = field(default_factory=Counter)


def named(path: Path) -> Naming:
    """Return the names of a file, whose external links lead to files beside it."""
    file = scan(str(path))
    return interpret_names(file, others_of(file, path))


def others_of(file: H5File, path: Path) -> dict[tuple[H5File, str], H5File]:
    groups = [one for one in file.objects.values() if isinstance(one, Group)]
    links = [link for group in groups for link in group.links.values() if isinstance(link, ExternalLink)]
    found = {link.file for link in links if (path.parent / link.file).is_file()}
    return {(file, name): scan(str(path.parent / name)) for name in found}


def compare(path: Path, library: Library, naming: Naming | None = None) -> Agreement:
    """Return how the names of a file agree with the library's."""
    agreement, naming = Agreement(), naming or named(path)
    if any("in which it stands" in problem.message for problem in naming.problems):
        agreement.refused = "a group stands in itself, and the library would not end"
        return agreement
    shown = library.show(path)
    if "refused" in shown:
        agreement.refused = shown["refused"]
        return agreement
    comparing = _Comparing(naming, agreement)
    ours, theirs = {group.path: group for group in naming.groups}, shown["groups"]
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

    def mean(self, kind: str) -> None:
        self.agreement.meant[kind] += 1

    def group(self, ours: NamedGroup, theirs: dict[str, Any]) -> None:
        self.attributes(ours.path, list(ours.attributes.values()), theirs["attributes"])
        mine = {one.path.rpartition("/")[2]: one for one in ours.variables}
        shown = {name: one for name, one in mine.items() if name in theirs["variables"]}
        skipped = [one for name, one in mine.items() if name not in shown]
        for variable in skipped:
            if len(variable.path.rpartition("/")[2].encode()) > MOST_NAME_NBYTES:
                self.mean("name of over 256 bytes, which the netCDF library cuts")
                continue
            if is_plain(variable.dataset.datatype):
                self.differ(variable.path, "the library does not show it")
            self.mean("variable of a type that netCDF4 does not show")
        for name in theirs["variables"]:
            if name not in mine and len(name.encode()) >= MOST_NAME_NBYTES:
                continue  # cut, and perhaps with whatever stood behind it in memory
            if name not in mine and f"{ours.path.rstrip('/')}/{name}" in self.left_out:
                self.mean("name that Zarr cannot have")
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
            self.mean("made-up dimension of such a variable")

    def variable(self, ours: NamedVariable, theirs: dict[str, Any]) -> None:
        if list(ours.dimensions) != theirs["dimensions"]:
            self.differ(ours.path, f"dimensions {list(ours.dimensions)} are {theirs['dimensions']}")
        if list(ours.shape) != theirs["shape"] and isinstance(ours.dataset.layout, VirtualLayout):
            self.mean("shape of a virtual dataset that follows its sources")
        elif list(ours.shape) != theirs["shape"]:
            self.differ(ours.path, f"shape {list(ours.shape)} is {theirs['shape']}")
        self.attributes(ours.path, list(ours.attributes.values()), theirs["attributes"])

    def attributes(self, where: str, ours: list[Attribute], theirs: list[str]) -> None:
        names = []
        for attribute in ours:
            if attribute.name not in theirs and attribute.name in RESERVED:
                self.mean("reserved name of an attribute that has nothing to do with dimensions")
            elif attribute.name not in theirs and not is_plain(attribute.datatype):
                self.mean("attribute of a type that netCDF4 does not show")
            else:
                names.append(attribute.name)
        if names != theirs:
            self.differ(where, f"attributes {names} are {theirs}")


def is_plain(datatype: Any) -> bool:
    """Return True for the numbers and strings that netCDF has had from the start."""
    if isinstance(datatype, FloatingPoint):
        return 4 <= datatype.nbytes <= 8
    return isinstance(datatype, FixedPoint | String | VariableLengthString)
