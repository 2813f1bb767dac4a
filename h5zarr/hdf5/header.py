"""Object headers: the messages that describe an object. Spec: IV.A.1."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.hdf5.checksum import check_checksum
from h5zarr.hdf5.cursor import Cursor
from h5zarr.hdf5.messages.kinds import Kind
from h5zarr.hdf5.on_disk import WIDTHS, check_signature
from h5zarr.hdf5.sizes import Sizes, Visits
from h5zarr.io.span import Span
from h5zarr.io.steps import Step

_GUESS_NBYTES = 1024  # large enough for most headers to take one round
_PREFIX_V1 = struct.Struct("<BxHIIxxxx")  # version, message count, reference count, size
_MESSAGE_V1 = struct.Struct("<HHBxxx")
_MESSAGE_V2 = struct.Struct("<BHB")
SHARED = 0x02  # flag: the content is a reference to a message stored elsewhere
_FAIL_IF_UNKNOWN = 0x80
_KNOWN = frozenset(Kind)
_CONTINUATION = int(Kind.CONTINUATION)


class Message(NamedTuple):
    """A message: type, flags, content, address, and creation order if tracked."""

    kind: int
    flags: int
    content: bytes
    address: int
    order: int | None

    @property
    def is_shared(self) -> bool:
        """True if the content only refers to a message stored elsewhere."""
        return bool(self.flags & SHARED)


class HeaderPrefix(NamedTuple):
    """The prefix of a header: the span of the first message block, including its checksum, and the message format.

    Version 1 stores the reference count here. Version 2 may store the modification time.
    """

    span: Span
    version: int
    has_order: bool = False
    reference_count: int = 1
    modification_time: int | None = None


class ObjectHeader:
    """All messages of an object, in file order and by type."""

    __slots__ = ("address", "by_kind", "messages", "modification_time", "reference_count")

    def __init__(self, address: int, messages: Sequence[Message], prefix: HeaderPrefix | None = None) -> None:
        self.address = address
        self.messages = tuple(messages)
        self.reference_count = prefix.reference_count if prefix else 1
        self.modification_time = prefix.modification_time if prefix else None
        self.by_kind: dict[int, list[Message]] = {}
        for message in messages:
            if message.kind in self.by_kind:
                self.by_kind[message.kind].append(message)
            else:
                self.by_kind[message.kind] = [message]

    def of_kind(self, kind: Kind) -> list[Message]:
        return self.by_kind.get(kind, [])

    def first(self, kind: Kind) -> Message | None:
        found = self.by_kind.get(kind)
        return found[0] if found else None


class _Block(NamedTuple):
    """A block of messages, with the format of its message prefixes."""

    address: int
    content: bytes
    version: int
    has_order: bool = False


class HeaderBeginning:
    """The messages in the first block of a header, and the location of further blocks."""

    __slots__ = ("_prefix", "_visits", "address", "continuations", "messages")

    def __init__(self, address: int, prefix: HeaderPrefix, visits: Visits) -> None:
        self.address = address
        self._prefix = prefix
        self._visits = visits
        self.messages: list[Message] = []
        self.continuations: list[Span] = []

    def first(self, kind: Kind) -> Message | None:
        """Return the first message of this kind found so far."""
        for message in self.messages:
            if message.kind == kind:
                return message
        return None

    def read_rest(self, sizes: Sizes) -> Step[ObjectHeader]:
        """Return the complete header. Each generation of continuation blocks takes one round."""
        version, has_order = self._prefix.version, self._prefix.has_order
        while self.continuations:
            spans = self.continuations
            buffers = yield spans
            blocks = [
                _continued(span, bytes(buffer), version, has_order) for span, buffer in zip(spans, buffers, strict=True)
            ]
            self.take(blocks, sizes)
        return ObjectHeader(self.address, self.messages, self._prefix)

    def take(self, blocks: list[_Block], sizes: Sizes) -> None:
        """Add the messages of these blocks, and find the continuation blocks that they refer to."""
        continuations: list[Message] = []
        for block in blocks:
            _decode_messages(block, self.messages, continuations)
        self.continuations = [_continuation(message, sizes) for message in continuations]
        for span in self.continuations:
            self._visits.claim(span.address, span.nbytes)


def read_object_header(address: int, sizes: Sizes) -> Step[ObjectHeader]:
    """Return the header at `address`. A small header takes one round, and each generation of continuations one more."""
    beginning = yield from begin_object_header(address, sizes)
    return (yield from beginning.read_rest(sizes))


def begin_object_header(address: int, sizes: Sizes) -> Step[HeaderBeginning]:
    """Return the first block of the header at `address`. A small one takes one round."""
    (head,) = yield [sizes.span_up_to(address, 16, _GUESS_NBYTES, "object header")]
    prefix = _decode_prefix(bytes(head[:64]), address, sizes)
    first, version, has_order = prefix.span, prefix.version, prefix.has_order
    if first.end > address + len(head):
        (head,) = yield [sizes.span(address, first.end - address, "object header")]
    visits = Visits(sizes, "object header")
    visits.claim(address, first.nbytes)
    beginning = HeaderBeginning(address, prefix, visits)
    beginning.take([_Block(first.address, _content(head, address, first, version), version, has_order)], sizes)
    return beginning


def _decode_prefix(head: bytes, address: int, sizes: Sizes) -> HeaderPrefix:
    if head[:4] == b"OHDR":
        return _decode_prefix_v2(head, address, sizes)
    version, _, reference_count, nbytes = _PREFIX_V1.unpack_from(head)
    if version != 1:
        raise MalformedFile(
            f"object header has neither a signature nor version 1, but begins with {head[:4]!r}", at=address
        )
    span = sizes.span(address + _PREFIX_V1.size, nbytes, "object header")
    return HeaderPrefix(span, 1, reference_count=reference_count)


def _decode_prefix_v2(head: bytes, address: int, sizes: Sizes) -> HeaderPrefix:
    cursor = Cursor(head, "object header")
    cursor.skip(4)
    if (version := cursor.u8()) != 2:
        raise MalformedFile(f"object header has unknown version {version}", at=address)
    flags = cursor.u8()
    modification_time = None
    if flags & 0x20:
        cursor.skip(4)  # access time
        modification_time = cursor.u32()
        cursor.skip(8)  # change and birth times
    if flags & 0x10:
        cursor.skip(4)  # thresholds between compact and dense attributes
    nbytes = cursor.uint(1 << (flags & 3))
    span = sizes.span(address + cursor.position, nbytes + 4, "object header")
    return HeaderPrefix(span, 2, bool(flags & 0x04), modification_time=modification_time)


def _content(head: memoryview, address: int, span: Span, version: int) -> bytes:
    """Return the messages in the first block, without the verified checksum."""
    start, end = span.address - address, span.end - address
    if version == 1:
        return bytes(head[start:end])
    check_checksum(head[:end], "object header", address)
    return bytes(head[start : end - 4])


def _continuation(message: Message, sizes: Sizes) -> Span:
    fields = _continuation_format(sizes.offset_nbytes, sizes.length_nbytes)
    if len(message.content) < fields.size:
        raise MalformedFile("continuation message is truncated", at=message.address)
    stored, nbytes = fields.unpack_from(message.content)
    if (address := sizes.address(stored)) is None or nbytes == 0:
        raise MalformedFile("continuation message has no address or no length", at=message.address)
    return sizes.span(address, nbytes, "object header continuation")


@cache
def _continuation_format(offset_nbytes: int, length_nbytes: int) -> struct.Struct:
    return struct.Struct(f"<{WIDTHS[offset_nbytes]}{WIDTHS[length_nbytes]}")


def _continued(span: Span, content: bytes, version: int, has_order: bool) -> _Block:
    if version == 1:
        return _Block(span.address, content, version)
    check_signature(content, b"OCHK", "object header continuation", span.address)
    check_checksum(content, "object header continuation", span.address)
    return _Block(span.address + 4, content[4:-4], version, has_order)


def _decode_messages(block: _Block, messages: list[Message], continuations: list[Message]) -> None:
    """Append the messages of a block to `messages` or `continuations`. A gap at the end of the block is skipped.

    This is one loop without function calls, because each object has about a dozen messages.
    """
    address, content, version, has_order = block
    prefix = _MESSAGE_V1 if version == 1 else _MESSAGE_V2
    prefix_nbytes = prefix.size + 2 * has_order
    unpack, nbytes_in_all = prefix.unpack_from, len(content)
    position, last, order = 0, nbytes_in_all - prefix_nbytes, None
    while position <= last:
        kind, nbytes, flags = unpack(content, position)
        if has_order:
            order = content[position + 4] | content[position + 5] << 8
        position += prefix_nbytes
        end = position + nbytes
        if end > nbytes_in_all:
            raise MalformedFile(f"message of type {kind:#x} extends beyond its header", at=address + position)
        if flags & _FAIL_IF_UNKNOWN and kind not in _KNOWN:
            raise Unsupported(f"message of unknown type {kind:#x}, marked as mandatory for readers")
        if kind == _CONTINUATION:
            continuations.append(Message(kind, flags, content[position:end], address + position, order))
        elif kind:
            messages.append(Message(kind, flags, content[position:end], address + position, order))
        position = end
