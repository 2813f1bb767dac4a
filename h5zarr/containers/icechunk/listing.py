"""List the chunks of each array in a snapshot, in the way that the installed version of Icechunk offers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from h5zarr.containers.icechunk.manifest_file import ListedChunks, decode_manifest, join_rows, number_locations
from h5zarr.containers.icechunk.storage import Place, fsspec_options
from h5zarr.errors import MalformedFile
from h5zarr.io.access import Access
from h5zarr.io.ranges import open_ranges

_AT_ONCE = 16
_MOST = np.iinfo(np.int64).max


def list_chunks(
    repository: Any, session: Any, arrays: Sequence[str], place: Place, options: Mapping[str, Any]
) -> dict[str, ListedChunks]:
    """Return the chunks of each array that has any, by path."""
    if hasattr(session.store, "array_chunk_iterator"):
        from zarr.core.sync import sync

        found: dict[str, ListedChunks] = sync(_ask(session.store, arrays))
        return found
    return _read_manifests(repository, session, arrays, place, options)


async def _ask(store: Any, arrays: Sequence[str]) -> dict[str, ListedChunks]:
    """Return the chunks from Icechunk 2."""
    found = {}
    for path in arrays:
        parts = [_from_batch(batch) async for batch in store.array_chunk_iterator(path)]
        if parts:
            found[path] = join_rows(parts)
    return found


def _from_batch(batch: tuple[Any, ...]) -> ListedChunks:
    index, kind, locations, address, nbytes, inline = batch
    if any(len(column) and int(column.max()) > _MOST for column in (address, nbytes)):
        raise MalformedFile("a reference needs more than 63 bits")
    urls, source = number_locations(locations)
    return ListedChunks(
        index=index.astype(np.int64),
        kind=kind,
        address=address.astype(np.int64),
        nbytes=nbytes.astype(np.int64),
        source=source,
        urls=urls,
        inline=inline,
    )


def _read_manifests(
    repository: Any, session: Any, arrays: Sequence[str], place: Place, options: Mapping[str, Any]
) -> dict[str, ListedChunks]:
    """Return the chunks from the manifests, for Icechunk 1."""
    snapshot = repository.inspect_snapshot(session.snapshot_id)
    nodes = {node["path"]: node for node in (snapshot if isinstance(snapshot, dict) else json.loads(snapshot))["nodes"]}
    needed = {
        path: [reference["id"] for reference in nodes[path].get("manifest_refs") or ()]
        for path in arrays
        if path in nodes
    }
    names = list(dict.fromkeys(name for each in needed.values() for name in each))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        contents = list(pool.map(lambda name: _read_manifest(name, place, options), names))
    decoded = {
        name: decode_manifest(content, f"manifest {name}") for name, content in zip(names, contents, strict=True)
    }
    found = {}
    for path, manifests in needed.items():
        identifier = nodes[path]["id"]
        parts = [decoded[name][identifier] for name in manifests if identifier in decoded[name]]
        if parts:
            found[path] = join_rows(parts)
    return found


def _read_manifest(name: str, place: Place, options: Mapping[str, Any]) -> bytes:
    if place.directory is not None:
        return open_ranges(os.path.join(place.directory, "manifests", name)).read_whole()
    inside = f"{place.bucket}/{place.prefix}".rstrip("/")
    return open_ranges(f"s3://{inside}/manifests/{name}", Access(storage_options=fsspec_options(options))).read_whole()
