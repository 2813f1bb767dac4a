"""The attributes of an object, in the header or in a fractal heap, with their values. Spec: IV.A.2.m."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np

from h5zarr.errors import H5ZarrError, MalformedFile
from h5zarr.hdf5.btree2 import read_records
from h5zarr.hdf5.context import Context
from h5zarr.hdf5.datatype import Datatype
from h5zarr.hdf5.guard import SURPRISES, surprised
from h5zarr.hdf5.header import ObjectHeader
from h5zarr.hdf5.heaps.collections import CollectionsMissing
from h5zarr.hdf5.heaps.fractal import read_heap
from h5zarr.hdf5.messages.attribute import AttributeMessage, decode_attribute, decode_attribute_info
from h5zarr.hdf5.messages.dataspace import decode_dataspace
from h5zarr.hdf5.messages.datatype import decode_datatype
from h5zarr.hdf5.messages.kinds import Kind
from h5zarr.hdf5.model import Attribute, SpaceKind
from h5zarr.hdf5.values import plain_dtype
from h5zarr.io.steps import Step, attempt, both, together

_NAME_INDEX = 8
_RECORD_NBYTES = 17
_SHARED = 0x02


class _Stored(NamedTuple):
    """An attribute message as found: its bytes may be those of a reference to the real one."""

    content: bytes
    is_shared: bool
    order: int | None


class BrokenAttribute(NamedTuple):
    """An attribute that could not be read; `name` is empty where not even that is known."""

    name: str
    error: H5ZarrError


def read_attributes(header: ObjectHeader, context: Context) -> Step[tuple[dict[str, Attribute], list[BrokenAttribute]]]:
    """Return an object's attributes by name, and those that could not be read."""
    stored = [_Stored(message.content, message.is_shared, message.order) for message in header.of_kind(Kind.ATTRIBUTE)]
    broken: list[BrokenAttribute] = []
    if message := header.first(Kind.ATTRIBUTE_INFO):
        dense = yield from attempt(_read_dense(message.content, context))
        if isinstance(dense, H5ZarrError):
            broken.append(BrokenAttribute("", dense))
        else:
            stored += dense
    messages = yield from _read_messages(stored, context)
    attributes: dict[str, Attribute] = {}
    for found in (yield from _read_values(messages, [one.order for one in stored], context)):
        if isinstance(found, BrokenAttribute):
            broken.append(found)
        elif attributes.setdefault(found.name, found) is not found:
            error = MalformedFile("two attributes of this object have this name; the second is left out")
            broken.append(BrokenAttribute(found.name, error))
    return attributes, broken


def _read_dense(content: bytes, context: Context) -> Step[list[_Stored]]:
    """Return the attributes in a fractal heap; heap and index are read together. Spec: III.A.2, record type 8."""
    sizes = context.sizes
    info = decode_attribute_info(content, sizes)
    if info.heap is None or info.name_index is None:
        return []
    context.claim(info.heap, "heap of attributes")
    blocks, (_, slabs) = yield from both(read_heap(info.heap, sizes), read_records(info.name_index, sizes, _NAME_INDEX))
    # A record is a heap ID of 8 bytes, message flags, creation order, and the hash of the name.
    if any(slab.shape[1] != _RECORD_NBYTES for slab in slabs):
        raise MalformedFile(f"attribute index has records of {slabs[0].shape[1]} bytes", at=info.name_index)
    index = b"".join([slab.tobytes() for slab in slabs])
    rows = [index[start : start + _RECORD_NBYTES] for start in range(0, len(index), _RECORD_NBYTES)]
    plain = [row for row in rows if not row[8] & _SHARED]
    contents = yield from blocks.read([row[:8] for row in plain])
    # The ID of a shared attribute is one of the file's heap of shared messages.
    shared = [row for row in rows if row[8] & _SHARED]
    stored = [*zip(plain, contents, strict=True), *((row, b"\x03\x01" + row[:8]) for row in shared)]
    return [
        _Stored(content, bool(row[8] & _SHARED), int.from_bytes(row[9:13], "little") if info.tracks_order else None)
        for row, content in stored
    ]


