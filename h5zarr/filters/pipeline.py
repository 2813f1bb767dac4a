"""Filter pipelines: undo or apply all filters of a chunk, and assemble chunks to an array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from h5zarr.errors import H5ZarrError, MalformedFile, Unsupported


class Applied(Protocol):
    """One filter of a pipeline: its number, the name that the file gives it, and its client data."""

    @property
    def number(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def values(self) -> tuple[int, ...]: ...


class UnknownFilter(Unsupported):
    """Neither h5zarr nor an installed package decodes the filter."""

    remedy = (
        "Install a package that adds the filter to h5zarr, read the file with h5py and the filter's plugin, "
        "or copy it with a supported filter: h5repack -f GZIP=6"
    )


# The functions below import the table when they are called: most files have no filtered metadata, and scanning them
# takes less time than the import.


def undo_filters(content: bytes, filters: Sequence[Applied], mask: int, nbytes: int) -> bytes:
    """Return `content` as it was before the filters. `nbytes` is the size of the unfiltered chunk.

    Filters are in the order of writing; those whose bit is set in `mask` were skipped. `nbytes` limits what filters
    allocate. The result may be shorter or slightly longer; the caller decides whether that is an error.
    """
    for position in reversed(range(len(filters))):
        if not mask >> position & 1:
            content = _undo(content, filters[position], nbytes)
    return content


def _undo(content: bytes, applied: Applied, nbytes: int) -> bytes:
    from h5zarr.filters.table import find_kind

    kind = find_kind(applied.number)
    if kind is None:
        raise unknown_filter(applied)
    return kind.decode(content, applied.values, nbytes)


def redo_filters(content: bytes, filters: Sequence[Applied]) -> bytes:
    """Return `content` after all filters, applied in the order of writing."""
    from h5zarr.filters.table import find_kind

    for one in filters:
        kind = find_kind(one.number)
        if kind is None:
            raise unknown_filter(one)
        try:
            content = kind.encode(content, one.values)
        except H5ZarrError:
            raise
        except Exception as error:  # client data are untrusted, and each library reports them in its own way
            raise MalformedFile(f"filter {one.number} cannot be applied with its settings: {error}") from error
    return content


def is_known(number: int) -> bool:
    """Return whether the filter can be decoded, given the packages it needs."""
    from h5zarr.filters.table import find_kind

    return find_kind(number) is not None


def unknown_filter(applied: Applied) -> UnknownFilter:
    """Return the error for a filter that cannot be decoded, with the reason if there is one."""
    from h5zarr.filters.table import REFUSED

    refused = REFUSED.get(applied.number)
    reason = "is not known" if refused is None else refused.reason
    return UnknownFilter(f"filter {applied.number} ({applied.name or 'unnamed'}) {reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkedArray:
    """An array stored in chunks: elements of `element_nbytes` bytes, and `fill` where a chunk is missing."""

    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    element_nbytes: int
    fill: bytes | None
    filters: Sequence[Applied]

    def assemble(
        self, contents: Sequence[bytes | memoryview], index: npt.NDArray[np.int64], masks: Sequence[int]
    ) -> npt.NDArray[Any]:
        """Return the array of raw elements, of type `V`; `index` is (count, rank) coordinates in the chunk grid."""
        element = np.dtype(f"V{self.element_nbytes}")
        whole = np.zeros(self.shape, element)
        if self.fill is not None:
            whole[...] = np.frombuffer(self.fill, element, 1)[0]
        chunk_nbytes = element.itemsize * prod(self.chunk_shape)
        for content, mask, coordinates in zip(contents, masks, index.tolist(), strict=True):
            plain = undo_filters(bytes(content), self.filters, mask, chunk_nbytes)
            if len(plain) < chunk_nbytes:
                raise MalformedFile(f"chunk {tuple(coordinates)} has {len(plain)} bytes instead of {chunk_nbytes}")
            block = np.frombuffer(plain, element, prod(self.chunk_shape)).reshape(self.chunk_shape)
            corner = [number * extent for number, extent in zip(coordinates, self.chunk_shape, strict=True)]
            place = tuple(slice(start, start + n) for start, n in zip(corner, self.chunk_shape, strict=True))
            part = tuple(slice(0, max(0, end - start)) for start, end in zip(corner, self.shape, strict=True))
            whole[place] = block[part]
        return whole
