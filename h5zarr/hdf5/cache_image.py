"""Cache images: metadata that the HDF5 library wrote to one block on closing, instead of to its addresses.

The specification does not describe this block. A superblock extension message (0x0018) locates it. It holds entries of
the library's metadata cache, which take precedence over the bytes at their addresses.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple, TypeVar, cast

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.checksum import check_checksum
from h5zarr.hdf5.cursor import Cursor
from h5zarr.hdf5.header import Message
from h5zarr.hdf5.messages.kinds import Kind
from h5zarr.hdf5.on_disk import check_signature
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.span import Span
from h5zarr.io.steps import Hints, Partial, Step

T = TypeVar("T")


class CachedEntry(NamedTuple):
    """Bytes that replace the file's own bytes at `address`."""

    address: int
    content: bytes


def read_cache_image(extension: tuple[Message, ...], sizes: Sizes) -> Step[list[CachedEntry]]:
    """Return the entries of the file's cache image. Nearly all files have none."""
    message = next((message for message in extension if message.kind == Kind.CACHE_IMAGE), None)
    if message is None:
        return []
    cursor = Cursor(message.content, "cache image message", sizes)
    version, address, nbytes = cursor.u8(), cursor.address(), cursor.length()
    if version != 0:
        raise MalformedFile(f"cache image message has unknown version {version}", at=message.address)
    if address is None:
        return []
    (block,) = yield [sizes.span(address, nbytes, "cache image")]
    check_signature(block, b"MDCI", "cache image", address)
    check_checksum(block, "cache image", address)
    cursor = Cursor(bytes(block[:-4]), "cache image", sizes)
    cursor.skip(4)
    if (version := cursor.u8()) != 0:
        raise MalformedFile(f"cache image has unknown version {version}", at=address)
    cursor.skip(1 + sizes.length_nbytes)  # flags, size
    return [_entry(cursor, address) for _ in range(cursor.u32())]


def _entry(cursor: Cursor, at: int) -> CachedEntry:
    cursor.skip(1 + 1 + 1 + 1 + 2 + 2)  # type, flags, ring, age, children
    parent_count = cursor.u16()
    cursor.skip(4)  # rank in the cache
    address, nbytes = cursor.address(), cursor.length()
    if address is None:
        raise MalformedFile("cache image has an entry without an address", at=at)
    for _ in range(parent_count):
        cursor.address()
    return CachedEntry(address, cursor.take(nbytes))


class _Overlay:
    """Cached entries by address. Entries do not overlap, because each is one structure of the file."""

    def __init__(self, entries: list[CachedEntry]) -> None:
        self._entries = sorted(entries)
        self._addresses = [entry.address for entry in self._entries]

    def patch_all(self, spans: Sequence[Span], buffers: Sequence[memoryview]) -> Sequence[memoryview]:
        """Return the buffers of a request with cached entries applied. Buffers that are not yet available stay None."""
        pairs = zip(spans, buffers, strict=True)
        if not isinstance(buffers, Partial):
            return [self.patch(span, buffer) for span, buffer in pairs]
        patched = Partial(None if buffer is None else self.patch(span, buffer) for span, buffer in pairs)
        return cast("Sequence[memoryview]", patched)

    def patch(self, span: Span, buffer: memoryview) -> memoryview:
        """Return the bytes of a span with cached entries applied."""
        first = max(0, bisect_right(self._addresses, span.address) - 1)
        last = bisect_left(self._addresses, span.end)
        patched: bytearray | None = None
        for address, content in self._entries[first:last]:
            start, end = max(address, span.address), min(address + len(content), span.end)
            if start < end:
                patched = bytearray(buffer) if patched is None else patched
                patched[start - span.address : end - span.address] = content[start - address : end - address]
        return buffer if patched is None else memoryview(bytes(patched))


def overlay(step: Step[T], entries: list[CachedEntry]) -> Step[T]:
    """Run `step` and return its result. The step sees cached entries instead of the file's own bytes."""
    if not entries:
        return (yield from step)
    cached = _Overlay(entries)
    try:
        wanted = next(step)
        while True:
            buffers = yield wanted
            wanted = step.send(buffers if isinstance(wanted, Hints) else cached.patch_all(wanted, buffers))
    except StopIteration as finished:
        result: T = finished.value
        return result
