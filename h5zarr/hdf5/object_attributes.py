"""Read the attributes of an object from its header or from a fractal heap. Spec: IV.A.2.m."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from h5zarr.errors import SURPRISES, H5ZarrError, MalformedFile, surprised
from h5zarr.hdf5.btree2 import read_records
from h5zarr.hdf5.context import Context
from h5zarr.hdf5.datatype import Datatype, String
from h5zarr.hdf5.header import SHARED, Message, ObjectHeader
from h5zarr.hdf5.heaps.collections import CollectionsMissing
from h5zarr.hdf5.heaps.fractal import read_heap
from h5zarr.hdf5.messages.attribute import AttributeMessage, decode_attribute, decode_attribute_info, value_start
from h5zarr.hdf5.messages.dataspace import decode_dataspace
from h5zarr.hdf5.messages.datatype import decode_datatype
from h5zarr.hdf5.messages.kinds import Kind
from h5zarr.hdf5.model import Attribute, Dataspace, SpaceKind
from h5zarr.hdf5.numpy_values import plain_dtype
from h5zarr.io.steps import Step, attempt, both, together

_NAME_INDEX = 8
_SMALL_NBYTES = 256  # largest message that is cached with its value
_RECORD = struct.Struct("<8sBI4x")  # heap ID, message flags, creation order; the hash of the name follows


class BrokenAttribute(NamedTuple):
    """An attribute that could not be read. `name` is empty if unknown."""

    name: str
    error: H5ZarrError


def read_attributes(header: ObjectHeader, context: Context) -> Step[tuple[dict[str, Attribute], list[BrokenAttribute]]]:
    """Return an object's attributes by name, and the attributes that could not be read."""
    stored = list(header.of_kind(Kind.ATTRIBUTE))
    broken: list[BrokenAttribute] = []
    if message := header.first(Kind.ATTRIBUTE_INFO):
        dense = yield from attempt(_read_dense(message.content, header.address, context))
        if isinstance(dense, H5ZarrError):
            broken.append(BrokenAttribute("", dense))
        else:
            stored += dense
    found = yield from _read_each(stored, context)
    if BrokenAttribute not in map(type, found):
        attributes = {one.name: one for one in cast("list[Attribute]", found)}
        if len(attributes) == len(found):
            return attributes, broken
    return _sort_out(found, broken), broken


def _sort_out(found: list[Attribute | BrokenAttribute], broken: list[BrokenAttribute]) -> dict[str, Attribute]:
    """Return the attributes by name. Duplicates and broken attributes are added to `broken`."""
    attributes: dict[str, Attribute] = {}
    for one in found:
        if isinstance(one, BrokenAttribute):
            broken.append(one)
        elif attributes.setdefault(one.name, one) is not one:
            error = MalformedFile("two attributes of this object have this name; the second one is left out")
            broken.append(BrokenAttribute(one.name, error))
    return attributes


def _read_dense(content: bytes, owner: int, context: Context) -> Step[list[Message]]:
    """Return the messages of dense attributes. Heap and index are read together. Spec: III.A.2, record type 8."""
    sizes = context.sizes
    info = decode_attribute_info(content, sizes)
    if info.heap is None or info.name_index is None:
        return []
    context.claim(info.heap, owner, "heap of attributes")
    blocks, (_, slabs) = yield from both(read_heap(info.heap, sizes), read_records(info.name_index, sizes, _NAME_INDEX))
    if any(slab.shape[1] != _RECORD.size for slab in slabs):
        raise MalformedFile(f"attribute index has records of {slabs[0].shape[1]} bytes", at=info.name_index)
    records = [record for slab in slabs for record in _RECORD.iter_unpack(slab.data)]
    contents = iter((yield from blocks.read([heap_id for heap_id, flags, _ in records if not flags & SHARED])))
    # The ID of a shared attribute refers to the file's heap of shared messages.
    return [
        Message(
            Kind.ATTRIBUTE,
            flags,
            b"\x03\x01" + heap_id if flags & SHARED else next(contents),
            info.heap,
            order if info.tracks_order else None,
        )
        for heap_id, flags, order in records
    ]


class _Form(NamedTuple):
    """The common part of attributes with the same name, type and shape. `dtype` is a numpy type with the same bytes."""

    name: str
    datatype: Datatype
    dataspace: Dataspace
    element_count: int
    nbytes: int
    dtype: np.dtype[Any] | None


class _Parts(NamedTuple):
    """An attribute with an undecoded value."""

    form: _Form
    content: bytes


def _form(message: AttributeMessage, length_nbytes: int) -> _Form:
    """Return the form of an attribute whose datatype and dataspace are not shared."""
    datatype, dataspace = decode_datatype(message.datatype), decode_dataspace(message.dataspace, length_nbytes)
    count = dataspace.count
    return _Form(message.name, datatype, dataspace, count, count * datatype.nbytes, plain_dtype(datatype))


@lru_cache(maxsize=4096)
def _known_form(head: bytes, length_nbytes: int) -> _Form | None:
    """Return the form described by the part of a message before its value, or None if parts are shared.

    Cached, because the thousands of attributes of a file have a few dozen names, types and shapes.
    """
    message = decode_attribute(head)
    return None if message.is_shared_in_parts else _form(message, length_nbytes)


