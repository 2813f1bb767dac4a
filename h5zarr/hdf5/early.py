"""Read a chunk index before the header of its dataset is complete.

An object header grows by continuation blocks, which hold most attributes. They form a chain and may lie anywhere in the
file. The address of the chunk index is usually in the first block. So the index is read together with the
continuations, instead of after the last of them.
"""

from __future__ import annotations

from h5zarr.errors import H5ZarrError
from h5zarr.hdf5.chunks.chunk_index import EarlyIndex, find_grid, read_index
from h5zarr.hdf5.context import Context
from h5zarr.hdf5.header import HeaderBeginning, Message, ObjectHeader
from h5zarr.hdf5.messages.dataspace import decode_dataspace
from h5zarr.hdf5.messages.filters import decode_filters
from h5zarr.hdf5.messages.kinds import Kind
from h5zarr.hdf5.messages.layout import ChunkIndexMessage, decode_layout
from h5zarr.io.steps import Step, attempt, both, guarded


def read_early(beginning: HeaderBeginning, context: Context) -> Step[tuple[ObjectHeader, EarlyIndex | None]]:
    """Return the whole header, and the chunk index if the first block has everything needed to read it.

    Errors in the index are ignored here. They are reported when the dataset itself is read, with its complete header.
    """
    reading = beginning.read_rest(context.sizes)
    layout, dataspace = beginning.first(Kind.LAYOUT), beginning.first(Kind.DATASPACE)
    if not beginning.continuations or layout is None or dataspace is None or dataspace.is_shared:
        return (yield from reading), None
    early = _read_early_index(layout, dataspace, beginning, context)
    header, index = yield from both(reading, attempt(guarded(early)))
    return header, None if isinstance(index, H5ZarrError) else index


def _read_early_index(
    layout: Message, dataspace: Message, beginning: HeaderBeginning, context: Context
) -> Step[EarlyIndex | None]:
    sizes = context.sizes
    message = decode_layout(layout.content, sizes)
    filters = beginning.first(Kind.FILTERS)
    if not isinstance(message, ChunkIndexMessage) or (filters is not None and filters.is_shared):
        return None
    context.claim(message.address, beginning.address, "chunk index")
    extent = decode_dataspace(dataspace.content, sizes.length_nbytes)
    count = 0 if filters is None else len(decode_filters(filters.content))
    grid = find_grid(message, extent, count, sizes, layout.address)
    table = yield from read_index(message, grid, sizes)
    return EarlyIndex(layout.content, message, grid, table)
