"""Waist 1: the content of a file, independent of its format. Each format has an interpreter that returns a `Tree`.

Types are numpy types: numbers of either byte order, `bool`, `S` for fixed-length strings, `V` for opaque bytes,
structured types for records, datetime64, and `object` for variable-length text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.errors import Problem, Unrepresentable
from h5zarr.io.steps import Step


class StoredFilter(Protocol):
    """An HDF5 filter: its registered number, name and client data (`values`)."""

    @property
    def number(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def values(self) -> tuple[int, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredChunks:
    """Chunks of one or more files, one row per chunk. A chunk without a row reads as the fill value.

    `index` has shape (count, rank) and holds chunk grid coordinates in row-major order. `source` is the position of the
    file in `Tree.sources`: one number for all chunks, or one per chunk. Bit i of `filter_mask` is set if filter i was
    skipped. `element_nbytes` is the size of an element in the file if it differs from that of the variable's type.
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
    """Uncompressed values in row-major order, starting at `address`. `encode` may cut them into chunks of any size.

    `shape` is the shape of these values; it does not exceed the variable's. `stride` is the distance in bytes between
    elements of the first axis if other content lies between them. `source_nbytes` is the size of the file. Values
    beyond the end of the file are missing and read as the fill value.
    """

    shape: tuple[int, ...]
    address: int
    source_nbytes: int
    stride: int | None = None
    source: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class HeldBytes:
    """All values of a variable, read with the metadata: unfiltered, in row-major order."""

    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConvertedValues:
    """Values that must be converted before readers can use them. `read` returns them in the variable's shape and type.

    `nbytes` estimates their size before they are read. `source` is the position of the file in `Tree.sources`. If a
    codec can convert each chunk instead, `stored` holds the chunks and `codec` its Zarr metadata.
    """

    read: Callable[[], Step[npt.NDArray[Any]]]
    nbytes: int
    source: int = 0
    stored: StoredChunks | None = None
    codec: Mapping[str, Any] | None = None


Storage: TypeAlias = StoredChunks | StoredRun | HeldBytes | ConvertedValues


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEnumeration:
    """The members of an enumeration (name and value), and the netCDF name of the type."""

    name: str
    members: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeNotes:
    """Facts about the attributes of an object that their values do not show.

    `foreign` names attributes whose types netCDF does not support. `padded` holds the stored size of each fixed-length
    string attribute whose trailing blanks were removed.
    """

    foreign: tuple[str, ...] = ()
    padded: tuple[tuple[str, int], ...] = ()


NO_NOTES = AttributeNotes()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredForm:
    """Facts about the storage of a variable that a Zarr array does not show.

    `chunk_shape` is None if the values are not chunked. The other fields apply if the elements in the file differ from
    those of the variable's type: `number` is the numpy type of integers with an unusual precision and of booleans of
    several bytes, `members` names the fields of a record that is shown with its gaps, and `padding` is the padding that
    was removed from fixed-length strings.
    """

    chunk_shape: tuple[int, ...] | None = None
    filters: tuple[StoredFilter, ...] = ()
    number: str | None = None
    enumeration: StoredEnumeration | None = None
    members: tuple[str, ...] = ()
    padding: str = ""
    notes: AttributeNotes = NO_NOTES


AttributeValue: TypeAlias = str | npt.NDArray[Any] | Sequence["AttributeValue"] | Mapping[str, "AttributeValue"]
"""Text, numbers or records of any shape, or nested sequences and mappings of these if numpy has no type for them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Variable:
    """An array. `fill` is one element, the value of unwritten space; None means zero.

    `stored` is None if the format has neither chunks nor filters, or if the storage is unknown.
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
    """A group. `unlimited` names the unlimited dimensions defined in this group, including those without a variable.

    `is_classic` is True if the format has neither chunks nor filters (netCDF-3).
    """

    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    unlimited: tuple[str, ...] = ()
    notes: AttributeNotes = NO_NOTES
    is_classic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tree:
    """Groups and variables by path, parents before children. The root is "/".

    `sources` are the URLs that chunks refer to; the file itself comes first. `problems` describe objects that were left
    out, `warnings` objects that are present but incomplete.
    """

    nodes: Mapping[str, TreeGroup | Variable]
    sources: tuple[str, ...]
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()

    def about(self, group: str) -> Tree:
        """Return the tree without the problems of other groups. Without such a group, return the whole tree."""

        def is_about(problem: Problem) -> bool:
            path = problem.path.partition("@")[0]
            return path in ("/", group) or (path.rpartition("/")[0] or "/") == group

        if group not in self.nodes:
            return self
        problems, warnings = (tuple(filter(is_about, some)) for some in (self.problems, self.warnings))
        return replace(self, problems=problems, warnings=warnings)


# --- names that Zarr readers cannot look up; other unusual names, such as "__x", work

_METADATA = "zarr.json"
_REMEDY = "Rename it in a copy of the file, or read it from the file itself."


def refuse_name(path: str, name: str) -> Problem | None:
    """Return a problem if Zarr does not allow `name` for a node, in a file or in references; else None."""
    is_path = name in ("", ".", "..") or "\\" in name or "/" in name
    if not is_path and name != _METADATA:
        return None
    what = f"Zarr readers treat the name {name!r} as {'a path' if is_path else 'metadata'}; the object is left out"
    return Problem(path, Unrepresentable.kind, what, _REMEDY)
