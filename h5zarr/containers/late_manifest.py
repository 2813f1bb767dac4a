"""A manifest that is read on first use, so that opening many arrays costs nothing for those never read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.zarr_model.hierarchy import ChunkLocations, Manifest, RecordTotals

Load: TypeAlias = Callable[[Sequence[int] | None], Sequence[Manifest]]
"""Reads the manifest of each of these records; for None, one manifest with all chunks."""

LoadStored: TypeAlias = Callable[[int], bytes]
"""Returns a record as it is stored."""


@dataclass(frozen=True, slots=True)
class KnownRecords:
    """What is known about records without reading them.

    `totals` has no empty records. `token` identifies the state of the container. `load_stored` returns a record for
    copying, if its container keeps records in files.
    """

    totals: Mapping[int, RecordTotals]
    token: str
    load_stored: LoadStored | None = None


class LateManifest:
    """`ChunkLocations` that call `load` for all columns when the first one is used, or for some records only.

    Pickling does not load it. If two threads use it at the same time, both load it, with the same result.
    """

    __slots__ = ("_found", "_load", "_record_size", "known")

    def __init__(self, load: Load, record_size: int, known: KnownRecords | None = None) -> None:
        self._load = load
        self._record_size = record_size
        self._found: Manifest | None = None
        self.known = known

    def _manifest(self) -> Manifest:
        found = self._found
        if found is None:
            (found,) = self._load(None)
            if self.known is not None and (found.count, len(found.inline)) != (self.count, self.inline_count):
                raise MalformedFile("there are more chunks, or fewer, than recorded")
            self._found = found
        return found

    @property
    def index(self) -> npt.NDArray[np.int64]:
        return self._manifest().index

    @property
    def address(self) -> npt.NDArray[np.int64]:
        return self._manifest().address

    @property
    def nbytes(self) -> npt.NDArray[np.int64]:
        return self._manifest().nbytes

    @property
    def source(self) -> int | npt.NDArray[np.int32]:
        return self._manifest().source

    @property
    def inline(self) -> Mapping[tuple[int, ...], bytes]:
        return {} if self.inline_count == 0 else self._manifest().inline

    @property
    def inline_count(self) -> int:
        return self._manifest().inline_count if self.known is None else self._sum().inline_count

    @property
    def count(self) -> int:
        return self._manifest().count if self.known is None else self._sum().count

    @property
    def referenced_nbytes(self) -> int:
        return self._manifest().referenced_nbytes if self.known is None else self._sum().nbytes

    def _sum(self) -> RecordTotals:
        assert self.known is not None
        return sum(self.known.totals.values(), RecordTotals())

    @property
    def record_size(self) -> int | None:
        return self._record_size if self._found is None else None

    @property
    def state(self) -> str | None:
        return None if self.known is None else self.known.token

    @property
    def totals(self) -> Mapping[int, RecordTotals] | None:
        return None if self.known is None else self.known.totals

    def read_records(self, numbers: Sequence[int]) -> Sequence[Manifest]:
        found = self._load(numbers)
        if self.known is not None:
            for number, one in zip(numbers, found, strict=True):
                totals = self.known.totals.get(number, RecordTotals())
                if (one.count, one.inline_count) != (totals.count, totals.inline_count):
                    raise MalformedFile("a record has more chunks, or fewer, than recorded")
        return found

    def slabs(self) -> Iterator[ChunkLocations]:
        if self.known is None or self._found is not None:
            yield self._manifest()
            return
        for number in sorted(self.known.totals):
            yield self.read_records([number])[0]

    def __reduce__(self) -> Any:
        return LateManifest, (self._load, self._record_size, self.known)

    def __repr__(self) -> str:
        return "<LateManifest, not read yet>" if self._found is None else repr(self._found)
