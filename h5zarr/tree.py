"""Waist 1: what a file says, whatever its format. Each format has an interpreter to a `Tree`; `encode` goes on there.

Types are numpy's: numbers of either byte order, `bool`, `S` for strings of fixed length, `V` for opaque bytes,
structured for records, datetime64, and `object` for text of any length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.errors import Problem
from h5zarr.io.steps import Step


class StoredFilter(Protocol):
    """A filter by its HDF5 number, with the parameters that it was given."""

    @property
    def number(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def values(self) -> tuple[int, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredChunks:
    """Values as they stand in files, chunk by chunk; a chunk without a row reads as fill.

    `index` is (count, rank) coordinates in the chunk grid, in row-major order. `source` is the number of the file in
    `Tree.sources`, one for all chunks or one for each. `filter_mask` has bit i set where filter i was skipped.
    `element_nbytes` is the size of an element in the file, where it is not that of the variable's type.
    """

    chunk_shape: tuple[int, ...]
    index: npt.NDArray[np.int64]
    address: npt.NDArray[np.int64]
    nbytes: npt.NDArray[np.int64]
    filter_mask: npt.NDArray[np.uint32] | None = None
    filters: tuple[StoredFilter, ...] = ()
    source: int | npt.NDArray[np.int32] = 0
    element_nbytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredRun:
    """Plain values in row-major order from `address` on, of the file that is `source_nbytes` long: to be cut at will.

    `shape` is that of the values, at most the variable's. Where other things lie between the elements of the first
    axis, `stride` is how far apart these begin. Values behind the end of the file are missing, and read as fill.
    """

    shape: tuple[int, ...]
    address: int
    source_nbytes: int
    stride: int | None = None
    source: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class HeldBytes:
    """Values that were found among the metadata: all of them, unfiltered, in row-major order."""

    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConvertedValues:
    """Values that are not in the file as readers see them: `read` returns them, of the variable's shape and type.

    `nbytes` is about what they take, known before they are read; `source` is the number of the file that is read.
    Where a codec can do the same to each chunk, `stored` has the chunks and `codec` is its Zarr metadata.
    """

    read: Callable[[], Step[npt.NDArray[Any]]]
    nbytes: int
    source: int = 0
    stored: StoredChunks | None = None
    codec: Mapping[str, Any] | None = None


Storage: TypeAlias = StoredChunks | StoredRun | HeldBytes | ConvertedValues


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEnumeration:
    """The names of an enumeration's values, and the name that netCDF gives the type."""

    name: str
    members: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeNotes:
    """What the file says of the attributes of an object and their values do not tell.

    `foreign` are those of types that netCDF does not know; `padded` has the size of those that are fixed text, filled
    up with blanks that are not in the values.
    """

    foreign: tuple[str, ...] = ()
    padded: tuple[tuple[str, int], ...] = ()


NO_NOTES = AttributeNotes()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredForm:
    """What the file says of a variable and a Zarr array does not tell.

    `chunk_shape` is None where the values are not in chunks. The rest concerns elements, where those of the variable's
    type are others than the file's: `number` is numpy's type for numbers of odd precision and for booleans, `members`
    are the names of a record that is shown as a complex number or with its gaps, `padding` is what fixed text was
    filled up with and lost.
    """

    chunk_shape: tuple[int, ...] | None = None
    filters: tuple[StoredFilter, ...] = ()
    number: str | None = None
    enumeration: StoredEnumeration | None = None
    members: tuple[str, ...] = ()
    padding: str = ""
    notes: AttributeNotes = NO_NOTES


AttributeValue: TypeAlias = str | npt.NDArray[Any] | Sequence["AttributeValue"] | Mapping[str, "AttributeValue"]
"""Text; numbers or records of any shape; or sequences and records of such, where numpy has no type for them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Variable:
    """An array. `fill` is one element, what unwritten space reads as; None is the type's zero.

    `stored` is None where the format has neither chunks nor filters, or nobody knows.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    dimensions: tuple[str, ...]
    storage: Storage
    fill: npt.NDArray[Any] | None = None
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    stored: StoredForm | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreeGroup:
    """A group. `unlimited` are those of its own dimensions, also without a variable, that may grow.

    `is_classic` says that the format has neither chunks nor filters.
    """

    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    unlimited: tuple[str, ...] = ()
    notes: AttributeNotes = NO_NOTES
    is_classic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tree:
    """Groups and variables by path, parents before children; the root is "/".

    `sources` are the URLs that chunks refer to, the file itself first. `problems` name what is left out, `warnings`
    what is there but not all that it was.
    """

    nodes: Mapping[str, TreeGroup | Variable]
    sources: tuple[str, ...]
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


_METADATA = "zarr.json"
_NO_ZARR_NAMES = frozenset({"", ".", "..", _METADATA})


def refuse_name(path: str, name: str) -> Problem | None:
    """Return why Zarr readers cannot look up what is called `name`; other odd names, such as "__x", do no harm."""
    if name not in _NO_ZARR_NAMES and "\\" not in name and "/" not in name:
        return None
    what = f"a Zarr reader takes the name {name!r} for {'its own metadata' if name == _METADATA else 'a path'}"
    return Problem(path, "unrepresentable", f"{what}; what it names is left out", "Give it another name.")
