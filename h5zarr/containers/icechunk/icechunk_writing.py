"""Write a `Hierarchy` to an Icechunk repository: one snapshot, or none.

A new local repository is created under a temporary name beside its target and then renamed. In an existing one, nothing
is visible before the commit. Icechunk gets the Zarr version 3 metadata unchanged.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from h5zarr.containers.container import Commit, Fitted, Output, State
from h5zarr.containers.icechunk.extras import encode_extras, find_odd, sources_of, spell_out
from h5zarr.containers.icechunk.icechunk_reading import state_of
from h5zarr.containers.icechunk.locations import Located, locate_sources, prefixes_of
from h5zarr.containers.icechunk.storage import (
    Place,
    ask,
    container_store,
    find_place,
    load_icechunk,
    open_storage,
    quiet,
)
from h5zarr.containers.icechunk.virtual_refs import lay_out, set_references
from h5zarr.containers.output import dump, output_timeout
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.target import check_target
from h5zarr.errors import H5ZarrError, OutputError, SourceTimeout
from h5zarr.io.location import Location
from h5zarr.io.patience import patience
from h5zarr.zarr_model.chunk_keys import KeyLayout
from h5zarr.zarr_model.hierarchy import ArrayNode, Json

MAIN = "main"
_CHUNK_NBYTES = 100  # more than a reference takes in a manifest


def write_icechunk(fitted: Fitted, provenance: Provenance, output: Output) -> str:
    """Write the fitted references as a new snapshot that replaces the content of a branch. Return the snapshot's id.

    The location is icechunk+file:///directory or icechunk+s3://bucket/prefix. A missing repository or branch is
    created. Options may have fsspec's names or Icechunk's. Source options that are not secret are kept in the
    repository, so that readers can access the sources. After an OutputError the branch is unchanged.
    """
    place = find_place(output.location)
    commit = output.commit or Commit()
    words = find_odd(fitted.hierarchy)
    located = locate_sources(fitted.hierarchy, provenance, place.shown)
    sources = sources_of(provenance, fitted.hierarchy)
    own_metadata = {**provenance.to_json(), **encode_extras(fitted.hierarchy.nodes, words)}
    if not provenance.sources:
        own_metadata["urls"] = list(sources)
    writer = _Writer(fitted, words, own_metadata, place, located, output)
    check = partial(check_target, output, sources=sources, is_all=True)
    with quiet(place), _opened(place, output) as repository:
        return writer.write(repository, commit.branch, commit.message or _message(provenance), check)


def _message(provenance: Provenance) -> str:
    """Return the default commit message."""
    source = provenance.sources[0].url if provenance.sources else "nothing"
    shown = Location.parse(Location.parse(source).without_secrets())
    return f"h5zarr {provenance.version}: {shown}"


class _Writer:
    """What to write, and the metadata of the snapshot. `place` is the location, for errors."""

    def __init__(
        self,
        fitted: Fitted,
        words: Mapping[str, Sequence[str]],
        own_metadata: Json,
        place: Place,
        located: Mapping[int, Located],
        output: Output,
    ) -> None:
        self._hierarchy = fitted.hierarchy
        self._nodes = fitted.nodes
        self._words = words
        self._own_metadata = own_metadata
        self._place = place
        self._located = located
        self._source_options = output.source_options or {}
        counts = [node.manifest.count for node in fitted.nodes.values() if node.manifest is not None]
        self._commit_seconds = patience(output.network.timeout_seconds, sum(counts) * _CHUNK_NBYTES)

    def write(self, repository: Any, branch: str, message: str, check: Callable[[State], None]) -> str:
        """Commit one snapshot to a branch. Return its id. `check` raises an OutputError if the branch must stay.

        The commit fails if the branch has changed since the check.
        """
        repository, is_changed = self._with_containers(repository)
        with _branch(repository, branch, self._place):
            with _icechunk_errors(self._place):
                session = self._with_layout(repository).writable_session(branch)
                check(state_of(repository, session))
                session.store.sync_clear()
            self._fill(session.store)
            with _icechunk_errors(self._place):
                # Before the commit: without its containers, a snapshot cannot be read.
                if is_changed:
                    repository.save_config()
                metadata = {"h5zarr": self._own_metadata}
                snapshot: str = ask(
                    self._place, self._commit_seconds, lambda: session.commit(message, metadata=metadata)
                )
        return snapshot

    def _with_containers(self, repository: Any) -> tuple[Any, bool]:
        """Return the repository with a virtual chunk container for each source, and whether that changed it."""
        import icechunk

        with _icechunk_errors(self._place):
            config = repository.config
            known = tuple(config.virtual_chunk_containers or {})
            lacking = prefixes_of(tuple(self._located.values()), known)
            for prefix in lacking:
                store = container_store(prefix, self._source_options)
                config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(prefix, store))
            return (repository.reopen(config=config), True) if lacking else (repository, False)

    def _with_layout(self, repository: Any) -> Any:
        """Return the repository for writing this hierarchy. The manifest layout is not stored in its configuration."""
        config = repository.config
        return repository.reopen(config=config) if lay_out(config, self._hierarchy) else repository

    def _fill(self, store: Any) -> None:
        """Write metadata, inline chunks and references to a store."""
        from zarr.core.sync import sync

        with _icechunk_errors(self._place):
            sync(_set_all(store, self._entries()))
        for path, node in self._hierarchy.nodes.items():
            if isinstance(node, ArrayNode):
                with _icechunk_errors(self._place):
                    set_references(store, path, node.manifest, self._located, self._place.shown)

    def _entries(self) -> Iterator[tuple[str, bytes]]:
        """Yield keys and values: metadata, then the inlined chunks."""
        for path, node in self._nodes.items():
            document = node.documents["zarr.json"]
            if path in self._words:
                document = spell_out(document, self._words[path])
            yield f"{path}/zarr.json".lstrip("/"), dump(document).encode()
            if node.manifest is not None:
                prefix = KeyLayout(path, "c", "/", len(document["shape"])).prefix
                for index, content in node.manifest.inline.items():
                    yield prefix + "/".join(map(str, index)), content


async def _set_all(store: Any, entries: Iterator[tuple[str, bytes]]) -> None:
    from zarr.core.buffer import default_buffer_prototype

    make = default_buffer_prototype().buffer.from_bytes
    for key, content in entries:
        await store.set(key, make(content))


@contextmanager
def _opened(place: Place, output: Output) -> Iterator[Any]:
    """Yield the repository at a location. A new local one appears when the context ends without an exception."""
    icechunk, storage_options = load_icechunk(place.shown), output.storage_options or {}
    if place.directory is not None and not _is_taken(place.directory, place.shown):
        with _made_beside(place.directory, place.shown) as beside:
            with _icechunk_errors(place):
                repository = icechunk.Repository.create(open_storage(place, storage_options, beside))
            yield repository
        return
    with _icechunk_errors(place):
        storage = open_storage(place, storage_options)
        is_local = place.directory is not None
        opener = icechunk.Repository.open if is_local else icechunk.Repository.open_or_create
        repository = ask(place, output.network.timeout_seconds, lambda: opener(storage))
    yield repository


def _is_taken(directory: str, shown: str) -> bool:
    """Return whether a directory has content. Raises OutputError for a file."""
    try:
        return bool(os.listdir(directory))
    except FileNotFoundError:
        return False
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OutputError(shown, f"this cannot be the directory of a repository ({reason})") from None


@contextmanager
def _made_beside(directory: str, shown: str) -> Iterator[str]:
    """Yield a new directory that replaces `directory` when the context ends without an exception."""
    beside = os.path.join(os.path.dirname(directory), f".h5zarr-{secrets.token_hex(8)}.tmp")
    try:
        os.mkdir(beside)
    except OSError as error:
        what = f"no directory can be created there ({error.strerror or type(error).__name__})"
        raise OutputError(shown, what, remedy="Create its parent directory first, and check the permissions.") from None
    try:
        yield beside
        with suppress(FileNotFoundError):
            os.rmdir(directory)  # it was empty
        os.rename(beside, directory)
    except H5ZarrError:
        raise
    except OSError as error:
        what = f"could not be moved there ({error.strerror or type(error).__name__})"
        raise OutputError(shown, what) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def _branch(repository: Any, branch: str, place: Place) -> Iterator[None]:
    """Ensure that a branch exists. A new branch starts empty, and is removed after an exception."""
    with _icechunk_errors(place):
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
def _icechunk_errors(place: Place) -> Iterator[None]:
    """Turn Icechunk's exceptions into an OutputError, which does not chain them."""
    failure: OutputError | None = None
    try:
        yield
    except SourceTimeout as error:
        failure = output_timeout(error, place.shown)
    except H5ZarrError:
        raise
    except Exception as error:
        failure = _describe(error, place)
    if failure is not None:
        raise failure


def _describe(error: Exception, place: Place) -> OutputError:
    """Return what went wrong; for a remote repository without the exception's text, which may quote a key."""
    name = type(error).__name__
    if name == "ConflictError":
        what = "another writer has committed to the branch in the meantime"
        return OutputError(place.shown, what, remedy="Try again.")
    if place.directory is None:
        remedy = "Check the URL, the credentials and output_options=, then try again."
        return OutputError(place.shown, f"Icechunk could not write there ({name})", remedy=remedy)
    reason = next((line for line in str(error).splitlines() if line.strip(" x|`->")), name).strip(" x|`->")
    remedy = "Give a directory that is new, empty, or a repository that this version of Icechunk opens."
    return OutputError(place.shown, f"Icechunk could not write there: {reason}", remedy=remedy)
