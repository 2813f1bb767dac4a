"""Read the manifest files of an Icechunk repository, which locate the chunks of each array.

Icechunk 1 has no function that returns the addresses of references, and Icechunk 2 only returns those of a whole array.
The format is specified, and the files never change: a header of 39 bytes, then flatbuffers compressed by zstd.
https://icechunk.io/en/latest/reference/spec-v2, and for the tables
https://github.com/earth-mover/icechunk/tree/main/icechunk-format/flatbuffers/manifest.fbs. Version 2 of the format may
compress the location of each chunk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from h5zarr.containers.compression import decompress, decompress_each
from h5zarr.containers.icechunk.flatbuffers import Places, Tables
from h5zarr.errors import MalformedFile, Unsupported

NATIVE, VIRTUAL, INLINE = 1, 2, 3  # as in icechunk.ChunkType
_MAGIC = "ICE🧊CHUNK".encode()
_HEADER_NBYTES = len(_MAGIC) + 24 + 3  # the writer, and a byte each for version, kind and compression
_KNOWN_VERSIONS, _MANIFEST, _ZSTD = (1, 2), 2, 1
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32, in which Icechunk writes identifiers
_NODE_NBYTES, _CHUNK_NBYTES = 8, 12
# The positions of fields in their tables.
_ARRAYS, _DICTIONARY, _NODE, _REFERENCES = 1, 2, 0, 1
_INDEX, _INLINE, _ADDRESS, _NBYTES, _CHUNK, _LOCATION, _COMPRESSED = 0, 1, 2, 3, 4, 5, 8
_KINDS = (_INLINE, _CHUNK, _LOCATION, _COMPRESSED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ListedChunks:
    """One row per chunk. `kind` says where it is: in the repository, in another file, or in `inline`, by row.

    A chunk in another file is `nbytes` bytes at `address` of the location number `source` in `urls`. A chunk in the
    repository is in the file `chunks`, by row, if its name is known; otherwise it only has a size here.
    """

    index: npt.NDArray[np.int64]
    kind: npt.NDArray[np.uint8]
    address: npt.NDArray[np.int64]
    nbytes: npt.NDArray[np.int64]
    source: npt.NDArray[np.int32]
    urls: tuple[str, ...]
    inline: Mapping[int, bytes]
    chunks: Mapping[int, str] = field(default_factory=dict)

    def select(self, rows: Places) -> ListedChunks:
        """Return some of the rows."""
        return ListedChunks(
            index=self.index[rows],
            kind=self.kind[rows],
            address=self.address[rows],
            nbytes=self.nbytes[rows],
            source=self.source[rows],
            urls=self.urls,
            inline={place: self.inline[row] for place, row in enumerate(rows.tolist()) if row in self.inline},
            chunks={place: self.chunks[row] for place, row in enumerate(rows.tolist()) if row in self.chunks},
        )


def no_chunks(rank: int) -> ListedChunks:
    """Return no rows, of an array with `rank` dimensions."""
    none = np.empty(0, np.int64)
    return ListedChunks(
        index=none.reshape(0, rank),
        kind=none.astype(np.uint8),
        address=none,
        nbytes=none,
        source=none.astype(np.int32),
        urls=(),
        inline={},
    )


def number_locations(locations: Sequence[str]) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """Return the distinct locations in row order, and the number of each row's location."""
    numbers = {location: number for number, location in enumerate(dict.fromkeys(locations))}
    return tuple(numbers), np.array([numbers[location] for location in locations], np.int32)


def join_rows(parts: Sequence[ListedChunks]) -> ListedChunks:
    """Return the rows of several parts concatenated; there must be at least one."""
    if len(parts) == 1:
        return parts[0]
    numbers = {url: number for number, url in enumerate(dict.fromkeys(url for part in parts for url in part.urls))}
    sources, first = [], 0
    inline: dict[int, bytes] = {}
    chunks: dict[int, str] = {}
    for part in parts:
        table = np.array([numbers[url] for url in part.urls] or [0], np.int32)
        sources.append(table[part.source])
        inline |= {first + row: content for row, content in part.inline.items()}
        chunks |= {first + row: name for row, name in part.chunks.items()}
        first += len(part.kind)
    return ListedChunks(
        index=np.concatenate([part.index for part in parts]),
        kind=np.concatenate([part.kind for part in parts]),
        address=np.concatenate([part.address for part in parts]),
        nbytes=np.concatenate([part.nbytes for part in parts]),
        source=np.concatenate(sources),
        urls=tuple(numbers),
        inline=inline,
        chunks=chunks,
    )


