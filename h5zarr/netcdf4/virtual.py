"""Virtual datasets: find the chunks of the source files that supply their values.

References can represent a virtual dataset if its parts are boxes that fit one chunk grid, and if its sources store
these chunks in the same way. All other virtual datasets are assembled from their sources and inlined.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy.typing as npt

from h5zarr.errors import SURPRISES, H5ZarrError, surprised
from h5zarr.hdf5.model import Dataset, ExternalLayout, H5File, VirtualLayout
from h5zarr.io.steps import Step, guarded
from h5zarr.netcdf4.assembling import assemble, check_convertible
from h5zarr.netcdf4.dataset_storage import interpret_storage, stored_run
from h5zarr.netcdf4.element_forms import TEXT, ElementForm
from h5zarr.netcdf4.elsewhere import Elsewhere
from h5zarr.netcdf4.external import interpret_external
from h5zarr.netcdf4.mappings import MappedPart, Mappings, resolve_mappings
from h5zarr.netcdf4.pieces import (
    MOST_CUT,
    Piece,
    are_alike,
    common_chunk,
    cut_chunks,
    is_run,
    join_chunks,
    match_axes,
    overlap,
    pick_chunks,
)
from h5zarr.tree import ConvertedValues, Storage, StoredChunks

_TEXT_NBYTES = 64  # estimated size of one text
Known: TypeAlias = dict[int, StoredChunks | None]


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """The location of a dataset's values, and a virtual dataset's missing sources, which read as the fill value."""

    storage: Storage
    missing: tuple[str, ...] = ()


def locate(file: H5File, dataset: Dataset, form: ElementForm, elsewhere: Elsewhere, shown: tuple[int, ...]) -> Located:
    """Return the location of any dataset's values, in this file or in others. See `interpret_virtual`."""
    try:
        if isinstance(dataset.layout, VirtualLayout):
            return interpret_virtual(file, dataset, form, elsewhere, shown)
        if isinstance(dataset.layout, ExternalLayout):
            return Located(interpret_external(file, dataset, form, elsewhere))
    except H5ZarrError:
        raise
    except SURPRISES as error:  # selections and segments are unchecked
        raise surprised(error) from error
    source = elsewhere.number_of(file)
    return Located(stored_run(file, dataset, form, source) or interpret_storage(file, dataset, form, source))


def interpret_virtual(
    file: H5File, dataset: Dataset, form: ElementForm, elsewhere: Elsewhere, shown: tuple[int, ...] | None = None
) -> Located:
    """Return the location of the values of a virtual dataset.

    `shown` is the shape that readers see, if it is larger than the dataset. Chunks must then not extend beyond the
    dataset. Raises an H5ZarrError if a source cannot be read, or if its values cannot be converted.
    """
    mappings = resolve_mappings(file, dataset, elsewhere)
    if form.is_plain and mappings.shape:
        stored = _Referring(dataset, form, elsewhere, shown or mappings.shape).refer(mappings)
        if stored is not None:
            return Located(stored, mappings.missing)
    check_convertible(mappings, dataset)
    element_nbytes = _TEXT_NBYTES if form.dtype == TEXT else form.dtype.itemsize
    converted = ConvertedValues(
        read=lambda: guarded(_read(mappings, file, dataset, elsewhere)),
        nbytes=prod(mappings.shape + form.shape) * element_nbytes,
    )
    return Located(converted, mappings.missing)


def _read(mappings: Mappings, file: H5File, dataset: Dataset, elsewhere: Elsewhere) -> Step[npt.NDArray[Any]]:
    return assemble(mappings, file, dataset, elsewhere)
    yield  # makes this a step, although it reads nothing from its own source


