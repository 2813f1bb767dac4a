"""Read the values of an array directly from its chunks, or through zarr if only zarr knows a codec or the type."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import H5ZarrError, MalformedFile
from h5zarr.opening import Opened
from h5zarr.read.decoding import find_decoder
from h5zarr.read.read_arrays import ArrayValues
from h5zarr.zarr_model.hierarchy import ArrayNode


def open_values(opened: Opened, path: str) -> ArrayValues | ZarrValues:
    """Return the values of the array at `path`. Nothing is read yet."""
    node = opened.hierarchy.nodes[path]
    assert isinstance(node, ArrayNode)
    decoder = find_decoder(node, opened.sources.access.limits)
    return ZarrValues(opened, path) if decoder is None else ArrayValues(path, node, decoder, opened.sources)


class ZarrValues:
    """An array that zarr reads, chunk by chunk, through the store."""

    def __init__(self, opened: Opened, path: str) -> None:
        import zarr

        from h5zarr.store import HierarchyStore

        self._opened, self._path = opened, path
        self._array = zarr.open_array(HierarchyStore(opened), path=path.strip("/"), mode="r", zarr_format=3)
        self.shape: tuple[int, ...] = self._array.shape
        self.dtype: np.dtype[Any] = self._array.dtype

    def __reduce__(self) -> Any:
        return ZarrValues, (self._opened, self._path)

    def __getitem__(self, key: tuple[Any, ...]) -> npt.NDArray[Any]:
        try:
            return np.asarray(self._array.oindex[key])
        except (H5ZarrError, IndexError):
            raise
        except Exception as error:  # codecs may raise anything
            raise MalformedFile(f"{self._path}: zarr cannot read it: {type(error).__name__}: {error}") from error
