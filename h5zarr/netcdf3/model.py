"""What the header of a netCDF classic file says, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.errors import Problem
from h5zarr.netcdf3.types import NcType

Attributes: TypeAlias = Mapping[str, "ClassicAttribute"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassicAttribute:
    """An attribute. `values` are of one axis and in the machine's byte order; of type `S1` where it is text."""

    name: str
    type: NcType
    values: npt.NDArray[Any]

    @property
    def text(self) -> str:
        """The value of an attribute of type CHAR: UTF-8, and where it is not, Latin-1. Nulls are left out, as netCDF4
        leaves them out."""
        return decode_text(self.values.tobytes().replace(b"\0", b""))


@dataclass(frozen=True, slots=True)
class ClassicDimension:
    """A dimension. `length` is None for the record dimension, which the header states as zero."""

    name: str
    length: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassicVariable:
    """A variable as the header states it. `vsize` is redundant, and often wrong for large variables: nobody uses it.

    `shape` has the extents of `dimension_ids`, with zero for the record dimension, which only the first may be.
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
        """What the values take: all of them, or those of one record; without padding."""
        return self.type.nbytes * prod(self.shape[1:] if self.is_record else self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The header, as it stands. `stated_records` is None where it says "streaming": count them by the file's size."""

    version: int
    stated_records: int | None
    dimensions: tuple[ClassicDimension, ...]
    attributes: Attributes
    variables: tuple[ClassicVariable, ...]
    nbytes: int
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassicFile:
    """A whole file. `record_nbytes` is how far apart two records of a variable are; 0 where there are none.

    `refused` has, by the number of a variable, why its values cannot be what they claim to be.
    """

    url: str
    nbytes: int
    header: Header
    record_count: int
    record_nbytes: int
    refused: Mapping[int, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def shape(self, variable: ClassicVariable) -> tuple[int, ...]:
        """Return the shape of a variable, records counted."""
        return (self.record_count, *variable.shape[1:]) if variable.is_record else variable.shape

    def length(self, dimension: ClassicDimension) -> int:
        return self.record_count if dimension.length is None else dimension.length


def decode_text(stored: bytes) -> str:
    """Return text: UTF-8, and where it is not, Latin-1, which no byte can break."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored.decode("latin-1")


def native(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a copy of values in the machine's byte order."""
    return values.astype(np.dtype(values.dtype).newbyteorder("="))
