"""`engine="h5zarr"` for xarray. It opens references, HDF5 and netCDF files as xarray's netCDF engine shows them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from warnings import warn

from xarray.backends.common import BackendEntrypoint

from h5zarr.containers.container import Content, Output
from h5zarr.containers.registry import container_of
from h5zarr.encode.encode import FILL_VALUE_KIND, WITHHELD_KIND
from h5zarr.engine.datastore import HierarchyDataStore
from h5zarr.engine.decoding import decode_dataset
from h5zarr.engine.values import open_values
from h5zarr.errors import ProblemWarning
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.opening import Opened, open_hierarchy
from h5zarr.zarr_model.hierarchy import GroupNode
from h5zarr.zarr_model.joined import is_part

if TYPE_CHECKING:
    from xarray import Dataset, DataTree


class H5ZarrBackendEntrypoint(BackendEntrypoint):
    """Opens references, or scans HDF5 and netCDF files, at a local path or any fsspec URL.

    `verify`, `at`, `storage_options`, `anon`, `network`, `limits` and `allow` are those of `h5zarr.open_store`. A
    `ProblemWarning` names each variable that is left out.
    """

    description = "Open HDF5 and netCDF files, and references to them, local or remote, without a copy"
    supports_groups = True
    open_dataset_parameters = (
        *("filename_or_obj", "mask_and_scale", "decode_times", "concat_characters", "decode_coords"),
        *("drop_variables", "use_cftime", "decode_timedelta", "group", "verify", "at", "storage_options", "anon"),
        *("network", "limits", "allow"),
    )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Return whether these are local references that h5zarr wrote. Other files have their own engines."""
        if not isinstance(filename_or_obj, str | os.PathLike):
            return False
        path = Location.parse(filename_or_obj).path
        if path is None:
            return False
        location = Location.parse(path)
        container = container_of(location)
        return container is not None and container.state(Output(location=location), briefly=True).content is Content.OWN

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
        verify: bool = True,
        at: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        anon: bool = False,
        network: Mapping[str, float] | None = None,
        limits: Mapping[str, int] | None = None,
        allow: Sequence[str] = (),
    ) -> Dataset:
        """Open references, or an HDF5 or netCDF file. Users call `xarray.open_dataset(place, engine="h5zarr")`.

        Parameters
        ----------
        filename_or_obj
            A path or any URL that fsspec opens.
        mask_and_scale, decode_times, concat_characters, decode_coords, drop_variables, use_cftime, decode_timedelta
            How xarray decodes values, as in `xarray.open_dataset`.
        group
            The group to open, by default the root.
        verify, at, storage_options, anon, network, limits, allow
            How to open it, as in `h5zarr.open_store`.

        Returns
        -------
        Dataset
            The Dataset that xarray's netCDF engine shows. A `ProblemWarning` names what cannot be shown.

        Raises
        ------
        H5ZarrError
            Nothing can be read.

        Examples
        --------
        >>> import h5zarr, xarray
        >>> _ = h5zarr.translate("ocean.nc", "ocean.json")
        >>> dict(xarray.open_dataset("ocean.json", engine="h5zarr").sizes)
        {'time': 18, 'lat': 40, 'lon': 120}
        """
        opened = _open(
            filename_or_obj,
            "/" + (group or "").strip("/"),
            verify=verify,
            at=at,
            storage_options=storage_options,
            anon=anon,
            network=network,
            limits=limits,
            allow=allow,
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
        verify: bool = True,
        at: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        anon: bool = False,
        network: Mapping[str, float] | None = None,
        limits: Mapping[str, int] | None = None,
        allow: Sequence[str] = (),
        **decoding: Any,
    ) -> dict[str, Dataset]:
        top = "/" + (group or "").strip("/")
        opened = _open(
            filename_or_obj,
            top,
            is_deep=True,
            verify=verify,
            at=at,
            storage_options=storage_options,
            anon=anon,
            network=network,
            limits=limits,
            allow=allow,
        )
        inside = top.rstrip("/") + "/"
        found: dict[str, Dataset] = {}
        for path, node in opened.hierarchy.nodes.items():
            if isinstance(node, GroupNode) and (path == top or path.startswith(inside)) and not is_part(path):
                # Paths are relative to the requested group.
                found["/" + path.removeprefix(top).strip("/")] = _open_group(opened, path, decoding)
        if not found:
            _open_group(opened, top, decoding)  # for its error
        return found

    def open_datatree(
        self,
        filename_or_obj: Any,
        *,
        verify: bool = True,
        at: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        anon: bool = False,
        network: Mapping[str, float] | None = None,
        limits: Mapping[str, int] | None = None,
        allow: Sequence[str] = (),
        **options: Any,
    ) -> DataTree:
        from xarray import DataTree

        opened = _open(
            filename_or_obj,
            "/" + (options.get("group") or "").strip("/"),
            is_deep=True,
            verify=verify,
            at=at,
            storage_options=storage_options,
            anon=anon,
            network=network,
            limits=limits,
            allow=allow,
        )
        try:
            tree = DataTree.from_dict(self.open_groups_as_dict(opened, **options))
        except BaseException:
            opened.close()
            raise
        tree.set_close(opened.close)
        return tree


def _open(place: Any, group: str, *, is_deep: bool = False, **chosen: Any) -> Opened:
    if isinstance(place, Opened):
        return place
    if not isinstance(place, str | os.PathLike):
        raise TypeError(f'engine="h5zarr" opens paths and URLs, not {type(place).__name__}')
    verify, at = chosen.pop("verify"), chosen.pop("at")
    opened = open_hierarchy(place, Access.from_options(**chosen), verify=verify, at=at, group=group, is_deep=is_deep)
    # Warn at the line that calls xarray. The engine restores fill values from the record, so they need no warning.
    opened.warn(stacklevel=4, but=(FILL_VALUE_KIND, WITHHELD_KIND))
    return opened


def _open_group(opened: Opened, group: str, decoding: Mapping[str, Any]) -> Dataset:
    dropped = decoding.get("drop_variables") or ()
    store = HierarchyDataStore(
        opened.hierarchy,
        group,
        partial(open_values, opened),
        opened.source,
        opened.close,
        (dropped,) if isinstance(dropped, str) else tuple(dropped),
    )
    dataset, problems = decode_dataset(store, group, {**decoding, "drop_variables": dropped})
    for problem in (*store.problems, *problems):
        warn(f"{opened.url}:{problem}. {problem.remedy}".rstrip(), ProblemWarning, stacklevel=4)
    if Location.parse(opened.url).path is None:
        # Otherwise xarray stores the URL as it was given, including any secrets.
        dataset.encoding["source"] = opened.url
    return dataset
