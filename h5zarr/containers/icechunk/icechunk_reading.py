"""Read a snapshot of any Icechunk repository as a `Hierarchy`.

Icechunk's store returns metadata unchanged. Icechunk 2 lists the locations of chunks; for version 1, h5zarr reads the
manifests, which are specified. Chunks that the repository itself holds become inline, up to a limit.
"""

from __future__ import annotations

import asyncio
import json
import os
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from h5zarr.containers.chunk_runs import Run
from h5zarr.containers.container import ABSENT, Commit, Content, Output, State
from h5zarr.containers.icechunk.extras import read_sources, restore_nodes
from h5zarr.containers.icechunk.listing import list_chunks
from h5zarr.containers.icechunk.locations import find_location, restore_url
from h5zarr.containers.icechunk.manifest_file import INLINE, NATIVE, VIRTUAL, ListedChunks
from h5zarr.containers.icechunk.storage import Place, ask, find_place, open_to_read, options_of_containers, quiet
from h5zarr.containers.output import output_timeout
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.references import Document, References, assemble, naming_errors
from h5zarr.encode.inlining import Inlining
from h5zarr.errors import (
    H5ZarrError,
    MalformedFile,
    OutputError,
    Problem,
    SourceError,
    SourceGone,
    SourceTimeout,
    WrongOutput,
    WrongSource,
)
from h5zarr.io.location import Location
from h5zarr.io.network import USUAL_NETWORK, NetworkPolicy
from h5zarr.io.source import Identity
from h5zarr.zarr_model.chunk_keys import KeyLayout
from h5zarr.zarr_model.hierarchy import Json

