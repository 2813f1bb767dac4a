"""The result of a scan: groups, datasets, attributes and chunk tables, as stored in the file.

Addresses are absolute: they count from the first byte of the source and include the base address and user block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.display import counted, summary_repr
from h5zarr.errors import Problem
from h5zarr.hdf5.datatype import Datatype
from h5zarr.hdf5.messages.notes import NO_CONSTANTS, NO_NOTES, GroupConstants, Notes
from h5zarr.hdf5.object_references import ObjectReference
from h5zarr.hdf5.selection import Selection
from h5zarr.io.steps import Step


class SpaceKind(IntEnum):
    SCALAR = 0
    SIMPLE = 1
    NULL = 2


@dataclass(frozen=True, slots=True)
class Dataspace:
    """The shape of a dataset or attribute. None in `max_shape` means an unlimited axis."""

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
    """A filter of a pipeline. Pipelines are in writing order. Spec: IV.A.2.l."""

    number: int
    name: str
    optional: bool
    values: tuple[int, ...]


WRITE_FILL_NEVER = 1


class FillKind(Enum):
    """Whether and by whom the fill value was defined."""

    UNDEFINED = "undefined"
    LIBRARY_DEFAULT = "default"
    USER_DEFINED = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class FillValue:
    """The fill value of a dataset: the bytes of one element, in the dataset's type, or None for zeros.

    Write time and allocation time are the codes of the specification (IV.A.2.f), or None if the message does not state
    them.
    """

    kind: FillKind
    element: bytes | None = None
    allocation_time: int | None = None
    write_time: int | None = None

    @property
    def unwritten(self) -> bytes | None:
        """The value of unallocated space: the fill value, or None (zeros) if the fill value is never written.

        In that case the HDF5 library leaves the reader's buffer unchanged, and readers pass zeroed buffers.
        """
        return None if self.write_time == WRITE_FILL_NEVER else self.element


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ChunkTable:
    """The stored chunks, one row per chunk. A chunk without a row reads as the fill value.

    `index` has shape (count, rank) and holds chunk grid coordinates in row-major order. `nbytes` is the stored size.
    Bit i of `filter_mask` is set if filter i was skipped.
    """

    index: npt.NDArray[np.int64]
    address: npt.NDArray[np.int64]
    nbytes: npt.NDArray[np.int64]
    filter_mask: npt.NDArray[np.uint32]

    def __repr__(self) -> str:
        return f"<ChunkTable: {counted(len(self), 'chunk')}>"

    def __len__(self) -> int:
        return len(self.address)


class IndexKind(Enum):
    """The kind of chunk index that a dataset has. Spec: Appendix C."""

    BTREE_V1 = "B-tree v1"
    SINGLE = "single chunk"
    IMPLICIT = "implicit"
    FIXED_ARRAY = "fixed array"
    EXTENSIBLE_ARRAY = "extensible array"
    BTREE_V2 = "B-tree v2"


@dataclass(frozen=True, slots=True)
class CompactLayout:
    """Values stored in the object header."""

    content: bytes


@dataclass(frozen=True, slots=True)
class ContiguousLayout:
    """Values in one byte range. `address` is None if no space was allocated."""

    address: int | None
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkedLayout:
    """Values in chunks of shape `chunk_shape`."""

    chunk_shape: tuple[int, ...]
    index_kind: IndexKind
    chunks: ChunkTable
    edge_chunks_unfiltered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualMapping:
    """A selection of a virtual dataset, and the selection of a source dataset that supplies its values."""

    source_file: str
    source_dataset: str
    source_selection: Selection
    virtual_selection: Selection


@dataclass(frozen=True, slots=True)
class VirtualLayout:
    mappings: tuple[VirtualMapping, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalSegment:
    """Part of a dataset's values in an external file. `nbytes` is None if it extends to the end of the dataset."""

    file: str
    address: int
    nbytes: int | None


@dataclass(frozen=True, slots=True)
class ExternalLayout:
    """Values in external files, one segment after the other."""

    segments: tuple[ExternalSegment, ...]


