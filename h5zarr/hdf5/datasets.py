"""Read a dataset from the messages in its header."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.chunks.chunk_index import EarlyIndex, find_grid, read_index
from h5zarr.hdf5.chunks.chunk_table import finish_table
from h5zarr.hdf5.context import Context
from h5zarr.hdf5.datatype import Datatype
from h5zarr.hdf5.header import Message, ObjectHeader
from h5zarr.hdf5.heaps.local import read_local_heap
from h5zarr.hdf5.messages.dataspace import decode_dataspace
from h5zarr.hdf5.messages.datatype import decode_datatype
from h5zarr.hdf5.messages.external import decode_external_files
from h5zarr.hdf5.messages.fill_value import DEFAULT_FILL, decode_fill, decode_old_fill
from h5zarr.hdf5.messages.filters import decode_filters
from h5zarr.hdf5.messages.kinds import Kind
from h5zarr.hdf5.messages.layout import ChunkIndexMessage, LayoutMessage, VirtualMessage, decode_layout
from h5zarr.hdf5.model import (
    ChunkedLayout,
    ContiguousLayout,
    Dataset,
    Dataspace,
    ExternalLayout,
    ExternalSegment,
    FillValue,
    Filter,
    IndexKind,
    Layout,
)
from h5zarr.hdf5.sizes import Sizes
from h5zarr.hdf5.virtual import read_virtual
from h5zarr.io.span import Span
from h5zarr.io.steps import Hints, Step

T = TypeVar("T")
_HINT_NBYTES = 64 * 1024
_HINT_CHUNKS = 16


class _Described(NamedTuple):
    """The description of a dataset's elements, independent of their storage."""

    datatype: Datatype
    dataspace: Dataspace
    filters: tuple[Filter, ...]


def read_content(message: Message, context: Context) -> Step[bytes]:
    """Return the content of a message, which may be shared and stored elsewhere."""
    if message.is_shared:
        return (yield from context.shared.read(Kind(message.kind), message.content))
    return message.content


def decode_at(message: Message, content: bytes, decode: Callable[[bytes], T]) -> T:
    """Return a decoded message. An error without an address gets the address of the message."""
    try:
        return decode(content)
    except MalformedFile as error:
        if error.address is None:
            raise MalformedFile(str(error), at=message.address) from error
        raise


def read_datatype(header: ObjectHeader, context: Context) -> Step[Datatype]:
    """Return the datatype of a dataset or committed datatype."""
    datatype, _ = yield from _read_datatype(header, context)
    return datatype


def _read_datatype(header: ObjectHeader, context: Context) -> Step[tuple[Datatype, bytes]]:
    """Return a datatype and the content of its message."""
    message = _required(header, Kind.DATATYPE)
    content = yield from read_content(message, context)
    return decode_at(message, content, decode_datatype), content


def read_dataset(
    header: ObjectHeader, context: Context, early: EarlyIndex | None = None
) -> Step[Callable[..., Dataset]]:
    """Return a function that makes the dataset from its attributes and notes, which are read separately.

    `early` is a chunk index that may have been read before.
    """
    sizes = context.sizes
    datatype, stated = yield from _read_datatype(header, context)
    message = _required(header, Kind.DATASPACE)
    content = yield from read_content(message, context)
    dataspace = decode_at(message, content, lambda stored: decode_dataspace(stored, sizes.length_nbytes))
    filters: tuple[Filter, ...] = ()
    if found := header.first(Kind.FILTERS):
        filters = decode_at(found, (yield from read_content(found, context)), decode_filters)
    fill = yield from _read_fill(header, datatype, context)
    layout = yield from _read_layout(header, _Described(datatype, dataspace, filters), context, early)
    if hints := _hint_values(layout, dataspace):
        yield hints
    return partial(
        Dataset,
        address=header.address,
        datatype=datatype,
        datatype_message=stated,
        dataspace=dataspace,
        layout=layout,
        filters=filters,
        fill=fill,
    )


def _hint_values(layout: Layout, dataspace: Dataspace) -> Hints:
    """Return the spans of a small one-dimensional dataset. It is probably a coordinate, which will be inlined soon."""
    if dataspace.rank != 1:
        return Hints()
    if isinstance(layout, ContiguousLayout) and layout.address is not None and layout.nbytes <= _HINT_NBYTES:
        return Hints([Span(layout.address, layout.nbytes)])
    if isinstance(layout, ChunkedLayout) and 0 < len(layout.chunks) <= _HINT_CHUNKS:
        table = layout.chunks
        if int(table.nbytes.sum()) <= _HINT_NBYTES:
            return Hints(Span(*row) for row in zip(table.address.tolist(), table.nbytes.tolist(), strict=True))
    return Hints()


