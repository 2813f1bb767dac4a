"""`engine="h5zarr"` of xarray: reference files, and HDF5 and netCDF files, opened as its netCDF engine shows them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from xarray.backends.common import BackendEntrypoint
from xarray.backends.store import StoreBackendEntrypoint

from h5zarr.encode.encode import FILL_VALUE_KIND
from h5zarr.engine.datastore import HierarchyDataStore
from h5zarr.engine.values import open_values
from h5zarr.hierarchy import GroupNode
from h5zarr.io.url import find_local_path
from h5zarr.limits import USUAL, Limits
from h5zarr.read.opening import Opened, open_hierarchy
from h5zarr.refs.parquet_writing import METADATA, is_own_metadata
from h5zarr.refs.reading import is_own_references

if TYPE_CHECKING:
    from xarray import Dataset, DataTree

    from h5zarr.io.fetch_policy import FetchPolicy

_SNIFFED_NBYTES = 1 << 18  # of a file compressed by zstd, nothing is known before a block of 128 KiB


class H5ZarrBackendEntrypoint(BackendEntrypoint):
    """Opens reference files, and HDF5 and netCDF files, which are scanned on the spot; local or at any fsspec URL.

    `storage_options` are for their file systems; `policy`, an `h5zarr.FetchPolicy`, describes the network; with
    `verify`, a source that is not the one that was translated raises `h5zarr.SourceChanged` when it is first read;
    `at` is the branch, tag or snapshot of an Icechunk repository.
    What cannot be shown is left out, and named in a `ProblemWarning` of `h5zarr.errors`. `allow` has places, paths and
    URLs, below which the input may name other files; `limits`, an `h5zarr.Limits`, bound what it may take.
    """

    description = "Open HDF5 and netCDF files, and references to them, near or far, without a copy"
    supports_groups = True
    open_dataset_parameters = (
        *("filename_or_obj", "mask_and_scale", "decode_times", "concat_characters", "decode_coords"),
        *("drop_variables", "use_cftime", "decode_timedelta", "group", "storage_options", "policy", "verify", "at"),
        *("allow", "limits"),
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Return whether these are references that h5zarr wrote, on this machine: others have their own engines."""
        if not isinstance(filename_or_obj, str | os.PathLike):
            return False
        path = find_local_path(os.fspath(filename_or_obj))
        if path is None:
            return False
        is_own = is_own_references
        if os.path.isdir(path):
            path, is_own = os.path.join(path, METADATA), is_own_metadata
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            return is_own(file.read(_SNIFFED_NBYTES))

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: bool = True,
        decode_times: Any = True,
        concat_characters: bool = True,
        decode_coords: Any = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        policy: FetchPolicy | None = None,
        verify: bool = True,
        at: str | None = None,
        allow: Sequence[str] = (),
        limits: Limits = USUAL,
    ) -> Dataset:
        opened = _open(
            filename_or_obj, storage_options, policy=policy, verify=verify, allow=allow, limits=limits, at=at
        )
        decoding = {
            "mask_and_scale": mask_and_scale,
            "decode_times": decode_times,
            "concat_characters": concat_characters,
            "decode_coords": decode_coords,
            "drop_variables": drop_variables,
            "use_cftime": use_cftime,
            "decode_timedelta": decode_timedelta,
        }
        return _open_group(opened, group or "/", decoding)

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        group: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        policy: FetchPolicy | None = None,
        verify: bool = True,
        at: str | None = None,
        allow: Sequence[str] = (),
        limits: Limits = USUAL,
        **decoding: Any,
    ) -> dict[str, Dataset]:
        opened = _open(
            filename_or_obj, storage_options, policy=policy, verify=verify, allow=allow, limits=limits, at=at
        )
        top = "/" + (group or "").strip("/")
        inside = top.rstrip("/") + "/"
        found: dict[str, Dataset] = {}
        for path, node in opened.hierarchy.nodes.items():
            if isinstance(node, GroupNode) and (path == top or path.startswith(inside)):
                # Below the group that was asked for, paths are relative to it.
                found["/" + path.removeprefix(top).strip("/")] = _open_group(opened, path, decoding)
        if not found:
            _open_group(opened, top, decoding)  # for its error
        return found

    def open_datatree(
        self,
        filename_or_obj: Any,
        *,
        storage_options: Mapping[str, Any] | None = None,
        policy: FetchPolicy | None = None,
        verify: bool = True,
        at: str | None = None,
        allow: Sequence[str] = (),
        limits: Limits = USUAL,
        **options: Any,
    ) -> DataTree:
        from xarray import DataTree

        opened = _open(
            filename_or_obj, storage_options, policy=policy, verify=verify, allow=allow, limits=limits, at=at
        )
        tree = DataTree.from_dict(self.open_groups_as_dict(opened, **options))
        return tree


def _open(place: Any, storage_options: Mapping[str, Any] | None, **chosen: Any) -> Opened:
    if isinstance(place, Opened):
        return place
    if not isinstance(place, str | os.PathLike):
        raise TypeError(f'engine="h5zarr" opens paths and URLs, and not {type(place).__name__}')
    opened = open_hierarchy(place, storage_options=storage_options, **chosen)
    # At the line that calls xarray. A fill value that Zarr cannot have is in the record, and so it is there.
    opened.warn(stacklevel=4, but=(FILL_VALUE_KIND,))
    return opened


def _open_group(opened: Opened, group: str, decoding: Mapping[str, Any]) -> Dataset:
    store = HierarchyDataStore(opened.hierarchy, group, partial(open_values, opened), opened.source, opened.close)
    dataset = StoreBackendEntrypoint().open_dataset(store, **decoding)
    if find_local_path(opened.url) is None:
        # Otherwise xarray puts the URL there as it was given, with all that is secret in it.
        dataset.encoding["source"] = opened.url
    return dataset
