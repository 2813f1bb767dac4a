"""A read-only Zarr store over a hierarchy. Zarr reads the original files through it, with few requests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest

from h5zarr.display import counted, summary_repr
from h5zarr.io.access import Access
from h5zarr.io.ranges import read_one
from h5zarr.io.span import Span
from h5zarr.opening import Opened, open_hierarchy
from h5zarr.read.chunk_rows import ChunkTable
from h5zarr.read.gathering import Gathering
from h5zarr.read.keys import find_chunk, find_metadata, list_children, list_keys, metadata_of
from h5zarr.read.sources import sized
from h5zarr.zarr_model.hierarchy import TO_THE_END, ArrayNode

if TYPE_CHECKING:
    from zarr.abc.store import ByteRequest
    from zarr.core.buffer import Buffer, BufferPrototype


def open_store(
    source: str | os.PathLike[str],
    *,
    verify: bool = True,
    at: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    anon: bool = False,
    network: Mapping[str, float] | None = None,
    limits: Mapping[str, int] | None = None,
    allow: Sequence[str] = (),
) -> HierarchyStore:
    """Open references, or an HDF5 or netCDF file, as a read-only Zarr store.

    A file is scanned at once. A `ProblemWarning` names whatever the store leaves out.

    Parameters
    ----------
    source
        A path or any URL that fsspec opens: references in JSON or Parquet, an Icechunk repository, or a file.
    verify
        Raise `SourceChanged` at the first read from a file that is not the one that was translated.
    at
        Branch, tag or snapshot of an Icechunk repository.
    storage_options
        Options for fsspec, for the references and the files they refer to; by protocol, `{"s3": {...}, "https":
        {...}}`, if they need different ones.
    anon
        Read from the cloud without credentials.
    network
        How to read over a network, such as `{"latency_seconds": 0.1}`; see `docs/remote.md`.
    limits
        What the input may use, such as `{"chunk_nbytes": 2**28}`; see `docs/threat-model.md`.
    allow
        Directories, as paths or URLs, in which the input may refer to files that it otherwise may not.

    Returns
    -------
    HierarchyStore
        A Zarr version 3 store.

    Raises
    ------
    H5ZarrError
        `source` cannot be read.

    Examples
    --------
    >>> import h5zarr, zarr
    >>> group = zarr.open_group(h5zarr.open_store("ocean.nc"), mode="r")
    >>> group["sst"].shape
    (18, 40, 120)
    """
    access = Access.from_options(storage_options, network, limits, allow, anon=anon)
    opened = open_hierarchy(source, access, verify=verify, at=at)
    opened.warn(stacklevel=2)
    return HierarchyStore(opened)


class HierarchyStore(Store):
    """A read-only Zarr version 3 store over an opened hierarchy."""

    supports_writes = False
    supports_deletes = False
    supports_listing = True

    def __init__(self, opened: Opened) -> None:
        super().__init__(read_only=True)
        self._opened = opened
        self._tables: dict[str, ChunkTable] = {}
        self._gathering: Gathering | None = None
        self._is_open = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HierarchyStore) and other._opened is self._opened

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return summary_repr("HierarchyStore", self._opened.url, counted(len(self._opened.hierarchy.nodes), "node"))

    def __getstate__(self) -> Opened:
        return self._opened

    def __setstate__(self, opened: Opened) -> None:
        self.__init__(opened)  # type: ignore[misc]

    def with_read_only(self, read_only: bool = False) -> HierarchyStore:
        if not read_only:
            raise ValueError("this store is read-only: it refers to files that it does not change")
        return HierarchyStore(self._opened)

    def close(self) -> None:
        """Close files and connections."""
        super().close()
        self._opened.close()

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        if prototype is None:
            from zarr.core.buffer import default_buffer_prototype

            prototype = default_buffer_prototype()
        content = await self._find(key, byte_range)
        return None if content is None else prototype.buffer.from_bytes(content)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        return list(await asyncio.gather(*(self.get(key, prototype, wanted) for key, wanted in key_ranges)))

    async def exists(self, key: str) -> bool:
        if find_metadata(self._opened.hierarchy, key) is not None:
            return True
        place = self._locate(key)
        return place is not None

    async def getsize(self, key: str) -> int:
        """Return the size of a value. That of a chunk is in the references, so nothing is read."""
        path = find_metadata(self._opened.hierarchy, key)
        place = metadata_of(self._opened.hierarchy, path) if path is not None else self._locate(key)
        if place is None:
            raise FileNotFoundError(key)
        return len(place) if isinstance(place, bytes) else place[1].nbytes

    async def getsize_prefix(self, prefix: str) -> int:
        """Return the size of all values below a node, from its references."""
        hierarchy, top = self._opened.hierarchy, f"/{prefix.strip('/')}"
        if top not in hierarchy.nodes:
            return await super().getsize_prefix(f"{prefix.strip('/')}/")
        inside = f"{top.rstrip('/')}/"
        below = {path: node for path, node in hierarchy.nodes.items() if path == top or path.startswith(inside)}
        metadata = sum(len(metadata_of(hierarchy, path)) for path in below)
        return metadata + sum(self._stored_nbytes(node) for node in below.values() if isinstance(node, ArrayNode))

    def _stored_nbytes(self, node: ArrayNode) -> int:
        """Return the size of all chunks of an array. The sizes of whole files may have to be asked for."""
        manifest = node.manifest
        inlined = sum(map(len, manifest.inline.values())) if manifest.inline_count else 0
        if manifest.totals is not None:
            return inlined + manifest.referenced_nbytes
        whole = np.flatnonzero(manifest.nbytes == TO_THE_END)
        sources = np.broadcast_to(np.asarray(manifest.source), manifest.count)[whole].tolist()
        return inlined + manifest.referenced_nbytes + sum(self._opened.sources.reader(one).nbytes for one in sources)

    async def _find(self, key: str, byte_range: ByteRequest | None) -> bytes | memoryview | None:
        path = find_metadata(self._opened.hierarchy, key)
        if path is not None:
            return _take(metadata_of(self._opened.hierarchy, path), byte_range)
        place = self._locate(key)
        if place is None or isinstance(place, bytes):
            return place if place is None else _take(place, byte_range)
        source, span = place
        begin, end = _bounds(span.nbytes, byte_range)
        wanted = Span(span.address + begin, end - begin)
        reader = self._opened.sources.reader(source)
        return read_one(reader, wanted) if reader.is_fast else await self._gather().get(source, wanted)

    def _locate(self, key: str) -> tuple[int, Span] | bytes | None:
        """Return the location of a chunk, or its bytes if they are inlined; None if there is no such chunk."""
        found = find_chunk(self._opened.hierarchy, key)
        if found is None:
            return None
        path, index = found
        node = self._opened.hierarchy.nodes[path]
        assert isinstance(node, ArrayNode)
        if any(number >= count for number, count in zip(index, node.grid.grid_shape, strict=True)):
            return None
        if path not in self._tables:
            self._tables[path] = ChunkTable(node.grid, node.manifest)
        number = node.grid.number(np.array([index], np.int64))
        rows = self._tables[path].rows(number)
        inline = int(rows.find_inline(number)[0])
        if inline >= 0:
            return rows.inline[inline]
        row = int(rows.find(number)[0])
        if row < 0:
            return None
        source = rows.source if isinstance(rows.source, int) else int(rows.source[row])
        nbytes = sized(rows.nbytes[row : row + 1], self._opened.sources.reader(source))
        return source, Span(int(rows.address[row]), int(nbytes[0]))

    def _gather(self) -> Gathering:
        """Return the request batcher of the running event loop: Zarr's or the user's own."""
        gathering = self._gathering
        if gathering is None or gathering.loop is not asyncio.get_running_loop():
            # Use the local variable: another thread's loop may have replaced the attribute.
            gathering = self._gathering = Gathering(self._opened.sources)
        return gathering

    async def list(self) -> AsyncIterator[str]:
        for key in list_keys(self._opened.hierarchy):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        for key in list_keys(self._opened.hierarchy):
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        for name in list_children(self._opened.hierarchy, prefix):
            yield name

    async def set(self, key: str, value: Buffer) -> None:
        raise self._read_only_error()

    async def delete(self, key: str) -> None:
        raise self._read_only_error()

    def _read_only_error(self) -> Exception:
        return ValueError(f"{self!r} is read-only: it refers to files that it does not change")


def _take(content: bytes, wanted: ByteRequest | None) -> bytes:
    begin, end = _bounds(len(content), wanted)
    return content[begin:end]


def _bounds(nbytes: int, wanted: ByteRequest | None) -> tuple[int, int]:
    """Return the start and end of the requested bytes in a value of `nbytes`."""
    match wanted:
        case None:
            return 0, nbytes
        case RangeByteRequest(start=start, end=end):
            return min(start, nbytes), min(end, nbytes)
        case OffsetByteRequest(offset=offset):
            return min(offset, nbytes), nbytes
        case SuffixByteRequest(suffix=suffix):
            return max(0, nbytes - suffix), nbytes
    raise TypeError(f"{wanted!r} is not a byte request")