def _read_messages(stored: list[_Stored], context: Context) -> Step[list[AttributeMessage | BrokenAttribute]]:
    """Return the messages taken apart, whose parts are all where they belong: shared ones have been fetched."""
    found = [None if one.is_shared else _decode_message(one.content) for one in stored]
    if None not in found:
        return cast("list[AttributeMessage | BrokenAttribute]", found)
    fetched = iter(
        (yield from together([_read_shared(stored[n], context) for n, one in enumerate(found) if one is None]))
    )
    return [next(fetched) if one is None else one for one in found]


def _decode_message(content: bytes) -> AttributeMessage | BrokenAttribute | None:
    """Return a message taken apart; None where some of its parts are elsewhere."""
    try:
        message = decode_attribute(content)
    except H5ZarrError as error:
        return BrokenAttribute("", error)
    return None if message.is_shared_in_parts else message


def _read_shared(stored: _Stored, context: Context) -> Step[AttributeMessage | BrokenAttribute]:
    """Return a message that stands elsewhere, or parts of which do."""
    name = ""
    try:
        content = stored.content
        if stored.is_shared:
            content = yield from context.shared.read(Kind.ATTRIBUTE, content)
        message = decode_attribute(content)
        name = message.name
        if message.datatype_is_shared:
            datatype = yield from context.shared.read(Kind.DATATYPE, message.datatype)
            message = message._replace(datatype=datatype)
        if message.dataspace_is_shared:
            dataspace = yield from context.shared.read(Kind.DATASPACE, message.dataspace)
            message = message._replace(dataspace=dataspace)
    except H5ZarrError as error:
        return BrokenAttribute(name, error)
    return message


def _read_values(
    messages: list[AttributeMessage | BrokenAttribute], orders: list[int | None], context: Context
) -> Step[list[Attribute | BrokenAttribute]]:
    """Return the attributes; what all of them need of the global heap is read together."""
    found: list[Attribute | BrokenAttribute | None] = [None] * len(messages)
    waiting = list(range(len(messages)))
    at_first_sight = (_collections(message, context) for message in messages)
    yield from context.heap.read(set[int]().union(*at_first_sight))
    while waiting:
        asked, waiting = waiting, []
        missing: set[int] = set()
        for number in asked:
            try:
                found[number] = _decode_attribute(messages[number], orders[number], context)
            except CollectionsMissing as those:
                waiting.append(number)
                missing |= those.addresses
        yield from context.heap.read(missing)
    return cast("list[Attribute | BrokenAttribute]", found)


def _collections(message: AttributeMessage | BrokenAttribute, context: Context) -> set[int]:
    """Return the collections of the global heap that an attribute needs at first sight: it is then decoded once."""
    if isinstance(message, BrokenAttribute):
        return set()
    try:
        datatype, dtype = _known_type(message.datatype)
    except H5ZarrError:
        return set()
    return context.values.collections(datatype, message.content) if dtype is None else set()


@lru_cache(maxsize=4096)
def _known_type(content: bytes) -> tuple[Datatype, np.dtype[Any] | None]:
    """Return a datatype, and numpy's where that has the same bytes: few types are behind many attributes."""
    datatype = decode_datatype(content)
    return datatype, plain_dtype(datatype)


def _decode_attribute(
    message: AttributeMessage | BrokenAttribute, order: int | None, context: Context
) -> Attribute | BrokenAttribute:
    """Return an attribute with its value, or raise `CollectionsMissing`."""
    if isinstance(message, BrokenAttribute):
        return message
    try:
        datatype, dtype = _known_type(message.datatype)
        dataspace = decode_dataspace(message.dataspace, context.sizes.length_nbytes)
        count, value = dataspace.count, None
        if dtype is not None and len(message.content) >= count * dtype.itemsize:
            elements = np.frombuffer(message.content, dtype, count)
        else:
            elements = context.values.decode(datatype, message.content, count)
        if dataspace.kind is not SpaceKind.NULL:
            value = elements.reshape(dataspace.shape + elements.shape[1:])
    except H5ZarrError as error:
        return BrokenAttribute(message.name, error)
    except SURPRISES as error:
        return BrokenAttribute(message.name, surprised(error))
    return Attribute(name=message.name, datatype=datatype, dataspace=dataspace, value=value, creation_order=order)
