"""Read a snapshot of any Icechunk repository as a `Hierarchy`.

Icechunk's store returns metadata unchanged. The chunks of snapshots that h5zarr wrote are located when they are used;
those of other tools are listed at once. Chunks that the repository itself holds become inline, up to a limit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from h5zarr.containers.container import ABSENT, Commit, Content, Output, State
from h5zarr.containers.icechunk.extras import encode_entries, read_sources, read_urls, restore_nodes
from h5zarr.containers.icechunk.late_arrays import LateArrays, RepositoryFiles, find_manifests
from h5zarr.containers.icechunk.listing import read_listed
from h5zarr.containers.icechunk.storage import (
    Place,
    ask,
    find_place,
    fsspec_options,
    open_to_read,
    options_of_containers,
    quiet,
)
from h5zarr.containers.icechunk.store_keys import has_content, read_nodes
from h5zarr.containers.icechunk.stored_files import GROUP, block_names, find_files, read_source_names
from h5zarr.containers.output import output_timeout
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.references import Document, References, assemble, naming_errors
from h5zarr.errors import (
    H5ZarrError,
    OutputError,
    SourceError,
    SourceGone,
    SourceTimeout,
    WrongOutput,
    WrongSource,
)
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.io.source import Identity
from h5zarr.read.sources import Sources
from h5zarr.zarr_model.hierarchy import Json

MAIN = "main"
_KEYS = {"name": "default", "configuration": {"separator": "/"}}  # the only one in Icechunk
_NO_REPOSITORY = State(
    Content.OTHER, what="neither an empty directory nor a repository that Icechunk opens", is_replaceable=False
)
_NO_REGION = "Icechunk needs the region of the bucket"
_GIVE_REGION = "Give region=us-east-1, or whichever it is, in {}, or set AWS_REGION."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """The content of a snapshot, and the repository's settings for accessing the files, as fsspec options.

    `blocks` are the names of the blocks with the files of a large cube.
    """

    references: References
    blocks: Sequence[str] = ()
    source_options: Mapping[str, Any] = field(repr=False)


def read_icechunk(
    location: Location,
    storage_options: Mapping[str, Any] | None = None,
    at: str | None = None,
    sources: Sources | None = None,
) -> Snapshot:
    """Return the content of a snapshot: the newest of the branch `at`, or the one with this tag or identifier.

    The location is icechunk+file:///directory or icechunk+s3://bucket/prefix; `storage_options` are for accessing it.
    `sources` keep the connections for reading the rest later.
    Raises SourceError if there is no such repository or snapshot, or if its server does not answer.
    """
    options = dict(storage_options or {})
    with _icechunk_errors(location):
        place = find_place(location)
        if place.directory is not None and not os.path.isdir(place.directory):  # Icechunk would create it
            raise SourceGone(f"{place.shown}: no such directory")
        with quiet(place):
            return _read(place, options, at or MAIN, sources or Sources(urls=()))


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
    if not sync(has_content(session.store)):
        return State(Content.NOTHING, identity)
    own_metadata = (repository.lookup_snapshot(session.snapshot_id).metadata or {}).get("h5zarr")
    if not isinstance(own_metadata, dict):
        return State(Content.OTHER, identity, what="a branch that h5zarr did not write", sources=())
    is_table = "files" in own_metadata
    sources = read_source_names(session, own_metadata) if is_table else read_sources(own_metadata)
    return State(Content.OWN, identity, sources=sources)


def _read(place: Place, options: Mapping[str, Any], at: str, sources: Sources) -> Snapshot:
    from zarr.core.sync import sync

    storage = open_to_read(place, options)
    network = sources.access.network
    repository, session = ask(place, network.timeout_seconds, lambda: _open_session(storage, at, place))
    # The function that is not asynchronous blocks all threads while it waits for the server.
    snapshot = sync(repository.inspect_snapshot_async(session.snapshot_id))
    snapshot = snapshot if isinstance(snapshot, dict) else json.loads(snapshot)
    own_metadata: Json = (snapshot["metadata"] or {}).get("h5zarr")
    has_table = isinstance(own_metadata, dict) and "files" in own_metadata
    stored = sync(read_nodes(session.store, GROUP if has_table else ""))
    access = Access(storage_options=fsspec_options(options), network=network)
    files = RepositoryFiles(place, replace(sources, access=access))
    with naming_errors(place.shown):
        provenance = None if own_metadata is None else Provenance.from_json(own_metadata)
        manifests = find_manifests(snapshot)
        late = None
        if provenance is not None and has_table:
            provenance, urls, late = find_files(own_metadata["files"], provenance, manifests, files)
        else:
            urls = read_urls(own_metadata)
        manifests = {path: one for path, one in manifests.items() if path in stored}
        nodes = _with_keys(restore_nodes(stored, own_metadata), manifests)
        if provenance is not None and urls is not None:
            totals = own_metadata.get("totals")
            arrays = LateArrays(
                manifests=manifests, files=files, urls=urls, totals=totals or {}, snapshot=session.snapshot_id
            )
            references = replace(_read_late(nodes, provenance, arrays), late=late)
        else:
            references = read_listed(session, nodes, provenance, manifests, files)
    blocks = block_names(own_metadata)
    return Snapshot(references=references, source_options=options_of_containers(repository.config), blocks=blocks)


def _with_keys(nodes: Mapping[str, Json], manifests: Collection[str]) -> dict[str, Json]:
    """Return metadata by path, with the only chunk keys of Icechunk in arrays that have chunks."""
    return {path: {**one, "chunk_key_encoding": _KEYS} if path in manifests else one for path, one in nodes.items()}


def _read_late(nodes: Mapping[str, Json], provenance: Provenance, arrays: LateArrays) -> References:
    """Return the references that h5zarr wrote. Their chunks are located when they are used."""
    without_files = replace(provenance, sources=())
    found = assemble(Document(entries=encode_entries(nodes), provenance=without_files))
    made = {**found.hierarchy.nodes, **arrays.locate(found.hierarchy.nodes)}
    hierarchy = replace(found.hierarchy, nodes=made, urls=arrays.urls)
    return replace(found, hierarchy=hierarchy, provenance=provenance)


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
