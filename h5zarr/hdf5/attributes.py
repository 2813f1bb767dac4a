"""The attributes of an object, in the header or in a fractal heap, with their values. Spec: IV.A.2.m."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from h5zarr.errors import H5ZarrError, MalformedFile
from h5zarr.hdf5.btree2 import read_records
from h5zarr.hdf5.context import Context
from h5zarr.hdf5.datatype import Datatype
from h5zarr.hdf5.guard import guarded
from h5zarr.hdf5.header import ObjectHeader
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
_REMEMBERED_NBYTES = 256


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
    decoded = [one if one.is_shared else _decode(one, context.sizes.length_nbytes) for one in stored]
    steps = [
        _read_attribute(found, one.order, context)
        for one, found in zip(stored, decoded, strict=True)
        if isinstance(found, _Stored | AttributeMessage)
    ]
    read = iter((yield from together(steps)))
    attributes: dict[str, Attribute] = {}
    for found in decoded:
        attribute = next(read) if isinstance(found, _Stored | AttributeMessage) else found
        if isinstance(attribute, BrokenAttribute):
            broken.append(attribute)
        elif attributes.setdefault(attribute.name, attribute) is not attribute:
            error = MalformedFile("two attributes of this object have this name; the second is left out")
            broken.append(BrokenAttribute(attribute.name, error))
    return attributes, broken


@lru_cache(maxsize=4096)
def _plain_type(content: bytes) -> tuple[Datatype, np.dtype[Any]] | None:
    """Return a datatype and numpy's equal; None where values must be converted, fetched or complained of."""
    try:
        datatype = decode_datatype(content)
        dtype = plain_dtype(datatype)
    except H5ZarrError:
        return None
    return None if dtype is None or dtype.subdtype is not None else (datatype, dtype)


def _decode(stored: _Stored, length_nbytes: int) -> Attribute | AttributeMessage | BrokenAttribute:
    """Return an attribute as far as its message goes; short ones are remembered, because datasets repeat them."""
    decode = _decode_simple if len(stored.content) <= _REMEMBERED_NBYTES else _decode_simple.__wrapped__
    return decode(stored.content, stored.order, length_nbytes)


@lru_cache(maxsize=8192)
def _decode_simple(
    content: bytes, order: int | None, length_nbytes: int
) -> Attribute | AttributeMessage | BrokenAttribute:
    """Return an attribute that is complete in its message and whose bytes numpy understands; any other taken apart.

    A short cut for what most attributes are, past the machinery for the rest.
    """
    try:
        message = decode_attribute(content)
    except H5ZarrError as error:
        return BrokenAttribute("", error)
    if message.datatype_is_shared or message.dataspace_is_shared or (known := _plain_type(message.datatype)) is None:
        return message
    try:
        dataspace = decode_dataspace(message.dataspace, length_nbytes)
    except H5ZarrError as error:
        return BrokenAttribute(message.name, error)
    datatype, dtype = known
    if dataspace.kind is SpaceKind.NULL or len(message.content) < dataspace.count * dtype.itemsize:
        return message
    value = np.frombuffer(message.content, dtype, dataspace.count).reshape(dataspace.shape)
    return Attribute(name=message.name, datatype=datatype, dataspace=dataspace, value=value, creation_order=order)


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


def _read_attribute(
    found: _Stored | AttributeMessage, order: int | None, context: Context
) -> Step[Attribute | BrokenAttribute]:
    """Return an attribute that is not simple; `found` is its message, or says where that is."""
    name = ""
    try:
        if isinstance(found, _Stored):
            found = decode_attribute((yield from context.shared.read(Kind.ATTRIBUTE, found.content)))
        name = found.name
        return (yield from guarded(_read_value(found, order, context)))
    except H5ZarrError as error:
        return BrokenAttribute(name, error)


def _read_value(message: AttributeMessage, order: int | None, context: Context) -> Step[Attribute]:
    stored_type, stored_space = message.datatype, message.dataspace
    if message.datatype_is_shared:
        stored_type = yield from context.shared.read(Kind.DATATYPE, stored_type)
    if message.dataspace_is_shared:
        stored_space = yield from context.shared.read(Kind.DATASPACE, stored_space)
    datatype = decode_datatype(stored_type)
    dataspace = decode_dataspace(stored_space, context.sizes.length_nbytes)
    value = None
    if dataspace.kind is not SpaceKind.NULL:
        elements = yield from context.values.read(datatype, message.content, dataspace.count)
        value = elements.reshape(dataspace.shape + elements.shape[1:])
    return Attribute(name=message.name, datatype=datatype, dataspace=dataspace, value=value, creation_order=order)