MAIN = "main"
_MOST_HELD_NBYTES = Inlining().total_nbytes
_KEYS = {"name": "default", "configuration": {"separator": "/"}}  # the only one in Icechunk
_AT_ONCE = 64
_NO_REPOSITORY = State(
    Content.OTHER, what="neither an empty directory nor a repository that Icechunk opens", is_replaceable=False
)
_NO_REGION = "Icechunk needs the region of the bucket"
_GIVE_REGION = "Give region=us-east-1, or whichever it is, in {}, or set AWS_REGION."
_UNCHECKED = Problem(
    "/",
    "unchecked",
    "h5zarr did not write this snapshot, so it cannot tell whether the source files have changed since",
    "The package icechunk compares them when it reads; otherwise translate the files again.",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """The content of a snapshot, and the repository's settings for accessing the files, as fsspec options."""

    references: References
    source_options: Mapping[str, Any] = field(repr=False)


def read_icechunk(
    location: Location,
    storage_options: Mapping[str, Any] | None = None,
    at: str | None = None,
    network: NetworkPolicy = USUAL_NETWORK,
) -> Snapshot:
    """Return the content of a snapshot: the newest of the branch `at`, or the one with this tag or identifier.

    The location is icechunk+file:///directory or icechunk+s3://bucket/prefix; `storage_options` are for accessing it.
    Raises SourceError if there is no such repository or snapshot, or if its server does not answer.
    """
    options = dict(storage_options or {})
    with _icechunk_errors(location):
        place = find_place(location)
        if place.directory is not None and not os.path.isdir(place.directory):  # Icechunk would create it
            raise SourceGone(f"{place.shown}: no such directory")
        with quiet(place):
            return _read(place, options, at or MAIN, network.timeout_seconds)


def find_state(output: Output) -> State:
    """Return who wrote the newest snapshot of the branch to write. Its id is the version in its identity.

    A new repository, a new branch and a branch without arrays or groups hold nothing.
    """
    location, branch = output.location, (output.commit or Commit()).branch
    place = find_place(location)
    if place.directory is not None and not os.path.isdir(place.directory):
        return _NO_REPOSITORY if os.path.lexists(place.directory) else ABSENT
    try:
        with _icechunk_errors(location), quiet(place):
            storage = open_to_read(place, output.storage_options or {})
            return ask(place, output.network.timeout_seconds, lambda: _state_of_branch(place, storage, branch))
    except SourceTimeout as error:
        late = error
    except WrongSource:
        remedy = _GIVE_REGION.format("output_options=")
        raise WrongOutput(place.shown, _NO_REGION, remedy=remedy) from None
    except SourceError as error:
        return State(Content.UNKNOWN, what=str(error).removeprefix(f"{place.shown}:").strip())
    raise output_timeout(late, place.shown)


def _state_of_branch(place: Place, storage: Any, branch: str) -> State:
    import icechunk

    if not icechunk.Repository.exists(storage):
        return _NO_REPOSITORY if place.directory is not None and os.listdir(place.directory) else ABSENT
    repository = icechunk.Repository.open(storage)
    if branch not in repository.list_branches():
        return ABSENT
    return state_of(repository, repository.readonly_session(branch))


def state_of(repository: Any, session: Any) -> State:
    """Return who wrote the snapshot of a session, and from which files."""
    from zarr.core.sync import sync

    identity = Identity(nbytes=0, version=session.snapshot_id)
    if not sync(_has_content(session.store)):
        return State(Content.NOTHING, identity)
    own_metadata = (repository.lookup_snapshot(session.snapshot_id).metadata or {}).get("h5zarr")
    if not isinstance(own_metadata, dict):
        return State(Content.OTHER, identity, what="a branch that h5zarr did not write", sources=())
    return State(Content.OWN, identity, sources=read_sources(own_metadata))


async def _has_content(store: Any) -> bool:
    """Return whether a snapshot has anything besides an empty root group."""
    root = await _get(store, "zarr.json")
    if root is not None and json.loads(root).get("attributes"):
        return True
    return any([name != "zarr.json" async for name in store.list_dir("")])


def _read(place: Place, options: Mapping[str, Any], at: str, timeout_seconds: float) -> Snapshot:
    from zarr.core.sync import sync

    storage = open_to_read(place, options)
    repository, session = ask(place, timeout_seconds, lambda: _open_session(storage, at, place))
    own_metadata = (repository.lookup_snapshot(session.snapshot_id).metadata or {}).get("h5zarr")
    with naming_errors(place.shown):
        provenance = None if own_metadata is None else Provenance.from_json(own_metadata)
        nodes: dict[str, Json] = sync(_read_nodes(session.store))
        arrays = [path for path, metadata in nodes.items() if metadata.get("node_type") == "array"]
        listed = list_chunks(repository, session, arrays, place, options)
        reading = _Reading(restore_nodes(nodes, own_metadata), listed, provenance)
        sync(reading.hold(session.store))
        return Snapshot(references=reading.finish(), source_options=options_of_containers(repository.config))


def _open_session(storage: Any, at: str, place: Place) -> tuple[Any, Any]:
    """Return a repository, and a session on the branch, tag or snapshot of this name."""
    import icechunk

    repository = icechunk.Repository.open(storage)
    if at in repository.list_branches():
        return repository, repository.readonly_session(at)
    if at in repository.list_tags():
        return repository, repository.readonly_session(tag=at)
    try:
        return repository, repository.readonly_session(snapshot_id=at)
    except Exception:
        known = ", ".join(sorted({*repository.list_branches(), *repository.list_tags()}))
        what = f"{place.shown}: no branch, tag or snapshot is named {at!r}"
        raise SourceGone(what, remedy=f"Known names: {known}.") from None


async def _read_nodes(store: Any) -> dict[str, Json]:
    """Return the metadata of all nodes, by path, groups before their members."""
    root = await _get(store, "zarr.json")
    found = {"/": {"zarr_format": 3, "node_type": "group"} if root is None else json.loads(root)}
    level = ["/"]
    while level:
        inside = []
        for path in level:
            above = path.rstrip("/")
            inside += [f"{above}/{name}" async for name in store.list_dir(above[1:]) if name != "zarr.json"]
        texts = await _get_all(store, [f"{path[1:]}/zarr.json" for path in inside])
        documents = {path: json.loads(text) for path, text in zip(inside, texts, strict=True) if text is not None}
        found |= documents
        level = [path for path, metadata in documents.items() if metadata.get("node_type") == "group"]
    return found


async def _get_all(store: Any, keys: Sequence[str]) -> list[bytes | None]:
    """Return the values of keys, requested concurrently."""
    found: list[bytes | None] = []
    for first in range(0, len(keys), _AT_ONCE):
        found += await asyncio.gather(*(_get(store, key) for key in keys[first : first + _AT_ONCE]))
    return found


async def _get(store: Any, key: str) -> bytes | None:
    from zarr.core.buffer import default_buffer_prototype

    found = await store.get(key, default_buffer_prototype())
    return None if found is None else bytes(found.to_bytes())


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
        room = _MOST_HELD_NBYTES
        for path, chunks in self._listed.items():
            native = np.flatnonzero(chunks.kind == NATIVE)
            nbytes = int(chunks.nbytes[native].sum())
            if nbytes > room:
                del self._nodes[path]
                self._problems.append(_too_large(path, nbytes))
                continue
            room -= nbytes
            keys = [_key(path, index) for index in chunks.index[native].tolist()]
            contents = dict(zip(keys, await _get_all(store, keys), strict=True))
            inline = np.flatnonzero(chunks.kind == INLINE).tolist()
            contents |= {_key(path, chunks.index[row].tolist()): chunks.inline[row] for row in inline}
            if lost := next((key for key, content in contents.items() if content is None), None):
                raise MalformedFile(f"{lost}: a chunk is missing in the repository")
            self._held |= {key: "base64:" + b64encode(content or b"").decode() for key, content in contents.items()}

    def finish(self) -> References:
        """Return the references."""
        entries: dict[str, Json] = {}
        for path, metadata in self._nodes.items():
            zarr_json = {**metadata, "chunk_key_encoding": _KEYS} if path in self._listed else metadata
            entries[f"{path}/zarr.json".lstrip("/")] = zarr_json
        runs = tuple(self._run(path) for path in self._listed if path in self._nodes)
        document = Document(
            entries={**entries, **self._held},
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


def _too_large(path: str, nbytes: int) -> Problem:
    what = f"the repository itself holds {nbytes} bytes of it, which are too many to inline in references"
    return Problem(path, "too large", what, "Read it with the package icechunk, and xarray's engine zarr.")


@contextmanager
def _icechunk_errors(location: Location) -> Iterator[None]:
    """Turn Icechunk's exceptions into a SourceError, which does not chain them."""
    failure: SourceError | None = None
    try:
        yield
    except OutputError as error:
        failure = SourceError(str(error), remedy=error.remedy)
    except H5ZarrError:
        raise
    except Exception as error:
        failure = _describe(error, location)
    if failure is not None:
        raise failure


def _describe(error: Exception, location: Location) -> SourceError:
    """Return what went wrong; for a remote repository without the exception's text, which may quote a key."""
    if "region must be set" in str(error):
        return WrongSource(f"{location}: {_NO_REGION}", remedy=_GIVE_REGION.format("storage_options="))
    is_local = location.text.lower().startswith(("icechunk+file", "icechunk+local"))
    lines = [line.strip(" x|`->") for line in str(error).splitlines()] if is_local else []
    reason = next((line for line in lines if line), type(error).__name__)
    kind = SourceGone if "exist" in reason or "NotFound" in reason else SourceError
    return kind(f"{location}: Icechunk could not read it ({reason})")
