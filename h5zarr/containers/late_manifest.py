"""A manifest that is read on first use, so that opening many arrays costs nothing for those never read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.zarr_model.hierarchy import Manifest


class LateManifest:
    """`ChunkLocations` that call `load` for all columns when the first one is used.

    Pickling does not load it. If two threads use it at the same time, both load it, with the same result.
    """

    __slots__ = ("_found", "_load")

    def __init__(self, load: Callable[[], Manifest]) -> None:
        self._load = load
        self._found: Manifest | None = None

    def _manifest(self) -> Manifest:
        found = self._found
        if found is None:
            found = self._found = self._load()
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

    def __reduce__(self) -> Any:
        return LateManifest, (self._load,)

    def __repr__(self) -> str:
        return "<LateManifest, not read yet>" if self._found is None else repr(self._found)
