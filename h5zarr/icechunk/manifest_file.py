"""The manifests of an Icechunk repository, as they lie in files: which chunks of which arrays are where.

Icechunk 1 has no function that tells the addresses of references. Its format is specified, and its files never change:
a header of 39 bytes, then flatbuffers compressed by zstd. https://icechunk.io/en/latest/reference/spec-v1, and for the
tables https://github.com/earth-mover/icechunk/tree/main/icechunk-format/flatbuffers/manifest.fbs.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.icechunk.listed import INLINE, NATIVE, VIRTUAL, ListedChunks, number_locations
from h5zarr.refs.compression import decompress

_MAGIC = "ICE🧊CHUNK".encode()
_HEADER_NBYTES = len(_MAGIC) + 24 + 3  # who wrote it, and a byte each for the version, the kind and the compression
_KNOWN_VERSION, _MANIFEST, _ZSTD = 1, 2, 1
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # of Crockford's base 32, in which Icechunk writes identifiers
_NODE_NBYTES = 8
# The places of fields in their tables.
_ARRAYS, _NODE, _REFERENCES = 1, 0, 1
_INDEX, _INLINE, _ADDRESS, _NBYTES, _CHUNK, _LOCATION = range(6)

Places = npt.NDArray[np.int64]


def decode_manifest(content: bytes, name: str) -> Mapping[str, ListedChunks]:
    """Return the chunks of each array in a manifest, by the identifier of its node; `name` is how errors call it."""
    if not content.startswith(_MAGIC) or len(content) < _HEADER_NBYTES:
        raise MalformedFile(f"{name} is no file of Icechunk's")
    version, kind, compression = content[_HEADER_NBYTES - 3 : _HEADER_NBYTES]
    if kind != _MANIFEST:
        raise MalformedFile(f"{name} is no manifest")
    if version != _KNOWN_VERSION:
        remedy = "Install Icechunk 2.0.5 or later, which tells where chunks are."
        raise Unsupported(f"{name} is of version {version} of Icechunk's format", remedy=remedy)
    packed = content[_HEADER_NBYTES:]
    tables = _Tables(decompress(packed, name) if compression == _ZSTD else packed, name)
    arrays = tables.elements(tables.fields(tables.root(), _ARRAYS))[0]
    places = tables.follow(arrays)
    nodes = [_identifier(tables.bytes_at(at, _NODE_NBYTES)) for at in tables.fields(places, _NODE).tolist()]
    return {node: _decode_array(tables, place) for node, place in zip(nodes, places.reshape(-1, 1), strict=True)}


def _decode_array(tables: _Tables, array: Places) -> ListedChunks:
    """Return the chunks of the array whose table is at the only place in `array`."""
    (starts,) = tables.elements(tables.fields(array, _REFERENCES))
    rows = tables.follow(starts)
    inline, chunk, location = (tables.fields(rows, field) for field in (_INLINE, _CHUNK, _LOCATION))
    if ((inline > 0).astype(int) + (chunk > 0) + (location > 0) != 1).any():
        raise MalformedFile(f"{tables.name} has chunks of which it does not say where they are")
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
    """Return the coordinates of chunks, a row for each: all have as many."""
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
    """Return how Icechunk writes the identifier of a node: 13 letters of 5 bits, the last of which is empty."""
    number = int.from_bytes(content, "big") << 1
    return "".join(_LETTERS[number >> 5 * place & 31] for place in reversed(range(13)))


class _Tables:
    """The tables of a file of flatbuffers, many at a time: places are columns of positions in the file.

    https://flatbuffers.dev/internals. No place outside the file is ever looked at.
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
        """Return the unsigned integers of `nbytes` bytes at some places."""
        if len(at) and (int(at.min()) < 0 or int(at.max()) > self.nbytes - nbytes):
            raise MalformedFile(f"{self.name} has something outside of it")
        found = np.zeros(len(at), np.int64)
        for place in range(nbytes):
            found |= self._bytes[at + place].astype(np.int64) << 8 * place
        if (found < 0).any():
            raise MalformedFile(f"{self.name} has a number of more than 63 bits")
        return found

    def numbers(self, fields: Places, nbytes: int) -> Places:
        """Return the integers in some fields; 0 where the field is not there."""
        found = np.zeros(len(fields), np.int64)
        found[fields > 0] = self.integers(fields[fields > 0], nbytes)
        return found

    def follow(self, at: Places) -> Places:
        """Return where the offsets at some places lead to."""
        return at + self.integers(at, 4)

    def fields(self, tables: Places, number: int) -> Places:
        """Return where a field of some tables is; 0 where it is not there."""
        back = self.integers(tables, 4)
        layouts = tables - np.where(back >= 1 << 31, back - (1 << 32), back)
        entry = 4 + 2 * number
        is_known = entry < self.integers(layouts, 2)
        offsets = np.zeros(len(tables), np.int64)
        offsets[is_known] = self.integers(layouts[is_known] + entry, 2)
        return np.where(offsets > 0, tables + offsets, 0)

    def elements(self, fields: Places) -> list[Places]:
        """Return where the elements, of 4 bytes each, of the vectors in some fields are."""
        if (fields == 0).any():
            raise MalformedFile(f"{self.name} lacks something that every manifest has")
        at = self.follow(fields)
        counts = self.integers(at, 4)
        if (at + 4 + 4 * counts > self.nbytes).any():
            raise MalformedFile(f"{self.name} ends within a list")
        return [start + 4 + 4 * np.arange(count) for start, count in zip(at.tolist(), counts.tolist(), strict=True)]

    def vectors(self, fields: Places) -> list[bytes]:
        """Return the bytes of the vectors, or texts, in some fields."""
        at = self.follow(fields)
        counts = self.integers(at, 4)
        return [self.bytes_at(start + 4, count) for start, count in zip(at.tolist(), counts.tolist(), strict=True)]

    def texts(self, fields: Places) -> list[str]:
        """Return the texts in some fields."""
        try:
            return [content.decode() for content in self.vectors(fields)]
        except UnicodeDecodeError:
            raise MalformedFile(f"{self.name} has a location that is no UTF-8") from None

    def bytes_at(self, start: int, count: int) -> bytes:
        if start <= 0 or start + count > self.nbytes:
            raise MalformedFile(f"{self.name} ends within something")
        return self._content[start : start + count]
