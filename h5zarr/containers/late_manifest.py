"""A manifest that is read on first use, so that opening many arrays costs nothing for those never read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.zarr_model.hierarchy import Manifest

Load: TypeAlias = Callable[[Sequence[int] | None], Sequence[Manifest]]
"""Reads the manifest of each of these records; for None, one manifest with all chunks."""


class LateManifest:
    """`ChunkLocations` that call `load` for all columns when the first one is used, or for some records only.

    Pickling does not load it. If two threads use it at the same time, both load it, with the same result.
    """

    __slots__ = ("_found", "_load", "_record_size")

    def __init__(self, load: Load, record_size: int) -> None:
        self._load = load
        self._record_size = record_size
        self._found: Manifest | None = None

    def _manifest(self) -> Manifest:
        found = self._found
        if found is None:
            (found,) = self._load(None)
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
        return self._manifest().inline

    @property
    def count(self) -> int:
        return self._manifest().count

    @property
    def record_size(self) -> int | None:
        return self._record_size if self._found is None else None

    def read_records(self, numbers: Sequence[int]) -> Sequence[Manifest]:
        return self._load(numbers)

    def __reduce__(self) -> Any:
        return LateManifest, (self._load, self._record_size)

    def __repr__(self) -> str:
        return "<LateManifest, not read yet>" if self._found is None else repr(self._found)