_known: dict[tuple[bytes, int | None, int], Attribute] = {}
"""Cached attributes by message. The same units, fill values and scales recur in thousands of variables and files.

Only attributes whose messages are self-contained are cached.
"""

_MOST_KNOWN = 4096


def _remember(message: Message, length_nbytes: int, found: Attribute) -> None:
    """Cache an attribute whose value depends only on its message."""
    if len(message.content) > _SMALL_NBYTES or message.is_shared:
        return
    if plain_dtype(found.datatype) is None and not isinstance(found.datatype, String):
        return
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    if found.value is not None:
        found.value.flags.writeable = False
    _known[message.content, message.order, length_nbytes] = found


def _read_each(stored: list[Message], context: Context) -> Step[list[Attribute | BrokenAttribute]]:
    """Return the attributes in these messages, in order."""
    length_nbytes = context.sizes.length_nbytes
    found: list[Attribute | BrokenAttribute | None] = [
        None if flags & SHARED else _known.get((content, order, length_nbytes))
        for _, flags, content, _, order in stored
    ]
    others = [number for number, known in enumerate(found) if known is None]
    if others:
        messages = [stored[number] for number in others]
        parts = yield from _read_parts(messages, context)
        read = yield from _read_values(parts, [message.order for message in messages], context)
        for number, message, one in zip(others, messages, read, strict=True):
            found[number] = one
            if isinstance(one, Attribute):
                _remember(message, length_nbytes, one)
    return cast("list[Attribute | BrokenAttribute]", found)


def _read_parts(stored: list[Message], context: Context) -> Step[list[_Parts | BrokenAttribute]]:
    """Return the parts of each message. Shared messages are read first."""
    length_nbytes = context.sizes.length_nbytes
    found = [None if one.is_shared else _parts(one.content, length_nbytes) for one in stored]
    if None not in found:
        return cast("list[_Parts | BrokenAttribute]", found)
    fetched = iter(
        (yield from together([_read_shared(stored[n], context) for n, one in enumerate(found) if one is None]))
    )
    return [next(fetched) if one is None else one for one in found]


def _parts(content: bytes, length_nbytes: int) -> _Parts | BrokenAttribute | None:
    """Return the parts of a message, or None if some of them are shared."""
    try:
        start = value_start(content)
        form = _known_form(content[:start], length_nbytes)
    except H5ZarrError as error:
        return BrokenAttribute(_name(content), error)
    return None if form is None else _Parts(form, content[start:])


def _name(content: bytes) -> str:
    """Return the name in a message that may be broken, or ""."""
    try:
        return decode_attribute(content).name
    except H5ZarrError:
        return ""


def _read_shared(stored: Message, context: Context) -> Step[_Parts | BrokenAttribute]:
    """Return the parts of a message that is shared or has shared parts."""
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
        return _Parts(_form(message, context.sizes.length_nbytes), message.content)
    except H5ZarrError as error:
        return BrokenAttribute(name, error)


def _read_values(
    parts: list[_Parts | BrokenAttribute], orders: list[int | None], context: Context
) -> Step[list[Attribute | BrokenAttribute]]:
    """Return the attributes. Heap collections are read together for all of them."""
    found: list[Attribute | BrokenAttribute | None] = [None] * len(parts)
    waiting = list(range(len(parts)))
    missing = _collections(parts, context)
    while waiting:
        yield from context.heap.read(missing)
        asked, waiting, missing = waiting, [], set()
        for number in asked:
            try:
                found[number] = _decode_attribute(parts[number], orders[number], context)
            except CollectionsMissing as those:
                waiting.append(number)
                missing |= those.addresses
    return cast("list[Attribute | BrokenAttribute]", found)


def _collections(parts: list[_Parts | BrokenAttribute], context: Context) -> set[int]:
    """Return the heap collections that attributes directly refer to. Reading them first avoids decoding twice."""
    needed: set[int] = set()
    for one in parts:
        if isinstance(one, _Parts) and one.form.dtype is None:
            needed |= context.values.collections(one.form.datatype, one.content)
    return needed


def _decode_attribute(
    parts: _Parts | BrokenAttribute, order: int | None, context: Context
) -> Attribute | BrokenAttribute:
    """Return an attribute with its value, or raise `CollectionsMissing`."""
    if isinstance(parts, BrokenAttribute):
        return parts
    (name, datatype, dataspace, count, nbytes, dtype), content = parts
    value: npt.NDArray[Any] | None = None
    try:
        if dataspace.kind is SpaceKind.NULL:
            pass
        elif dtype is not None and len(content) >= nbytes:
            value = np.ndarray(dataspace.shape, dtype, content)
        else:
            elements = context.values.decode(datatype, content, count)
            value = elements.reshape(dataspace.shape + elements.shape[1:])
    except H5ZarrError as error:
        return BrokenAttribute(name, error)
    except SURPRISES as error:
        return BrokenAttribute(name, surprised(error))
    return Attribute(name=name, datatype=datatype, dataspace=dataspace, value=value, creation_order=order)
