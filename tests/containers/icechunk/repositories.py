"""Open repositories as readers do, with permission to read all referenced files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import zarr

from h5zarr.containers.container import Output
from h5zarr.containers.fitting import fit
from h5zarr.containers.icechunk.icechunk_container import IcechunkContainer
from h5zarr.containers.provenance import Provenance
from h5zarr.io.location import Location
from h5zarr.zarr_model.hierarchy import Hierarchy


def open_repository(storage: Any, credentials: Any = None) -> Any:
    """Return a repository at a path or in a storage; `credentials` are for containers in the cloud."""
    from icechunk import Repository, containers_credentials

    if isinstance(storage, Path):
        storage = local_storage(storage)
    prefixes = Repository.open(storage).config.virtual_chunk_containers or {}
    allowed = containers_credentials({prefix: credentials or access_to(prefix) for prefix in prefixes})
    return Repository.open(storage, authorize_virtual_chunk_access=allowed)


def access_to(prefix: str) -> Any:
    """Return the Icechunk credentials for local files and web servers; version 1 does not have them."""
    from icechunk import credentials

    name = "LocalFileSystemAccess" if prefix.startswith("file://") else "HttpAccess"
    return getattr(credentials, name, None)


def local_storage(directory: Path) -> Any:
    from icechunk import local_filesystem_storage

    return local_filesystem_storage(str(directory))


def open_snapshot(directory: Path, snapshot: str | None = None, branch: str = "main") -> zarr.Group:
    """Return the root group of a snapshot or branch."""
    which = {"branch": branch} if snapshot is None else {"snapshot_id": snapshot}
    return zarr.open_group(open_repository(directory).readonly_session(**which).store, mode="r")


def messages(storage: Any, branch: str = "main") -> list[str]:
    """Return the commit messages of a branch, newest first, without the initial one."""
    return [one.message for one in open_repository(storage).ancestry(branch=branch)][:-1]


def write_icechunk(hierarchy: Hierarchy, provenance: Provenance, url: str) -> None:
    """Fit `hierarchy` to Icechunk, and write it."""
    container = IcechunkContainer()
    container.write(fit(hierarchy, container=container), provenance, Output(location=Location.parse(url)))