def decode_manifest(content: bytes, name: str) -> Mapping[str, ListedChunks]:
    """Return the chunks of each array in a manifest, by node identifier. `name` is for errors."""
    if not content.startswith(_MAGIC) or len(content) < _HEADER_NBYTES:
        raise MalformedFile(f"{name} is not an Icechunk file")
    version, kind, compression = content[_HEADER_NBYTES - 3 : _HEADER_NBYTES]
    if kind != _MANIFEST:
        raise MalformedFile(f"{name} is not a manifest")
    if version not in _KNOWN_VERSIONS:
        remedy = "Install a newer h5zarr, or write the references with an older Icechunk."
        raise Unsupported(f"{name} is of version {version} of Icechunk's format", remedy=remedy)
    packed = content[_HEADER_NBYTES:]
    tables = Tables(decompress(packed, name) if compression == _ZSTD else packed, name)
    arrays = tables.elements(tables.fields(tables.root(), _ARRAYS))[0]
    places = tables.follow(arrays)
    nodes = [identifier(tables.bytes_at(at, _NODE_NBYTES)) for at in tables.fields(places, _NODE).tolist()]
    return {node: _decode_array(tables, place) for node, place in zip(nodes, places.reshape(-1, 1), strict=True)}


def _decode_array(tables: Tables, array: Places) -> ListedChunks:
    """Return the chunks of the array whose table is at the only position in `array`."""
    (starts,) = tables.elements(tables.fields(array, _REFERENCES))
    rows = tables.follow(starts)
    inline, chunk, plain, compressed = (tables.fields(rows, field) for field in _KINDS)
    if (np.sum([inline > 0, chunk > 0, plain > 0, compressed > 0], axis=0) != 1).any():
        raise MalformedFile(f"{tables.name} has chunks without a location")
    kind = np.select([inline > 0, chunk > 0], [INLINE, NATIVE], VIRTUAL).astype(np.uint8)
    urls, sources = _locations(tables, plain, compressed)
    held, native = np.flatnonzero(inline > 0), np.flatnonzero(chunk > 0)
    names = [identifier(tables.bytes_at(at, _CHUNK_NBYTES)) for at in chunk[native].tolist()]
    return ListedChunks(
        index=_index(tables, rows),
        kind=kind,
        address=tables.numbers(tables.fields(rows, _ADDRESS), 8),
        nbytes=tables.numbers(tables.fields(rows, _NBYTES), 8),
        source=sources,
        urls=urls,
        inline=dict(zip(held.tolist(), tables.vectors(inline[held]), strict=True)),
        chunks=dict(zip(native.tolist(), names, strict=True)),
    )


def _locations(tables: Tables, plain: Places, compressed: Places) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """Return the distinct locations, and the number of each row's location; 0 for rows without one."""
    found, numbers = tables.distinct(plain[plain > 0])
    packed, others = tables.distinct(compressed[compressed > 0])
    if packed:
        dictionary = tables.fields(tables.root(), _DICTIONARY)
        known = tables.vectors(dictionary)[0] if dictionary.all() else b""
        found += decompress_each(packed, known, tables.name)
    sources = np.zeros(len(plain), np.int32)
    sources[plain > 0] = numbers
    sources[compressed > 0] = others + np.int32(len(found) - len(packed))
    try:
        return tuple(content.decode() for content in found), sources
    except UnicodeDecodeError:
        raise MalformedFile(f"{tables.name} has a location that is not UTF-8") from None


def _index(tables: Tables, rows: Places) -> Places:
    """Return the coordinates of chunks, one row each. All must have the same rank."""
    at = tables.follow(tables.fields(rows, _INDEX))
    counts = np.unique(tables.integers(at, 4))
    if len(counts) > 1:
        raise MalformedFile(f"{tables.name} has chunks of one array with different numbers of coordinates")
    rank = int(counts[0]) if len(counts) else 0
    if rank > tables.nbytes:
        raise MalformedFile(f"{tables.name} ends within the coordinates of a chunk")
    columns = [tables.integers(at + 4 * (axis + 1), 4) for axis in range(rank)]
    return np.stack(columns, axis=1) if columns else np.empty((len(rows), 0), np.int64)


def identifier(content: bytes) -> str:
    """Return an identifier as Icechunk writes it: characters of 5 bits each, with padding in the last."""
    count = -(-8 * len(content) // 5)
    number = int.from_bytes(content, "big") << 5 * count - 8 * len(content)
    return "".join(_LETTERS[number >> 5 * place & 31] for place in reversed(range(count)))
