"""Write a `Hierarchy` to an Icechunk repository, all or nothing.

A new local repository is created under a temporary name beside its target and then renamed. In an existing one, nothing
is visible before the branch moves. Icechunk gets the Zarr version 3 metadata unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from typing import Any

from h5zarr.containers.container import Commit, Fitted, Output, State
from h5zarr.containers.icechunk.changed_refs import ChangedReferences, find_changed_urls, find_changes
from h5zarr.containers.icechunk.extras import encode_extras, encode_urls, find_odd, sources_of, spell_out
from h5zarr.containers.icechunk.icechunk_reading import read_icechunk, state_of
from h5zarr.containers.icechunk.locations import LocatedFiles, lacking_prefixes, used_files
from h5zarr.containers.icechunk.steps import Share, plan_steps, prepared_ahead, record_size, temporary_branch
from h5zarr.containers.icechunk.storage import (
    Place,
    ask,
    container_store,
    find_place,
    quiet,
)
from h5zarr.containers.icechunk.stored_files import GROUP, StoredFiles, store_files
from h5zarr.containers.icechunk.virtual_refs import ReferenceSetter, lay_out, split_sizes
from h5zarr.containers.icechunk.writable import do_nothing, first_snapshot, icechunk_errors, on_branch, opened
from h5zarr.containers.output import dump
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.record_totals import RecordTally
from h5zarr.containers.target import check_target
from h5zarr.io.location import Location
from h5zarr.io.patience import patience
from h5zarr.zarr_model.chunk_keys import KeyLayout
from h5zarr.zarr_model.hierarchy import ArrayNode, Hierarchy, Json

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
    own_metadata = encode_extras(fitted.hierarchy.nodes, words)
    files = store_files(fitted.hierarchy, provenance)
    if files is not None:
        own_metadata |= {**provenance.to_json(has_files=False), "files": files.described}
    else:
        own_metadata |= {**provenance.to_json(), "refers_to": encode_urls(fitted.hierarchy, provenance)}
        if not provenance.sources:
            own_metadata["urls"] = list(sources_of(provenance, fitted.hierarchy))
    content = _Content(fitted, words, own_metadata, files)
    changes = None if output.replaces is None else _find_changes(fitted.hierarchy, provenance, output, files)
    located = LocatedFiles(fitted.hierarchy, provenance)
    used = used_files(fitted.hierarchy) if changes is None else changes.used
    prefixes = located.prefixes(used, place.shown)
    writer = _Writer(content, place, ReferenceSetter(located, place.shown), prefixes, output, changes)
    # An update compares the version instead.
    sources = () if output.replaces is not None else sources_of(provenance, fitted.hierarchy)
    check = partial(check_target, output, sources=sources, is_all=True)
    with quiet(place), opened(place, output) as repository:
        return writer.write(repository, commit.branch, commit.message or _message(provenance), check)


def _find_changes(
    hierarchy: Hierarchy, provenance: Provenance, output: Output, files: StoredFiles | None
) -> ChangedReferences | None:
    """Return what an update changes in the state that it replaces; None to write everything."""
    assert output.replaces is not None
    snapshot = read_icechunk(output.location, output.storage_options, output.replaces.version)
    old = snapshot.references
    if old.provenance is None:
        return None
    changes = find_changes(old.hierarchy, hierarchy, find_changed_urls(old.provenance, provenance))
    if changes is not None:
        changes.blocks = snapshot.blocks
        kept = () if files is None else files.blocks
        left = [f"/{GROUP}/{name}" for name in snapshot.blocks if name not in kept]
        changes.nodes += left if files is not None else [f"/{GROUP}"] if snapshot.blocks else []
    return changes


def _message(provenance: Provenance) -> str:
    """Return the default commit message."""
    source = provenance.sources[0].url if provenance.sources else "nothing"
    shown = Location.parse(Location.parse(source).without_secrets())
    return f"h5zarr {provenance.version}: {shown}"


@dataclass(frozen=True, slots=True)
class _Content:
    """What to write: nodes, in which `words` names attributes with NaN, the metadata of the snapshot, and files."""

    fitted: Fitted
    words: Mapping[str, Sequence[str]]
    own_metadata: Json
    files: StoredFiles | None

    def documents(self) -> Iterator[tuple[str, bytes]]:
        """Yield the keys and values of the metadata."""
        for path, node in self.fitted.nodes.items():
            document = node.documents["zarr.json"]
            if path in self.words:
                document = spell_out(document, self.words[path])
            yield f"{path}/zarr.json".lstrip("/"), dump(document).encode()

    def entries(self) -> Iterator[tuple[str, bytes]]:
        """Yield keys and values: metadata, then the inlined chunks, then the files."""
        yield from self.documents()
        for path, node in self.fitted.nodes.items():
            if node.manifest is not None:
                prefix = KeyLayout(path, "c", "/", len(node.documents["zarr.json"]["shape"])).prefix
                for index, content in node.manifest.inline.items():
                    yield prefix + "/".join(map(str, index)), content
        yield from self.blocks()

    def blocks(self, known: Collection[str] = ()) -> Iterator[tuple[str, bytes]]:
        """Yield the keys and values of the blocks of files that are not `known`."""
        if self.files is not None:
            yield from self.files.entries(known)


class _Writer:
    """Writes to a repository. `place` is the location, for errors; the files have these `prefixes`."""

    def __init__(
        self,
        content: _Content,
        place: Place,
        setter: ReferenceSetter,
        prefixes: Collection[str],
        output: Output,
        changes: ChangedReferences | None = None,
    ) -> None:
        self._content, self._place, self._setter, self._prefixes = content, place, setter, prefixes
        self._changes = changes
        self._hierarchy = content.fitted.hierarchy
        self._source_options = output.source_options or {}
        nodes = self._hierarchy.nodes
        large = {path: node for path, node in nodes.items() if isinstance(node, ArrayNode) and split_sizes(node)}
        self._tally = RecordTally({path: (node.grid.grid_shape, record_size(node)) for path, node in large.items()})
        counts = [node.manifest.count for node in nodes.values() if isinstance(node, ArrayNode)]
        self._commit_seconds = patience(output.network.timeout_seconds, sum(counts) * _CHUNK_NBYTES)

    def write(self, repository: Any, branch: str, message: str, check: Callable[[State], None]) -> str:
        """Commit references to a branch. Return the id of its snapshot. `check` raises an OutputError if it must stay.

        The branch moves once, at the end. That fails if the branch has changed since the check.
        """
        repository, is_changed = self._with_containers(repository)
        layout = self._with_layout(repository)
        # Before the branch moves: without its containers, a snapshot cannot be read.
        save_config = repository.save_config if is_changed else do_nothing
        steps = iter(()) if self._changes is not None else plan_steps(self._hierarchy)
        first, second = next(steps, []), next(steps, None)
        if second is not None:
            every = chain([first, second], steps)
            return self._write_in_steps(layout, every, branch, message, check, save_config)
        with on_branch(repository, branch, self._place):
            with icechunk_errors(self._place):
                session = layout.writable_session(branch)
                check(state_of(repository, session))
            if self._changes is not None:
                self._change(session.store, self._changes)
            else:
                self._set_everything(session.store, first)
            with icechunk_errors(self._place):
                save_config()
            return self._commit(session, message, self._own_metadata())

    def _own_metadata(self) -> Json:
        """Return the metadata of the snapshot, when all references are written."""
        totals = self._tally.to_json() if self._changes is None else self._tally.encode(self._changes.totals)
        return {**self._content.own_metadata, **({"totals": totals} if totals else {})}

    def _set_everything(self, store: Any, step: Sequence[Share]) -> None:
        with icechunk_errors(self._place):
            store.sync_clear()
        self._set_metadata(store)
        self._set_references(store, step)

    def _change(self, store: Any, changes: ChangedReferences) -> None:
        """Write only what an update changes: all metadata, which are small, and the references that are different."""
        from zarr.core.sync import sync

        inline = ((key, content) for key, content in changes.inline.items())
        with icechunk_errors(self._place):
            sync(_delete(store, changes))
            sync(_set_changed(store, self._content.documents()))
            sync(_set_all(store, chain(inline, self._content.blocks(changes.blocks))))
            for path, manifest in changes.references.items():
                self._setter.set(store, path, manifest)

    def _write_in_steps(
        self,
        repository: Any,
        steps: Iterator[list[Share]],
        branch: str,
        message: str,
        check: Callable[[State], None],
        save_config: Callable[[], None],
    ) -> str:
        """Commit to a temporary branch, first the metadata, then some references at a time. Then move the branch."""
        with icechunk_errors(self._place):
            is_new = branch not in repository.list_branches()
            old = first_snapshot(repository) if is_new else repository.lookup_branch(branch)
            check(state_of(repository, repository.readonly_session(snapshot_id=old)))
        with icechunk_errors(self._place), temporary_branch(repository, old) as temporary:
            session = repository.writable_session(temporary)
            session.store.sync_clear()
            self._set_metadata(session.store)
            snapshot = self._commit(session, f"{message} (part 1)", None)
            for number, (step, following) in enumerate(pairwise(chain(prepared_ahead(steps), [None])), 2):
                session = repository.writable_session(temporary)
                self._set_references(session.store, step or ())
                if following is None:
                    snapshot = self._commit(session, message, self._own_metadata())
                else:
                    snapshot = self._commit(session, f"{message} (part {number})", None)
            save_config()
            if is_new:
                repository.create_branch(branch, snapshot)
            else:
                repository.reset_branch(branch, snapshot, from_snapshot_id=old)
        return snapshot

    def _commit(self, session: Any, message: str, own_metadata: Json) -> str:
        metadata = None if own_metadata is None else {"h5zarr": own_metadata}
        with icechunk_errors(self._place):
            snapshot: str = ask(self._place, self._commit_seconds, lambda: session.commit(message, metadata=metadata))
        return snapshot

    def _with_containers(self, repository: Any) -> tuple[Any, bool]:
        """Return the repository with a virtual chunk container for each source, and whether that changed it."""
        import icechunk

        with icechunk_errors(self._place):
            config = repository.config
            known = tuple(config.virtual_chunk_containers or {})
            lacking = lacking_prefixes(self._prefixes, known)
            for prefix in lacking:
                store = container_store(prefix, self._source_options)
                config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(prefix, store))
            return (repository.reopen(config=config), True) if lacking else (repository, False)

    def _with_layout(self, repository: Any) -> Any:
        """Return the repository for writing this hierarchy. The manifest layout is not stored in its configuration."""
        import icechunk

        config = repository.config
        if not lay_out(config, self._hierarchy):
            return repository
        with icechunk_errors(self._place):  # not `reopen`, which keeps the caches as they are
            return icechunk.Repository.open(repository.storage, config=config)

    def _set_metadata(self, store: Any) -> None:
        """Write metadata and inline chunks to a store."""
        from zarr.core.sync import sync

        with icechunk_errors(self._place):
            sync(_set_all(store, self._content.entries()))
        for path, node in self._hierarchy.nodes.items():
            if isinstance(node, ArrayNode):
                self._tally.add_inline(path, node.manifest.inline)

    def _set_references(self, store: Any, step: Sequence[Share]) -> None:
        """Write some of the references to a store."""
        for path, references in step:
            with icechunk_errors(self._place):
                self._setter.set(store, path, references)
            self._tally.add(path, references)


async def _set_all(store: Any, entries: Iterator[tuple[str, bytes]]) -> None:
    from zarr.core.buffer import default_buffer_prototype

    make = default_buffer_prototype().buffer.from_bytes
    for key, content in entries:
        await store.set(key, make(content))


async def _set_changed(store: Any, documents: Iterator[tuple[str, bytes]]) -> None:
    """Set metadata that differ from what is there."""
    from zarr.core.buffer import default_buffer_prototype

    prototype = default_buffer_prototype()
    for key, content in documents:
        there = await store.get(key, prototype)
        if there is None or json.loads(there.to_bytes()) != json.loads(content):
            await store.set(key, prototype.buffer.from_bytes(content))


async def _delete(store: Any, changes: ChangedReferences) -> None:
    for path in changes.nodes:
        await store.delete_dir(path.lstrip("/"))
    for key in changes.deleted:
        await store.delete(key)