Layout: TypeAlias = CompactLayout | ContiguousLayout | ChunkedLayout | VirtualLayout | ExternalLayout


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attribute:
    """An attribute. `value` is None only for a null dataspace. `numpy_values.py` describes the numpy types."""

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
    """A link to a path in the same file. The path need not exist."""

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
    """A link of a user-defined class."""

    name: str
    link_class: int
    content: bytes
    creation_order: int | None = None


Link: TypeAlias = HardLink | SoftLink | ExternalLink | UserLink


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Group:
    """Links by name, in creation order if `tracks_order`, else sorted by name."""

    address: int
    links: Mapping[str, Link]
    attributes: Mapping[str, Attribute]
    tracks_order: bool = False
    constants: GroupConstants = NO_CONSTANTS
    notes: Notes = NO_NOTES

    def __repr__(self) -> str:
        held = counted(len(self.links), "link"), counted(len(self.attributes), "attribute")
        return f"<Group: {', '.join(held)}>"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Dataset:
    """An array. `datatype_message` is the content of its datatype message, as stored."""

    address: int
    datatype: Datatype
    dataspace: Dataspace
    layout: Layout
    filters: tuple[Filter, ...]
    fill: FillValue
    attributes: Mapping[str, Attribute]
    notes: Notes = NO_NOTES
    datatype_message: bytes = b""

    def __repr__(self) -> str:
        shape, attributes = self.dataspace.shape, counted(len(self.attributes), "attribute")
        layout = self.layout
        chunks = f", {counted(len(layout.chunks), 'chunk')}" if isinstance(layout, ChunkedLayout) else ""
        return f"<Dataset: {type(self.datatype).__name__}, shape {shape}{chunks}, {attributes}>"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommittedDatatype:
    """A named datatype that datasets and attributes may share."""

    address: int
    datatype: Datatype
    attributes: Mapping[str, Attribute]
    notes: Notes = NO_NOTES


Object: TypeAlias = Group | Dataset | CommittedDatatype


class ContentReader(Protocol):
    """Reads the values of datasets after the scan. Only few datasets need this."""

    def read_values(self, dataset: Dataset) -> Step[npt.NDArray[Any]]:
        """Return all values of a dataset, in its shape."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class H5File:
    """A whole HDF5 file, as `h5zarr.scan` returns it.

    Attributes
    ----------
    url
        The file, without secrets in its URL.
    root
        The root group.
    objects
        Groups, datasets and committed datatypes by the address of their header.
    paths
        The first path of each object, breadth first, by address.
    contents
        Reads the values of datasets that cannot be referenced.
    problems
        What cannot be read, and why.
    nbytes
        Size of the file, or 0 if unknown.
    unscanned
        Addresses of groups that were not entered, because only a part of the file was scanned.
    """

    url: str
    root: Group
    objects: Mapping[int, Object]
    paths: Mapping[int, str]
    contents: ContentReader
    problems: tuple[Problem, ...] = ()
    nbytes: int = 0
    unscanned: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        groups = sum(isinstance(found, Group) for found in self.objects.values())
        datasets = sum(isinstance(found, Dataset) for found in self.objects.values())
        held = f"{counted(datasets, 'dataset')} in {counted(groups, 'group')}"
        return summary_repr("H5File", self.url, held, counted(len(self.problems), "problem"))

    def path_of(self, reference: ObjectReference) -> str | None:
        """Return the first path of the referenced object, or None if it is not in this file.

        Parameters
        ----------
        reference
            A value of an attribute or dataset of references.
        """
        if reference.file is not None or reference.address is None:
            return None
        return self.paths.get(reference.address)

    def walk(self) -> Iterator[tuple[str, Object]]:
        """Yield each object once, under its first path, parents before children."""
        for address, path in self.paths.items():
            if (found := self.objects.get(address)) is not None:
                yield path, found

    def datasets(self) -> Iterator[tuple[str, Dataset]]:
        """Yield each dataset once, under its first path."""
        return ((path, found) for path, found in self.walk() if isinstance(found, Dataset))