class _Referring:
    """Finds one chunk grid for all parts of a virtual dataset."""

    def __init__(
        self,
        dataset: Dataset,
        form: ElementForm,
        elsewhere: Elsewhere,
        shown: tuple[int, ...],
        known: Known | None = None,
    ) -> None:
        self._dataset, self._form, self._elsewhere, self._shown = dataset, form, elsewhere, shown
        # Results for virtual sources are shared. A dataset that contains itself finds no chunks.
        self._known = {} if known is None else known

    def refer(self, mappings: Mappings) -> StoredChunks | None:
        """Return the chunks of all parts, or None if they do not fit one grid or are stored in different ways."""
        pieces = []
        for part in mappings.parts:
            if part.virtual.count == 0:
                continue
            piece = self._piece(part)
            if piece is None:
                return None
            pieces.append(piece)
        if not pieces:
            return join_chunks([], tuple(max(1, extent) for extent in mappings.shape), self._form.shape)
        chunk_shape = common_chunk(pieces)
        if chunk_shape is None or not all(self._fits(piece, chunk_shape, mappings.shape) for piece in pieces):
            return None
        cells = [prod(-(-n // c) for n, c in zip(piece.lengths, chunk_shape, strict=True)) for piece in pieces]
        if any(piece.is_plain for piece in pieces) and sum(cells) > MOST_CUT:
            return None
        cut = [cut_chunks(piece, chunk_shape) if piece.is_plain else pick_chunks(piece) for piece in pieces]
        gaps = any(
            len(rows.address) < n and not one.has_same_fill for rows, n, one in zip(cut, cells, pieces, strict=True)
        )
        if gaps or not are_alike(cut) or overlap(pieces, chunk_shape, mappings.shape, sum(cells)):
            return None
        return join_chunks(cut, chunk_shape, self._form.shape)

    def _piece(self, part: MappedPart) -> Piece | None:
        stored = self._stored(part)
        if stored is None or not (part.virtual.is_box and part.source.is_box):
            return None
        source_chunk = stored.chunk_shape[: len(part.source.axes)]
        axes = match_axes(part.virtual.lengths, part.source.lengths, source_chunk)
        if axes is None:
            return None
        return Piece(
            start=part.virtual.lower,
            lengths=part.virtual.lengths,
            axes=axes,
            source_start=part.source.lower,
            source_lengths=part.source.lengths,
            source_shape=part.source_shape,
            stored=stored,
            has_same_fill=_unwritten(part.dataset) == _unwritten(self._dataset),
        )

    def _stored(self, part: MappedPart) -> StoredChunks | None:
        """Return the chunks of a source if its elements have exactly the same bytes, else None."""
        if part.dataset.datatype != self._dataset.datatype:
            return None
        if id(part.dataset) not in self._known:
            self._known[id(part.dataset)] = None
            self._known[id(part.dataset)] = self._find_stored(part.file, part.dataset)
        return self._known[id(part.dataset)]

    def _find_stored(self, file: H5File, dataset: Dataset) -> StoredChunks | None:
        try:
            storage: Storage
            if isinstance(dataset.layout, VirtualLayout):
                mappings = resolve_mappings(file, dataset, self._elsewhere)
                inner = _Referring(dataset, self._form, self._elsewhere, mappings.shape, self._known)
                return inner.refer(mappings) if mappings.shape else None
            if isinstance(dataset.layout, ExternalLayout):
                storage = interpret_external(file, dataset, self._form, self._elsewhere)
            else:
                storage = interpret_storage(file, dataset, self._form, self._elsewhere.number_of(file))
        except H5ZarrError:
            return None  # if the values are needed, the same error is raised again
        return storage if isinstance(storage, StoredChunks) else None

    def _fits(self, piece: Piece, chunk_shape: tuple[int, ...], shape: tuple[int, ...]) -> bool:
        """Return whether the piece consists of whole chunks.

        Only the end of the virtual dataset may cut a chunk off.
        """
        for number, chunk in enumerate(chunk_shape):
            start, length, axis = piece.start[number], piece.lengths[number], piece.axes[number]
            at_end = not piece.is_plain and start + length == shape[number] == self._shown[number]
            if start % chunk or (length % chunk and not at_end):
                return False
            if not piece.is_plain and axis is not None and piece.source_start[axis] % chunk:
                return False
        return not piece.is_plain or is_run(piece, chunk_shape)


def _unwritten(dataset: Dataset) -> bytes:
    """Return the value of an unwritten element.

    A virtual dataset uses its fill value even if its write time is "never".
    """
    fill = dataset.fill.element if isinstance(dataset.layout, VirtualLayout) else dataset.fill.unwritten
    return fill or bytes(dataset.datatype.nbytes)
