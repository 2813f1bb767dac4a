"""The content of a netCDF classic file header, and values derived from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.display import counted, summary_repr
from h5zarr.errors import Problem
from h5zarr.netcdf3.nc_types import NcType

Attributes: TypeAlias = Mapping[str, "ClassicAttribute"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassicAttribute:
    """An attribute. `values` has one axis and native byte order. Text has type `S1`."""

    name: str
    type: NcType
    values: npt.NDArray[Any]

    @property
    def text(self) -> str:
        """The value of a CHAR attribute, decoded as UTF-8 or else as Latin-1. NULs are removed, as netCDF4 does."""
        return decode_text(self.values.tobytes().replace(b"\0", b""))


@dataclass(frozen=True, slots=True)
class ClassicDimension:
    """A dimension. `length` is None for the record dimension, which the header stores as zero."""

    name: str
    length: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassicVariable:
    """A variable as described in the header. `vsize` is redundant and often wrong for large variables, so it is unused.

    `shape` has the lengths of `dimension_ids`. The record dimension counts as zero; only the first dimension may be
    one.
    """

    name: str
    type: NcType
    dimension_ids: tuple[int, ...]
    shape: tuple[int, ...]
    is_record: bool
    attributes: Attributes
    vsize: int
    begin: int

    @property
    def slab_nbytes(self) -> int:
        """Size of all values, or of the values in one record for a record variable, without padding."""
        return self.type.nbytes * prod(self.shape[1:] if self.is_record else self.shape)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Header:
    """The header as stored.

    `stated_records` is None for "streaming": the record count then follows from the file size.
    """

    version: int
    stated_records: int | None
    dimensions: tuple[ClassicDimension, ...]
    attributes: Attributes
    variables: tuple[ClassicVariable, ...]
    nbytes: int
    problems: tuple[Problem, ...] = ()

    def __repr__(self) -> str:
        held = counted(len(self.variables), "variable"), counted(len(self.dimensions), "dimension")
        return f"<Header: {', '.join(held)}, {counted(len(self.attributes), 'attribute')}>"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ClassicFile:
    """A whole netCDF-3 file, as `h5zarr.scan` returns it.

    Attributes
    ----------
    url
        The file, without secrets in its URL.
    nbytes
        Size of the file.
    header
        Dimensions, attributes and variables, with their positions.
    record_count
        The number of records.
    record_nbytes
        The distance between two records of a variable, or 0 without record variables.
    refused
        The reasons why the values of some variables, by number, cannot be where the header says.
    problems
        What cannot be read, and why.
    """

    url: str
    nbytes: int
    header: Header
    record_count: int
    record_nbytes: int
    refused: Mapping[int, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def __repr__(self) -> str:
        held = counted(len(self.header.variables), "variable"), counted(self.record_count, "record")
        return summary_repr("ClassicFile", self.url, *held, counted(len(self.problems), "problem"))

    def shape(self, variable: ClassicVariable) -> tuple[int, ...]:
        """Return the shape of a variable, including its records.

        Parameters
        ----------
        variable
            A variable of the header.
        """
        return (self.record_count, *variable.shape[1:]) if variable.is_record else variable.shape

    def length(self, dimension: ClassicDimension) -> int:
        """Return the length of a dimension; of the record dimension, the number of records.

        Parameters
        ----------
        dimension
            A dimension of the header.
        """
        return self.record_count if dimension.length is None else dimension.length


def decode_text(stored: bytes) -> str:
    """Decode text as UTF-8, or as Latin-1 if it is not valid UTF-8. Latin-1 accepts every byte."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored.decode("latin-1")


def native(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a copy of the values in native byte order."""
    return values.astype(np.dtype(values.dtype).newbyteorder("="))
