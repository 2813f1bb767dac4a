"""What a scan returns: groups, datasets, attributes and chunk tables, as the file states them.

Addresses are absolute: counted from the first byte of the source, base address and user block included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.errors import Problem
from h5zarr.hdf5.datatype import Datatype
from h5zarr.hdf5.selection import Selection
from h5zarr.io.steps import Step


class SpaceKind(IntEnum):
    SCALAR = 0
    SIMPLE = 1
    NULL = 2


@dataclass(frozen=True, slots=True)
class Dataspace:
    """The extent of a dataset or attribute. A `None` in `max_shape` is an unlimited axis."""

    kind: SpaceKind
    shape: tuple[int, ...] = ()
    max_shape: tuple[int | None, ...] = ()

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def count(self) -> int:
        """The number of elements: 1 for a scalar, 0 for a null dataspace."""
        if self.kind is SpaceKind.NULL:
            return 0
        count = 1
        for extent in self.shape:
            count *= extent
        return count


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """One filter of a pipeline, in the order of writing. Spec: IV.A.2.l."""

    number: int
    name: str
    optional: bool
    values: tuple[int, ...]


WRITE_FILL_NEVER = 1


class FillKind(Enum):
    """Who chose the fill value."""

    UNDEFINED = "undefined"
    LIBRARY_DEFAULT = "default"
    USER_DEFINED = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class FillValue:
    """The storage fill of a dataset: the bytes of one element in the dataset's own type, or None for all zeros.

    Write time and allocation time are the specification's codes (IV.A.2.f); None where the message does not say.
    """

    kind: FillKind
    element: bytes | None = None
    allocation_time: int | None = None
    write_time: int | None = None

    @property
    def unwritten(self) -> bytes | None:
        """What a reader gets where nothing was allocated: the fill value, or zeros (None) if it is never written.

        The library leaves the reader's buffer alone then, which readers hand over zeroed.
        """
        return None if self.write_time == WRITE_FILL_NEVER else self.element


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChunkTable:
    """The chunks that are stored, one row each; a chunk without a row reads as fill.

    `index` is (count, rank) chunk grid coordinates, in row-major order of the grid; `nbytes` is the size as stored;
    `filter_mask` has bit i set where filter i was skipped.
    """

    index: npt.NDArray[np.int64]
    address: npt.NDArray[np.int64]
    nbytes: npt.NDArray[np.int64]
    filter_mask: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.address)


class IndexKind(Enum):
    """How the file finds the chunks of a dataset. Spec: Appendix C."""

    BTREE_V1 = "B-tree v1"
    SINGLE = "single chunk"
    IMPLICIT = "implicit"
    FIXED_ARRAY = "fixed array"
    EXTENSIBLE_ARRAY = "extensible array"
    BTREE_V2 = "B-tree v2"


@dataclass(frozen=True, slots=True)
class CompactLayout:
    """The values, stored in the object header."""

    content: bytes


@dataclass(frozen=True, slots=True)
class ContiguousLayout:
    """One span of bytes; `address` is None where nothing has been allocated."""

    address: int | None
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkedLayout:
    """Chunks of `chunk_shape` elements."""

    chunk_shape: tuple[int, ...]
    index_kind: IndexKind
    chunks: ChunkTable
    edge_chunks_unfiltered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualMapping:
    """A part of a virtual dataset and the part of another dataset that it shows."""

    source_file: str
    source_dataset: str
    source_selection: Selection
    virtual_selection: Selection


@dataclass(frozen=True, slots=True)
class VirtualLayout:
    mappings: tuple[VirtualMapping, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalSegment:
    """A piece of a dataset's values in another file; `nbytes` None means to the end of the dataset."""

    file: str
    address: int
    nbytes: int | None


@dataclass(frozen=True, slots=True)
class ExternalLayout:
    """The values stand in other files, one segment after the other."""

    segments: tuple[ExternalSegment, ...]


