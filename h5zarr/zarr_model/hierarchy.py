"""Waist 2: Zarr groups and arrays, and the locations of their chunks. Writers and readers use it.

The terms are those of Zarr version 3. `data_type`, `codecs`, `fill_value` and `attributes` are JSON. The `record` of a
group has the facts about the file that Zarr cannot express.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.display import counted
from h5zarr.errors import Problem, Unrepresentable
from h5zarr.tree import NO_NOTES, AttributeNotes, StoredForm
from h5zarr.zarr_model.grid import ChunkGrid, RegularGrid
from h5zarr.zarr_model.joined import JoinedVariable

Json: TypeAlias = Any

TO_THE_END = -1
"""The size of a chunk that is a whole file of unknown size."""


@dataclass(frozen=True, slots=True)
class RecordTotals:
    """How many chunks a record references, the bytes of all of them, and how many chunks it has inlined."""

    count: int = 0
    nbytes: int = 0
    inline_count: int = 0

    def __add__(self, other: RecordTotals) -> RecordTotals:
        return RecordTotals(
            self.count + other.count, self.nbytes + other.nbytes, self.inline_count + other.inline_count
        )

    @property
    def is_empty(self) -> bool:
        return not self.count and not self.inline_count


def sum_nbytes(nbytes: npt.NDArray[np.int64]) -> int:
    """Return the sum of sizes that are known. Each may be so large that two of them do not fit into 64 bits."""
    known = np.maximum(nbytes, 0)
    return int((known & 0xFFFFFFFF).sum()) + (int((known >> 32).sum()) << 32)


class ChunkLocations(Protocol):
    """The locations of an array's chunks; see `Manifest`. A container may read them when they are first used."""

    @property
    def index(self) -> npt.NDArray[np.int64]: ...

    @property
    def address(self) -> npt.NDArray[np.int64]: ...

    @property
    def nbytes(self) -> npt.NDArray[np.int64]: ...

    @property
    def source(self) -> int | npt.NDArray[np.int32]: ...

    @property
    def inline(self) -> Mapping[tuple[int, ...], bytes]: ...

    @property
    def count(self) -> int:
        """The number of referenced chunks."""

    @property
    def referenced_nbytes(self) -> int:
        """The number of bytes of all referenced chunks whose size is known."""

    @property
    def inline_count(self) -> int:
        """The number of inlined chunks."""

    @property
    def record_size(self) -> int | None:
        """How many chunks of the grid, in row-major order, are in a record; None if there are no records."""

    @property
    def state(self) -> str | None:
        """The state of the container that the chunks are read from when they are needed; None if they are in memory."""

    @property
    def totals(self) -> Mapping[int, RecordTotals] | None:
        """What each record has, without those that are empty; None if it is not known, or there are no records."""

    def read_records(self, numbers: Sequence[int]) -> Sequence[ChunkLocations]:
        """Return the chunks of each of these records."""

    def slabs(self) -> Iterable[ChunkLocations]:
        """Return all chunks in parts, of which one at a time is in memory."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Manifest:
    """The locations of an array's chunks: one row per referenced chunk, in row-major order of the grid.

    Chunk `index[i]` has `nbytes[i]` bytes at `address[i]` of the URL number `source` (one for all rows, or one each).
    `inline` has the bytes of inlined chunks. A chunk in neither part reads as the fill value.

    References that other tools wrote may refer to a whole file of unknown size. Then `address` is 0 and `nbytes` is
    `TO_THE_END`.
    """

    index: npt.NDArray[np.int64]
    address: npt.NDArray[np.int64]
    nbytes: npt.NDArray[np.int64]
    source: int | npt.NDArray[np.int32] = 0
    inline: Mapping[tuple[int, ...], bytes] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Manifest: {counted(self.count, 'chunk')} referenced, {len(self.inline):,} inlined>"

    @property
    def count(self) -> int:
        """The number of referenced chunks."""
        return len(self.address)

    @property
    def referenced_nbytes(self) -> int:
        return sum_nbytes(self.nbytes)

    @property
    def inline_count(self) -> int:
        return len(self.inline)

    @property
    def record_size(self) -> None:
        return None

    @property
    def state(self) -> None:
        return None

    @property
    def totals(self) -> None:
        return None

    def slabs(self) -> Iterable[ChunkLocations]:
        return (self,)

    def read_records(self, numbers: Sequence[int]) -> Sequence[ChunkLocations]:
        raise TypeError("this manifest has no records")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ArrayNode:
    grid: ChunkGrid
    data_type: Json
    codecs: tuple[Json, ...]
    fill_value: Json
    dimension_names: tuple[str, ...]
    attributes: Mapping[str, Json]
    manifest: ChunkLocations

    def __repr__(self) -> str:
        name = self.data_type if isinstance(self.data_type, str) else self.data_type["name"]
        return f"<ArrayNode: {name}, shape {self.shape}, {self.manifest}>"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.grid.shape

    @property
    def chunk_shape(self) -> tuple[int, ...]:
        """The shape of each chunk. Raises Unrepresentable if chunks have different shapes."""
        if not isinstance(self.grid, RegularGrid):
            remedy = "Write Zarr version 3 references, which have such chunks."
            raise Unrepresentable("its chunks have different shapes", remedy=remedy)
        return self.grid.chunk_shape


AttributeType: TypeAlias = str | tuple[tuple[str, str], ...]
"""The numpy name of a numeric type; for a record, the name and the type of each member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptValue:
    """An attribute of the file that the attributes in Zarr cannot hold. `type` is None for anything but numbers."""

    value: Json
    type: str | None


