"""Read the manifest files of an Icechunk repository, which locate the chunks of each array.

Icechunk 1 has no function that returns the addresses of references. Its format is specified, and its files never
change: a header of 39 bytes, then flatbuffers compressed by zstd. https://icechunk.io/en/latest/reference/spec-v1, and
for the tables https://github.com/earth-mover/icechunk/tree/main/icechunk-format/flatbuffers/manifest.fbs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from h5zarr.containers.compression import decompress
from h5zarr.errors import MalformedFile, Unsupported

NATIVE, VIRTUAL, INLINE = 1, 2, 3  # as in icechunk.ChunkType
_MAGIC = "ICE🧊CHUNK".encode()
_HEADER_NBYTES = len(_MAGIC) + 24 + 3  # the writer, and a byte each for version, kind and compression
_KNOWN_VERSION, _MANIFEST, _ZSTD = 1, 2, 1
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32, in which Icechunk writes identifiers
_NODE_NBYTES = 8
# The positions of fields in their tables.
_ARRAYS, _NODE, _REFERENCES = 1, 0, 1
_INDEX, _INLINE, _ADDRESS, _NBYTES, _CHUNK, _LOCATION = range(6)

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ListedChunks:
    """One row per chunk. `kind` says where it is: in the repository, in another file, or in `inline`, by row.

    A chunk in another file is `nbytes` bytes at `address` of the location number `source` in `urls`. A chunk in the
    repository only has a size here.
    """

    index: npt.NDArray[np.int64]
    kind: npt.NDArray[np.uint8]
    address: npt.NDArray[np.int64]
    nbytes: npt.NDArray[np.int64]
    source: npt.NDArray[np.int32]
    urls: tuple[str, ...]
    inline: Mapping[int, bytes]


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
    for part in parts:
        table = np.array([numbers[url] for url in part.urls] or [0], np.int32)
        sources.append(table[part.source])
        inline |= {first + row: content for row, content in part.inline.items()}
        first += len(part.kind)
    return ListedChunks(
        index=np.concatenate([part.index for part in parts]),
        kind=np.concatenate([part.kind for part in parts]),
        address=np.concatenate([part.address for part in parts]),
        nbytes=np.concatenate([part.nbytes for part in parts]),
        source=np.concatenate(sources),
        urls=tuple(numbers),
        inline=inline,
    )


def decode_manifest(content: bytes, name: str) -> Mapping[str, ListedChunks]:
    """Return the chunks of each array in a manifest, by node identifier. `name` is for errors."""
    if not content.startswith(_MAGIC) or len(content) < _HEADER_NBYTES:
        raise MalformedFile(f"{name} is not an Icechunk file")
    version, kind, compression = content[_HEADER_NBYTES - 3 : _HEADER_NBYTES]
    if kind != _MANIFEST:
        raise MalformedFile(f"{name} is not a manifest")
    if version != _KNOWN_VERSION:
        remedy = "Install Icechunk 2.0.5 or later, which lists the locations of chunks."
        raise Unsupported(f"{name} is of version {version} of Icechunk's format", remedy=remedy)
    packed = content[_HEADER_NBYTES:]
    tables = _Tables(decompress(packed, name) if compression == _ZSTD else packed, name)
    arrays = tables.elements(tables.fields(tables.root(), _ARRAYS))[0]
    places = tables.follow(arrays)
    nodes = [_identifier(tables.bytes_at(at, _NODE_NBYTES)) for at in tables.fields(places, _NODE).tolist()]
    return {node: _decode_array(tables, place) for node, place in zip(nodes, places.reshape(-1, 1), strict=True)}


def _decode_array(tables: _Tables, array: Places) -> ListedChunks:
    """Return the chunks of the array whose table is at the only position in `array`."""
    (starts,) = tables.elements(tables.fields(array, _REFERENCES))
    rows = tables.follow(starts)
    inline, chunk, location = (tables.fields(rows, field) for field in (_INLINE, _CHUNK, _LOCATION))
    if ((inline > 0).astype(int) + (chunk > 0) + (location > 0) != 1).any():
        raise MalformedFile(f"{tables.name} has chunks without a location")
    kind = np.select([inline > 0, chunk > 0], [INLINE, NATIVE], VIRTUAL).astype(np.uint8)
    urls, source = number_locations(tables.texts(location[location > 0]))
    sources = np.zeros(len(rows), np.int32)
    sources[location > 0] = source
    held = np.flatnonzero(inline > 0)
    return ListedChunks(
        index=_index(tables, rows),
        kind=kind,
        address=tables.numbers(tables.fields(rows, _ADDRESS), 8),
        nbytes=tables.numbers(tables.fields(rows, _NBYTES), 8),
        source=sources,
        urls=urls,
        inline=dict(zip(held.tolist(), tables.vectors(inline[held]), strict=True)),
    )


def _index(tables: _Tables, rows: Places) -> Places:
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


def _identifier(content: bytes) -> str:
    """Return a node identifier as Icechunk writes it: 13 characters of 5 bits, with padding in the last."""
    number = int.from_bytes(content, "big") << 1
    return "".join(_LETTERS[number >> 5 * place & 31] for place in reversed(range(13)))


class _Tables:
    """The tables of a flatbuffers file, many at a time: columns of positions in the file.

    https://flatbuffers.dev/internals. Positions outside the file are never read.
    """

    def __init__(self, content: bytes, name: str) -> None:
        self._content = content
        self._bytes = np.frombuffer(content, np.uint8)
        self.name = name

    @property
    def nbytes(self) -> int:
        return len(self._content)

    def root(self) -> Places:
        return self.follow(np.zeros(1, np.int64))

    def integers(self, at: Places, nbytes: int) -> Places:
        """Return the unsigned integers of `nbytes` bytes at some positions."""
        if len(at) and (int(at.min()) < 0 or int(at.max()) > self.nbytes - nbytes):
            raise MalformedFile(f"{self.name} points outside the file")
        found = np.zeros(len(at), np.int64)
        for place in range(nbytes):
            found |= self._bytes[at + place].astype(np.int64) << 8 * place
        if (found < 0).any():
            raise MalformedFile(f"{self.name} has a number of more than 63 bits")
        return found

    def numbers(self, fields: Places, nbytes: int) -> Places:
        """Return the integers in some fields; 0 if a field is absent."""
        found = np.zeros(len(fields), np.int64)
        found[fields > 0] = self.integers(fields[fields > 0], nbytes)
        return found

    def follow(self, at: Places) -> Places:
        """Return the targets of the offsets at some positions."""
        return at + self.integers(at, 4)

    def fields(self, tables: Places, number: int) -> Places:
        """Return the positions of a field in some tables; 0 if it is absent."""
        back = self.integers(tables, 4)
        layouts = tables - np.where(back >= 1 << 31, back - (1 << 32), back)
        entry = 4 + 2 * number
        is_known = entry < self.integers(layouts, 2)
        offsets = np.zeros(len(tables), np.int64)
        offsets[is_known] = self.integers(layouts[is_known] + entry, 2)
        return np.where(offsets > 0, tables + offsets, 0)

    def elements(self, fields: Places) -> list[Places]:
        """Return the positions of the 4-byte elements of the vectors in some fields."""
        if (fields == 0).any():
            raise MalformedFile(f"{self.name} lacks a field that every manifest has")
        at = self.follow(fields)
        counts = self.integers(at, 4)
        if (at + 4 + 4 * counts > self.nbytes).any():
            raise MalformedFile(f"{self.name} ends within a list")
        return [start + 4 + 4 * np.arange(count) for start, count in zip(at.tolist(), counts.tolist(), strict=True)]

    def vectors(self, fields: Places) -> list[bytes]:
        """Return the bytes of the vectors or texts in some fields."""
        at = self.follow(fields)
        counts = self.integers(at, 4)
        return [self.bytes_at(start + 4, count) for start, count in zip(at.tolist(), counts.tolist(), strict=True)]

    def texts(self, fields: Places) -> list[str]:
        """Return the texts in some fields."""
        try:
            return [content.decode() for content in self.vectors(fields)]
        except UnicodeDecodeError:
            raise MalformedFile(f"{self.name} has a location that is not UTF-8") from None

    def bytes_at(self, start: int, count: int) -> bytes:
        if start <= 0 or start + count > self.nbytes:
            raise MalformedFile(f"{self.name} is truncated")
        return self._content[start : start + count]