def _required(header: ObjectHeader, kind: Kind) -> Message:
    message = header.first(kind)
    if message is None:
        raise MalformedFile(f"object has no {kind.name.lower()} message", at=header.address)
    return message


def _read_fill(header: ObjectHeader, datatype: Datatype, context: Context) -> Step[FillValue]:
    """Return the fill value. The new message takes precedence over the old one."""
    fill = DEFAULT_FILL
    if message := header.first(Kind.FILL_VALUE):
        fill = decode_at(message, (yield from read_content(message, context)), decode_fill)
    elif message := header.first(Kind.FILL_VALUE_OLD):
        fill = decode_at(message, (yield from read_content(message, context)), decode_old_fill)
    if fill.element is not None and message is not None and len(fill.element) != datatype.nbytes:
        what = f"fill value has {len(fill.element)} bytes, but an element has {datatype.nbytes}"
        raise MalformedFile(what, at=message.address)
    return fill


def _read_layout(header: ObjectHeader, dataset: _Described, context: Context, early: EarlyIndex | None) -> Step[Layout]:
    datatype, dataspace, _ = dataset
    message = _required(header, Kind.LAYOUT)
    decoded: LayoutMessage
    if early is not None and early.layout == message.content:
        decoded = early.message
    else:
        decoded = decode_at(message, message.content, lambda content: decode_layout(content, context.sizes))
    if isinstance(decoded, VirtualMessage):
        return (yield from read_virtual(decoded, context))
    if isinstance(decoded, ChunkIndexMessage):
        context.claim(decoded.address, header.address, "chunk index")
        return (yield from _read_chunks(decoded, message, dataset, context.sizes, early))
    if isinstance(decoded, ContiguousLayout):
        if external := header.first(Kind.EXTERNAL_FILES):
            return (yield from _read_external(external, context.sizes))
        return _contiguous(decoded, datatype, dataspace, context.sizes, message.address)
    if len(decoded.content) != dataspace.count * datatype.nbytes:
        what = f"compact data has {len(decoded.content)} bytes, expected {dataspace.count * datatype.nbytes}"
        raise MalformedFile(what, at=message.address)
    return decoded


def _contiguous(stored: ContiguousLayout, datatype: Datatype, dataspace: Dataspace, sizes: Sizes, at: int) -> Layout:
    nbytes = dataspace.count * datatype.nbytes
    if stored.address is None or nbytes == 0:
        return ContiguousLayout(None, nbytes)
    if 0 <= stored.nbytes < nbytes:
        raise MalformedFile(f"contiguous data has {stored.nbytes} bytes, expected {nbytes}", at=at)
    sizes.span(stored.address, nbytes, "contiguous data")
    return ContiguousLayout(stored.address, nbytes)


_SEARCHED = (IndexKind.BTREE_V1, IndexKind.BTREE_V2)  # readers search these indexes by key, so order matters


def _read_chunks(
    message: ChunkIndexMessage, stored: Message, dataset: _Described, sizes: Sizes, early: EarlyIndex | None
) -> Step[ChunkedLayout]:
    if message.element_nbytes != dataset.datatype.nbytes:
        what = f"chunk elements have {message.element_nbytes} bytes, but the datatype has {dataset.datatype.nbytes}"
        raise MalformedFile(what, at=stored.address)
    grid = find_grid(message, dataset.dataspace, len(dataset.filters), sizes, stored.address)
    if early is not None and early.fits(stored.content, grid):
        table = early.table
    else:
        table = yield from read_index(message, grid, sizes)
    return ChunkedLayout(
        chunk_shape=message.chunk_shape,
        index_kind=message.kind,
        chunks=finish_table(table, grid, sizes, is_searched=message.kind in _SEARCHED),
        edge_chunks_unfiltered=message.edge_chunks_unfiltered,
    )


def _read_external(message: Message, sizes: Sizes) -> Step[ExternalLayout]:
    files = decode_at(message, message.content, lambda content: decode_external_files(content, sizes))
    heap = yield from read_local_heap(files.heap, sizes)
    return ExternalLayout(
        tuple(
            ExternalSegment(file=heap.name(slot.name_at), address=slot.address, nbytes=slot.nbytes)
            for slot in files.slots
        )
    )
