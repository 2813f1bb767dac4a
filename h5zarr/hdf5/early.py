"""Reading a dataset before its header is complete.

An object header grows by continuations, which hold most attributes and lie anywhere in the file, each to be found only
through the one before. What describes the values is written first, and so stands in the first block. So the chunk index
is read along with the continuations, instead of after the last of them.
"""

from __future__ import annotations

from h5zarr.errors import H5ZarrError
from h5zarr.hdf5.context import Context
from h5zarr.hdf5.datasets import read_dataset
from h5zarr.hdf5.guard import guarded
from h5zarr.hdf5.header import HeaderBeginning, ObjectHeader
from h5zarr.hdf5.messages.kinds import Kind
from h5zarr.hdf5.model import Dataset
from h5zarr.io.steps import Step, attempt, both

_NEEDED = frozenset((Kind.DATATYPE, Kind.DATASPACE, Kind.LAYOUT))
_DECISIVE = _NEEDED | {Kind.FILTERS, Kind.FILL_VALUE, Kind.FILL_VALUE_OLD, Kind.EXTERNAL_FILES}


def read_early(beginning: HeaderBeginning, context: Context) -> Step[tuple[ObjectHeader, Dataset | None]]:
    """Return the whole header, and the dataset, where the first block says all that it takes to read it."""
    if not beginning.continuations:
        return beginning.header(), None
    known = beginning.header()
    if not known.by_kind.keys() >= _NEEDED:
        return (yield from beginning.read_rest(context.sizes)), None
    header, dataset = yield from both(
        beginning.read_rest(context.sizes), attempt(guarded(read_dataset(known, context)))
    )
    # A continuation may yet have said something: then this was another dataset, and so it is where it made no sense.
    if isinstance(dataset, H5ZarrError) or any(known.of_kind(kind) != header.of_kind(kind) for kind in _DECISIVE):
        return header, None
    return header, dataset
