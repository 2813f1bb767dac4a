"""What `interpret_names` returns: groups and variables under their netCDF names, every axis with a dimension."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from h5zarr.errors import Problem
from h5zarr.hdf5.model import Attribute, Dataset, H5File
from h5zarr.tree import NO_NOTES, AttributeNotes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dimension:
    """A named length. `length` is the logical one: what the longest variable has, where the dimension is unlimited.

    `dataset` is the dimension scale; None where the name was made up. `has_variable` is False where netCDF shows no
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
    """A dataset at one of its paths. `file` holds it: another one than was asked for behind an external link.

    There is one dimension name for each axis of the dataspace; `shape` has the logical lengths of these dimensions, so
    along an unlimited one it may be longer than the dataset. `attributes` are those that a netCDF user sees, or
    would see if netCDF knew their types. `type_name` is netCDF's name for an enumeration.
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
    """A group at one of its paths, with the variables and the dimensions that stand in it, in netCDF's order."""

    path: str
    attributes: Mapping[str, Attribute]
    variables: tuple[NamedVariable, ...]
    dimensions: tuple[Dimension, ...]
    notes: AttributeNotes = NO_NOTES


@dataclass(frozen=True, slots=True)
class Naming:
    """All groups, each behind its parent, the root first; and what could not be named as the file has it."""

    groups: tuple[NamedGroup, ...]
    problems: tuple[Problem, ...]

    @property
    def root(self) -> NamedGroup:
        return self.groups[0]

    def variables(self) -> Iterator[NamedVariable]:
        """Every variable, group by group."""
        return (variable for group in self.groups for variable in group.variables)

    def bare_dimensions(self) -> Iterator[Dimension]:
        """Every dimension for which netCDF shows no variable."""
        return (found for group in self.groups for found in group.dimensions if not found.has_variable)