USUAL_FORM = StoredForm()


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableRecord:
    """What Zarr cannot express about a variable.

    `types` has the types of attributes whose JSON form does not show them. `fill_value` is a `_FillValue` that Zarr
    attributes cannot hold. `withheld` has other attributes that are not written to Zarr. `form` says how the file
    stores the values. `parameters` names attributes that change along a dimension, each with the
    one-dimensional variable that has its values.
    """

    types: Mapping[str, AttributeType] = field(default_factory=dict)
    fill_value: KeptValue | None = None
    withheld: Mapping[str, KeptValue] = field(default_factory=dict)
    form: StoredForm = USUAL_FORM
    parameters: Mapping[str, str] = field(default_factory=dict)


_USUAL_RECORD = VariableRecord()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecord:
    """What Zarr cannot express about a group and its variables.

    `types` and `notes` are about the attributes of the group itself. `unlimited` names its own unlimited
    dimensions. `is_classic` means that the format has neither chunks nor filters. `variables` has no entry for a usual
    variable, which is contiguous and has the type of its Zarr array. `joined` has the variables that consist of several
    arrays.
    """

    types: Mapping[str, AttributeType] = field(default_factory=dict)
    notes: AttributeNotes = NO_NOTES
    unlimited: tuple[str, ...] = ()
    is_classic: bool = False
    variables: Mapping[str, VariableRecord] = field(default_factory=dict)
    joined: Mapping[str, JoinedVariable] = field(default_factory=dict)

    def variable(self, name: str) -> VariableRecord:
        """Return the record of a variable; the usual one if it has no entry."""
        return self.variables.get(name, _USUAL_RECORD)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupNode:
    """A group. `record` is None if nothing is known beyond the attributes, as in references that others wrote."""

    attributes: Mapping[str, Json]
    record: GroupRecord | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Hierarchy:
    """Nodes by path, parents before children; the root is "/". Manifests refer to `urls` by number.

    `problems` lists what is left out. `warnings` lists what is included but has lost something.
    """

    nodes: Mapping[str, GroupNode | ArrayNode]
    urls: Sequence[str]
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()

    def __repr__(self) -> str:
        # Without the URLs: those of foreign references may be signed.
        return f"<Hierarchy: {counted(len(self.nodes), 'node')}, {counted(len(self.problems), 'problem')}>"

    def record_of(self, path: str) -> VariableRecord | None:
        """Return the record of the array at `path`; None if its group has none."""
        parent, _, name = path.rpartition("/")
        group = self.nodes.get(parent or "/")
        if not isinstance(group, GroupNode) or group.record is None:
            return None
        return group.record.variable(name)
