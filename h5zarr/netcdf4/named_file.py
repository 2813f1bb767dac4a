"""The result of `interpret_names`: groups and variables with netCDF names, and a dimension for every axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from h5zarr.errors import Problem
from h5zarr.hdf5.model import Attribute, Dataset, H5File
from h5zarr.tree import NO_NOTES, AttributeNotes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dimension:
    """A dimension. `length` is the logical length: for an unlimited dimension, that of its longest variable.

    `dataset` is the dimension scale, or None if the name was made up. `has_variable` is False if netCDF shows no
    variable for the scale. As in netCDF, a dimension of length zero counts as unlimited.
    """

    path: str
    length: int
    unlimited: bool
    dataset: Dataset | None
    has_variable: bool

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NamedVariable:
    """A dataset at one of its paths. Behind an external link, `file` is not the file that was asked for.

    Each axis of the dataspace has a dimension name. `shape` has the logical lengths of the dimensions, so it may be
    larger than the dataset along unlimited dimensions. `attributes` are those that netCDF users see, or would see if
    netCDF knew their types. `type_name` is the netCDF name of an enumeration type.
    """

    path: str
    file: H5File
    dataset: Dataset
    dimensions: tuple[str, ...]
    shape: tuple[int, ...]
    attributes: Mapping[str, Attribute]
    notes: AttributeNotes = NO_NOTES
    type_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NamedGroup:
    """A group at one of its paths, with its variables and dimensions in netCDF order."""

    path: str
    attributes: Mapping[str, Attribute]
    variables: tuple[NamedVariable, ...]
    dimensions: tuple[Dimension, ...]
    notes: AttributeNotes = NO_NOTES


@dataclass(frozen=True, slots=True)
class Naming:
    """All groups, parents first, and problems with names and dimensions."""

    groups: tuple[NamedGroup, ...]
    problems: tuple[Problem, ...]

    @property
    def root(self) -> NamedGroup:
        return self.groups[0]

    def only(self, path: str) -> Naming:
        """Return the variables of one group, and the groups above it. Without such a group, return everything."""
        if all(group.path != path for group in self.groups):
            return self
        groups = [replace(one, variables=()) for one in self.groups if path.startswith(f"{one.path.rstrip('/')}/")]
        found = [one for one in self.groups if one.path == path]
        above = [one for one in groups if one.path != path]
        return Naming((*above, *found), self.problems)

    def variables(self) -> Iterator[NamedVariable]:
        """Yield all variables, group by group."""
        return (variable for group in self.groups for variable in group.variables)

    def bare_dimensions(self) -> Iterator[Dimension]:
        """Yield all dimensions for which netCDF shows no variable."""
        return (found for group in self.groups for found in group.dimensions if not found.has_variable)