Layout: TypeAlias = CompactLayout | ContiguousLayout | ChunkedLayout | VirtualLayout | ExternalLayout


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """A reference to an object of this file, or of `file`; `address` is None when it points nowhere.

    `H5File.path_of` gives the path.
    """

    address: int | None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class RegionReference:
    """A reference to a selection of a dataset."""

    target: ObjectReference
    selection: Selection | None


@dataclass(frozen=True, slots=True)
class AttributeReference:
    """A reference to an attribute of an object."""

    target: ObjectReference
    name: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attribute:
    """A named value. `value` is None exactly when the dataspace is null; see `values.py` for the numpy forms."""

    name: str
    datatype: Datatype
    dataspace: Dataspace
    value: npt.NDArray[Any] | None
    creation_order: int | None = None


@dataclass(frozen=True, slots=True)
class HardLink:
    name: str
    address: int
    creation_order: int | None = None


@dataclass(frozen=True, slots=True)
class SoftLink:
    """A link to a path in the same file, which need not exist."""

    name: str
    target: str
    creation_order: int | None = None


@dataclass(frozen=True, slots=True)
class ExternalLink:
    name: str
    file: str
    target: str
    creation_order: int | None = None


@dataclass(frozen=True, slots=True)
class UserLink:
    """A link of a class that some application defined."""

    name: str
    link_class: int
    content: bytes
    creation_order: int | None = None


Link: TypeAlias = HardLink | SoftLink | ExternalLink | UserLink


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """What a header says about its object besides what it is. Times are in seconds since 1970."""

    reference_count: int = 1
    modification_time: int | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConstants:
    """When a group changes between compact and dense links, and what its maker expected; None is the default."""

    max_compact_links: int | None = None
    min_dense_links: int | None = None
    expected_links: int | None = None
    expected_name_nbytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """Links by name, in the order of their creation where `tracks_order`, else sorted."""

    address: int
    links: Mapping[str, Link]
    attributes: Mapping[str, Attribute]
    tracks_order: bool = False
    constants: GroupConstants = GroupConstants()
    notes: Notes = Notes()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dataset:
    """An array. `datatype_message` is the content of the message that states its type, as it stands in the file."""

    address: int
    datatype: Datatype
    dataspace: Dataspace
    layout: Layout
    filters: tuple[Filter, ...]
    fill: FillValue
    attributes: Mapping[str, Attribute]
    notes: Notes = Notes()
    datatype_message: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommittedDatatype:
    """A named datatype that datasets and attributes may share."""

    address: int
    datatype: Datatype
    attributes: Mapping[str, Attribute]
    notes: Notes = Notes()


Object: TypeAlias = Group | Dataset | CommittedDatatype


class ContentReader(Protocol):
    """Reads values of datasets after the scan: the few that must be known."""

    def read_values(self, dataset: Dataset) -> Step[npt.NDArray[Any]]:
        """Return all values of a dataset, of its shape."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class H5File:
    """A whole file. `objects` by header address; `paths` holds the first path, breadth first, of each.

    `nbytes` is its size, 0 where nobody has said.
    """

    url: str
    root: Group
    objects: Mapping[int, Object]
    paths: Mapping[int, str]
    contents: ContentReader
    problems: tuple[Problem, ...] = field(default=())
    nbytes: int = 0

    def path_of(self, reference: ObjectReference) -> str | None:
        """Return the first path of the object that a reference points to; None when there is no such object here."""
        if reference.file is not None or reference.address is None:
            return None
        return self.paths.get(reference.address)

    def walk(self) -> Iterator[tuple[str, Object]]:
        """Each object once, under its first path, parents before children."""
        for address, path in self.paths.items():
            if (found := self.objects.get(address)) is not None:
                yield path, found

    def datasets(self) -> Iterator[tuple[str, Dataset]]:
        """Each dataset once, under its first path."""
        return ((path, found) for path, found in self.walk() if isinstance(found, Dataset))
