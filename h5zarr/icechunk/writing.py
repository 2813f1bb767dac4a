"""A `Hierarchy` written into an Icechunk repository: one snapshot, or none.

A repository that is new and local is made beside its place and then moved there. In one that is there already, nobody
sees what is written before it is committed. Icechunk is given the Zarr version 3 metadata as they are.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from h5zarr.errors import H5ZarrError, OutputError
from h5zarr.hierarchy import ArrayNode, Hierarchy, Json
from h5zarr.icechunk.extras import encode_extras
from h5zarr.icechunk.locations import Located, locate_sources, prefixes_of
from h5zarr.icechunk.manifests import lay_out
from h5zarr.icechunk.numbers import find_odd, spell_out
from h5zarr.icechunk.references import set_references
from h5zarr.icechunk.storage import Place, container_store, find_place, load_icechunk, open_storage, quiet
from h5zarr.io.reference_url import hide_secrets
from h5zarr.io.url import display_url
from h5zarr.refs.chunk_keys import KeyLayout
from h5zarr.refs.container import dump
from h5zarr.refs.json_v3 import encode_metadata_v3
from h5zarr.refs.provenance import Provenance

MAIN = "main"


def write_icechunk(
    hierarchy: Hierarchy,
    provenance: Provenance,
    url: str,
    *,
    branch: str = MAIN,
    message: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    source_options: Mapping[str, Any] | None = None,
) -> str:
    """Write `hierarchy` as a new snapshot of a branch, in the place of what the branch held. Return the snapshot's id.

    `url` is icechunk+file:///directory or icechunk+s3://bucket/prefix; a repository or a branch that is not there is
    made. `storage_options` say how to reach the repository, in fsspec's words or Icechunk's. Those of the sources tell
    how readers reach them: what is no secret of them is kept in the repository. Raises OutputError, and then the branch
    is what it was.
    """
    place = find_place(url)
    words = find_odd(hierarchy)
    hierarchy, _ = spell_out(hierarchy)
    located = locate_sources(hierarchy, provenance, place.shown)
    told = {**provenance.to_json(), **encode_extras(hierarchy.nodes, words)}
    writer = _Writer(hierarchy, told, place, located, source_options or {})
    with quiet(place), _opened(place, storage_options or {}) as repository:
        return writer.write(repository, branch, message or _message(provenance))


def _message(provenance: Provenance) -> str:
    """Return what is said of a snapshot where the user says nothing."""
    source = provenance.sources[0].url if provenance.sources else "nothing"
    return f"h5zarr {provenance.version}: {display_url(hide_secrets(source))}"


class _Writer:
    """What is to be written, and what the snapshot tells of itself. `place` is where, for errors."""

    def __init__(
        self,
        hierarchy: Hierarchy,
        told: Json,
        place: Place,
        located: Mapping[int, Located],
        source_options: Mapping[str, Any],
    ) -> None:
        self._hierarchy = hierarchy
        self._told = told
        self._place = place
        self._located = located
        self._source_options = source_options

    def write(self, repository: Any, branch: str, message: str) -> str:
        """Commit one snapshot to a branch. Return its id."""
        repository, is_changed = self._with_containers(repository)
        with _branch(repository, branch, self._place):
            with _told(self._place):
                session = self._with_layout(repository).writable_session(branch)
                session.store.sync_clear()
            self._fill(session.store)
            with _told(self._place):
                # Before the commit: a snapshot without its containers cannot be read.
                if is_changed:
                    repository.save_config()
                snapshot: str = session.commit(message, metadata={"h5zarr": self._told})
        return snapshot

    def _with_containers(self, repository: Any) -> tuple[Any, bool]:
        """Return the repository, allowed to refer to all sources, and whether its configuration had to be changed."""
        import icechunk

        with _told(self._place):
            config = repository.config
            known = tuple(config.virtual_chunk_containers or {})
            lacking = prefixes_of(tuple(self._located.values()), known)
            for prefix in lacking:
                store = container_store(prefix, self._source_options)
                config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(prefix, store))
            return (repository.reopen(config=config), True) if lacking else (repository, False)

    def _with_layout(self, repository: Any) -> Any:
        """Return the repository for writing this hierarchy. How it is laid out is not kept in the configuration."""
        config = repository.config
        return repository.reopen(config=config) if lay_out(config, self._hierarchy) else repository

    def _fill(self, store: Any) -> None:
        """Put metadata, inline chunks and references into a store."""
        from zarr.core.sync import sync

        with _told(self._place):
            sync(_set_all(store, self._entries()))
        for path, node in self._hierarchy.nodes.items():
            if isinstance(node, ArrayNode):
                with _told(self._place):
                    set_references(store, path, node.manifest, self._located, self._place.shown)

    def _entries(self) -> Iterator[tuple[str, bytes]]:
        """Yield keys and what stands under them: metadata, then the chunks that are inline."""
        for path, node in self._hierarchy.nodes.items():
            yield f"{path}/zarr.json".lstrip("/"), dump(encode_metadata_v3(node)).encode()
            if isinstance(node, ArrayNode):
                prefix = KeyLayout(path, "c", "/", len(node.shape)).prefix
                for index, content in node.manifest.inline.items():
                    yield prefix + "/".join(map(str, index)), content


async def _set_all(store: Any, entries: Iterator[tuple[str, bytes]]) -> None:
    from zarr.core.buffer import default_buffer_prototype

    make = default_buffer_prototype().buffer.from_bytes
    for key, content in entries:
        await store.set(key, make(content))


@contextmanager
def _opened(place: Place, storage_options: Mapping[str, Any]) -> Iterator[Any]:
    """Give the repository at a place. One that is new and local is there when the context ends without an exception."""
    icechunk = load_icechunk(place.shown)
    if place.directory is not None and not _is_taken(place.directory, place.shown):
        with _made_beside(place.directory, place.shown) as beside:
            with _told(place):
                repository = icechunk.Repository.create(open_storage(place, storage_options, beside))
            yield repository
        return
    with _told(place):
        storage = open_storage(place, storage_options)
        is_local = place.directory is not None
        repository = (icechunk.Repository.open if is_local else icechunk.Repository.open_or_create)(storage)
    yield repository


def _is_taken(directory: str, shown: str) -> bool:
    """Return whether there is something in a directory. Raises OutputError for a file."""
    try:
        return bool(os.listdir(directory))
    except FileNotFoundError:
        return False
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OutputError(shown, f"this is no directory for a repository ({reason})") from None


@contextmanager
def _made_beside(directory: str, shown: str) -> Iterator[str]:
    """Give a new directory that takes the place of `directory` when the context ends without an exception."""
    beside = os.path.join(os.path.dirname(directory), f".h5zarr-{secrets.token_hex(8)}.tmp")
    try:
        os.mkdir(beside)
    except OSError as error:
        what = f"no directory can be made there ({error.strerror or type(error).__name__})"
        raise OutputError(
            shown, what, remedy="Create the directory above it first, and check its permissions."
        ) from None
    try:
        yield beside
        with suppress(FileNotFoundError):
            os.rmdir(directory)  # it was empty
        os.rename(beside, directory)
    except OSError as error:
        what = f"could not be moved there ({error.strerror or type(error).__name__})"
        raise OutputError(shown, what) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def _branch(repository: Any, branch: str, place: Place) -> Iterator[None]:
    """See to it that there is a branch. One that had to be made begins with nothing, and goes if an exception comes."""
    with _told(place):
        is_new = branch not in repository.list_branches()
        if is_new:
            *_, root = repository.ancestry(branch=MAIN)
            repository.create_branch(branch, root.id)
    try:
        yield
    except BaseException:
        if is_new:
            with suppress(Exception):
                repository.delete_branch(branch)
        raise


@contextmanager
def _told(place: Place) -> Iterator[None]:
    """Turn what Icechunk raises into an OutputError, which does not carry it along."""
    failure: OutputError | None = None
    try:
        yield
    except H5ZarrError:
        raise
    except Exception as error:
        failure = _describe(error, place)
    if failure is not None:
        raise failure


def _describe(error: Exception, place: Place) -> OutputError:
    """Return what went wrong; of a remote repository without the exception's text, which may quote a key."""
    name = type(error).__name__
    if name == "ConflictError":
        what = "somebody else has written to the branch in the meantime"
        return OutputError(place.shown, what, remedy="Try again.")
    if place.directory is None:
        remedy = "Check the URL, the credentials and --output-option, then try again."
        return OutputError(place.shown, f"Icechunk could not write there ({name})", remedy=remedy)
    reason = next((line for line in str(error).splitlines() if line.strip(" x|`->")), name).strip(" x|`->")
    remedy = "Give a directory that is new, empty, or a repository that this version of Icechunk opens."
    return OutputError(place.shown, f"Icechunk could not write there: {reason}", remedy=remedy)
