"""The files of a large cube in a repository: a table in blocks, so that a commit writes few of them.

A snapshot's metadata are written with every commit, so they are no place for half a million files. A block of the table
is an array of bytes in a group that h5zarr does not show. Its name is a digest of its content, so that a block that
stays the same is not written again. The snapshot's metadata list the blocks in order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from h5zarr.containers.file_rows import encode_blocks
from h5zarr.containers.file_table import TableBlock, describe_files, digest_of, find_late_files, not_described
from h5zarr.containers.icechunk.late_arrays import ArrayManifests, RepositoryFiles
from h5zarr.containers.icechunk.manifest_file import NATIVE, decode_manifest
from h5zarr.containers.icechunk.store_keys import get_all
from h5zarr.containers.output import dump
from h5zarr.containers.provenance import Provenance
from h5zarr.errors import MalformedFile
from h5zarr.io.span import Span
from h5zarr.zarr_model.hierarchy import Hierarchy, Json
from h5zarr.zarr_model.late_sequence import LateSequence

GROUP = "_h5zarr"
_ABOUT = "The files of the cube, for h5zarr."
_MOST_IN_METADATA = 1_000


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """The blocks of a table, by name, and what the snapshot's metadata say about them."""

    described: Mapping[str, Json]
    blocks: Mapping[str, memoryview]

    def entries(self, known: Collection[str] = ()) -> Iterator[tuple[str, bytes]]:
        """Yield the keys and values of the blocks that are not `known`."""
        if not known:
            document = {"zarr_format": 3, "node_type": "group", "attributes": {"about": _ABOUT}}
            yield f"{GROUP}/zarr.json", dump(document).encode()
        for name, content in self.blocks.items():
            if name not in known:
                yield f"{GROUP}/{name}/zarr.json", dump(_describe_array(name, len(content))).encode()
                yield _key(name), bytes(content)


def store_files(hierarchy: Hierarchy, provenance: Provenance) -> StoredFiles | None:
    """Return the files of a cube as a table; None if they are few, or if its group has the name of one of the user."""
    if provenance.cube is None or len(provenance.sources) <= _MOST_IN_METADATA or f"/{GROUP}" in hierarchy.nodes:
        return None
    blocks = list(encode_blocks(hierarchy.urls, provenance, provenance.cube))
    names = [digest_of(block.content) for block in blocks]
    listed = [[name, *block.firsts] for name, block in zip(names, blocks, strict=True)]
    described = {**describe_files(hierarchy.urls, provenance, provenance.cube), "blocks": listed}
    return StoredFiles(described, {name: memoryview(block.content) for name, block in zip(names, blocks, strict=True)})


def _key(name: str) -> str:
    return f"{GROUP}/{name}/c/0"


def _describe_array(name: str, nbytes: int) -> Json:
    """Return the metadata of a block. Its dimension has a name of its own, because blocks have different lengths."""
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [nbytes],
        "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [nbytes]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [{"name": "bytes"}],
        "attributes": {},
        "dimension_names": [name],
    }


def block_names(own_metadata: Json) -> list[str]:
    """Return the names of the blocks that a snapshot's metadata list."""
    described = own_metadata.get("files") if isinstance(own_metadata, dict) else None
    return [] if described is None else [name for name, _ in _listed(described)]


def _listed(described: Json) -> list[tuple[str, tuple[int, ...]]]:
    """Return the name and the first numbers of each block."""
    match described:
        case {"blocks": [*blocks]} if all(
            isinstance(name, str) and len(firsts) == 3 and all(type(one) is int and one >= 0 for one in firsts)
            for name, *firsts in blocks
        ):
            return [(name, tuple(firsts)) for name, *firsts in blocks]
    raise not_described()


@dataclass(frozen=True, slots=True)
class BlockReader:
    """Reads the blocks of a table from the files of a repository, many at a time."""

    files: RepositoryFiles
    listed: Sequence[tuple[str, tuple[int, ...]]]
    manifests: Sequence[ArrayManifests]

    def __call__(self) -> list[TableBlock]:
        parts = [array.parts[0].name for array in self.manifests]
        contents = self.files.read_manifests(parts)
        rows = [
            decode_manifest(contents[part], f"manifest {part}")[array.node]
            for part, array in zip(parts, self.manifests, strict=True)
        ]
        held = [row for row in rows if len(row.kind) == 1 and row.kind[0] == NATIVE]
        spans = [(row.chunks[0], Span(int(row.address[0]), int(row.nbytes[0]))) for row in held]
        read = dict(zip(map(id, held), self.files.read_chunks(spans), strict=True))
        found = [read.get(id(row)) or row.inline.get(0, b"") for row in rows]
        return _checked(self.listed, found)


def _checked(listed: Sequence[tuple[str, tuple[int, ...]]], contents: Sequence[bytes | None]) -> list[TableBlock]:
    """Return blocks, after comparing each with its name."""
    blocks = []
    for (name, firsts), content in zip(listed, contents, strict=True):
        if content is None or digest_of(content) != name:
            raise MalformedFile("a block of the table of the files of the cube is missing or damaged")
        blocks.append(TableBlock(content, firsts))
    return blocks


def find_files(
    described: Json, provenance: Provenance, manifests: Mapping[str, ArrayManifests], files: RepositoryFiles
) -> Any:
    """Return provenance, URLs and states of the files of a cube, which are read when they are needed."""
    listed = _listed(described)
    arrays = [manifests.get(f"/{GROUP}/{name}") for name, _ in listed]
    if not all(arrays):
        raise not_described()
    reader = BlockReader(files, listed, [array for array in arrays if array is not None])
    return find_late_files(described, provenance, reader)


def read_source_names(session: Any, own_metadata: Json) -> Sequence[str]:
    """Return the files that a snapshot records in a table, which is read with Icechunk when they are needed."""
    from zarr.core.sync import sync

    described = own_metadata["files"]
    listed = _listed(described)

    def load() -> list[TableBlock]:
        return _checked(listed, sync(get_all(session.store, [_key(name) for name, _ in listed])))

    provenance, _, _ = find_late_files(described, Provenance.from_json(own_metadata), load)
    sources = provenance.sources
    return LateSequence(len(sources), lambda: tuple(source.url for source in sources))
