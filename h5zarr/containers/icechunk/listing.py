"""List all chunks of a snapshot that another tool wrote, in the way that the installed version of Icechunk offers.

Such a snapshot does not say which files it refers to, so that all of its chunks are needed to know them.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from h5zarr.containers.chunk_runs import Run
from h5zarr.containers.icechunk import late_arrays
from h5zarr.containers.icechunk.extras import encode_entries
from h5zarr.containers.icechunk.late_arrays import ArrayManifests, RepositoryFiles, too_large
from h5zarr.containers.icechunk.locations import find_location, restore_url
from h5zarr.containers.icechunk.manifest_file import (
    INLINE,
    NATIVE,
    VIRTUAL,
    ListedChunks,
    decode_manifest,
    join_rows,
    number_locations,
)
from h5zarr.containers.icechunk.store_keys import get_all
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.references import Document, References, assemble
from h5zarr.errors import MalformedFile, Problem
from h5zarr.zarr_model.chunk_keys import KeyLayout
from h5zarr.zarr_model.hierarchy import Json

_MOST = np.iinfo(np.int64).max
_UNCHECKED = Problem(
    "/",
    "unchecked",
    "h5zarr did not write this snapshot, so it cannot tell whether the source files have changed since",
    "The package icechunk compares them when it reads; otherwise translate the files again.",
)


def read_listed(
    session: Any,
    nodes: Mapping[str, Json],
    provenance: Provenance | None,
    manifests: Mapping[str, ArrayManifests],
    files: RepositoryFiles,
) -> References:
    """Return the references in a snapshot. `nodes` and `manifests` are by path."""
    from zarr.core.sync import sync

    reading = _Reading(nodes, _list_chunks(session, list(manifests), manifests, files), provenance)
    sync(reading.hold(session.store))
    return reading.finish()


def _list_chunks(
    session: Any, arrays: Sequence[str], manifests: Mapping[str, ArrayManifests], files: RepositoryFiles
) -> dict[str, ListedChunks]:
    """Return the chunks of each array that has any, by path. `manifests` are those of the snapshot."""
    if hasattr(session.store, "array_chunk_iterator"):
        from zarr.core.sync import sync

        found: dict[str, ListedChunks] = sync(_ask(session.store, arrays))
        return found
    return _read_manifests(arrays, manifests, files)


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
    arrays: Sequence[str], manifests: Mapping[str, ArrayManifests], files: RepositoryFiles
) -> dict[str, ListedChunks]:
    """Return the chunks from the manifests, for Icechunk 1."""
    needed = {path: manifests[path] for path in arrays if path in manifests}
    contents = files.read_manifests([part.name for array in needed.values() for part in array.parts])
    decoded = {name: decode_manifest(content, f"manifest {name}") for name, content in contents.items()}
    found = {}
    for path, array in needed.items():
        parts = [decoded[part.name][array.node] for part in array.parts if array.node in decoded[part.name]]
        if parts:
            found[path] = join_rows(parts)
    return found


class _Reading:
    """The content of a snapshot while it is converted to references: metadata and chunks by path."""

    def __init__(
        self, nodes: Mapping[str, Json], listed: Mapping[str, ListedChunks], provenance: Provenance | None
    ) -> None:
        self._provenance = provenance
        self._problems: list[Problem] = []
        self._listed = dict(listed)
        self._nodes = dict(nodes)
        self._held: dict[str, str] = {}
        self._urls = {}
        for source in provenance.sources if provenance is not None else ():
            if (location := find_location(source.url)) is not None:
                self._urls[location] = source.url  # the original URL: several URLs may share a location

    async def hold(self, store: Any) -> None:
        """Add the bytes of all chunks that are inline or in the repository. Arrays with too many bytes are left out."""
        room = late_arrays.MOST_HELD_NBYTES
        for path, chunks in self._listed.items():
            native = np.flatnonzero(chunks.kind == NATIVE)
            nbytes = int(chunks.nbytes[native].sum())
            if nbytes > room:
                del self._nodes[path]
                self._problems.append(too_large(path, nbytes))
                continue
            room -= nbytes
            keys = [_key(path, index) for index in chunks.index[native].tolist()]
            contents = dict(zip(keys, await get_all(store, keys), strict=True))
            inline = np.flatnonzero(chunks.kind == INLINE).tolist()
            contents |= {_key(path, chunks.index[row].tolist()): chunks.inline[row] for row in inline}
            if lost := next((key for key, content in contents.items() if content is None), None):
                raise MalformedFile(f"{lost}: a chunk is missing in the repository")
            self._held |= {key: "base64:" + b64encode(content or b"").decode() for key, content in contents.items()}

    def finish(self) -> References:
        """Return the references."""
        runs = tuple(self._run(path) for path in self._listed if path in self._nodes)
        document = Document(
            entries={**encode_entries(self._nodes), **self._held},
            runs=tuple(run for run in runs if len(run.address)),
            provenance=self._provenance,
        )
        references = assemble(document)
        found = references.hierarchy
        unchecked = (_UNCHECKED,) if self._provenance is None and found.urls else ()
        complete = replace(found, problems=(*found.problems, *self._problems), warnings=(*found.warnings, *unchecked))
        return replace(references, hierarchy=complete)

    def _run(self, path: str) -> Run:
        """Return the locations of the referenced chunks of an array."""
        chunks = self._listed[path]
        rows = np.flatnonzero(chunks.kind == VIRTUAL)
        urls = tuple(self._urls.get(location) or restore_url(location) for location in chunks.urls)
        return Run(
            layout=KeyLayout(path, "c", "/", chunks.index.shape[1]),
            index=chunks.index[rows],
            address=chunks.address[rows],
            nbytes=chunks.nbytes[rows],
            source=chunks.source[rows],
            urls=urls,
        )


def _key(path: str, index: Sequence[int]) -> str:
    prefix = KeyLayout(path, "c", "/", len(index)).prefix
    return prefix + "/".join(map(str, index))
