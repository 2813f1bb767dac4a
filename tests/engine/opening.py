"""References opened as the engine opens them, over zarr."""

from __future__ import annotations

from typing import Any

import xarray as xr
import zarr
from xarray.backends.store import StoreBackendEntrypoint

from h5zarr.engine.datastore import HierarchyDataStore
from h5zarr.translating import Translation
from tests.roundtrip.reading import open_group


class ZarrValues:
    """An array of zarr, read along each axis by itself. What was read is kept: the tests ask for it twice."""

    def __init__(self, array: zarr.Array) -> None:
        self._array = array
        self._known: dict[str, Any] = {}
        self.shape, self.dtype = array.shape, array.dtype

    def __getitem__(self, key: tuple[Any, ...]) -> Any:
        if repr(key) not in self._known:
            self._known[repr(key)] = self._array.oindex[key] if key else self._array[...]
        return self._known[repr(key)]


class Opened:
    """A translation, whose groups can be opened as datasets."""

    def __init__(self, translation: Translation, source: str) -> None:
        self._translation, self._source = translation, source
        self._root = open_group(translation)
        self._opened: dict[str, ZarrValues] = {}

    def open(self, group: str, **options: Any) -> xr.Dataset:
        store = HierarchyDataStore(self._translation.hierarchy, group, self._values, self._source)
        return StoreBackendEntrypoint().open_dataset(store, **options)

    def _values(self, path: str) -> ZarrValues:
        if path not in self._opened:
            array = self._root[path.strip("/")]
            assert isinstance(array, zarr.Array)
            self._opened[path] = ZarrValues(array)
        return self._opened[path]
