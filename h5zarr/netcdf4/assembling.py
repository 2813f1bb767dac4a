"""The values of a virtual dataset, put together from its sources: for those that no reference can show."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import Unsupported
from h5zarr.hdf5.datatype import Datatype, FixedPoint, FloatingPoint, String, VariableLengthString
from h5zarr.hdf5.model import (
    ChunkedLayout,
    ChunkTable,
    ContiguousLayout,
    Dataset,
    ExternalLayout,
    H5File,
    VirtualLayout,
)
from h5zarr.netcdf4.elements import TEXT, ElementForm, interpret_element
from h5zarr.netcdf4.elsewhere import Elsewhere
from h5zarr.netcdf4.external import find_pieces, read_external
from h5zarr.netcdf4.fill import interpret_fill
from h5zarr.netcdf4.mappings import MOST_LEVELS, Mappings, Part, resolve_mappings
from h5zarr.netcdf4.storage import convert

_MOST_NBYTES = 512 << 20  # of the sources, for one virtual dataset: a small selection may lie far apart
_Corner = tuple[int, ...]


def check_convertible(mappings: Mappings, dataset: Dataset) -> None:
    """Raise where the values cannot be put together, or only by reading far too much."""
    needed = 0
    for part in mappings.parts:
        _check_types(part.dataset.datatype, dataset.datatype)
        trimmed, _ = trim(part.dataset, part.source.lower, part.source.upper)
        needed += trimmed.dataspace.count * trimmed.datatype.nbytes
    if needed > _MOST_NBYTES:
        raise Unsupported(f"its parts do not fit chunks, and {needed} bytes would have to be read to put them together")


def assemble(mappings: Mappings, file: H5File, dataset: Dataset, elsewhere: Elsewhere) -> npt.NDArray[Any]:
    """Return all values of a virtual dataset, as readers should see them."""
    form = interpret_element(dataset.datatype)
    whole = _Assembling(elsewhere).all(mappings, dataset, form)
    return convert(whole, form, file) if form.dtype == TEXT else whole


class _Assembling:
    """Virtual datasets that are being put together: each once, however many others show it."""

    def __init__(self, elsewhere: Elsewhere) -> None:
        self._elsewhere = elsewhere
        self._known: dict[int, npt.NDArray[Any]] = {}
        self._levels = MOST_LEVELS

    def all(self, mappings: Mappings, dataset: Dataset, form: ElementForm) -> npt.NDArray[Any]:
        """Return all values; text is still bytes."""
        fill: Any = b"" if form.dtype == TEXT else interpret_fill(dataset, form)
        whole = np.full(mappings.shape + form.shape, np.zeros((), form.dtype)[()] if fill is None else fill, form.dtype)
        for part in mappings.parts:
            if part.source.count:
                values, corner = self._read(part)
                part.virtual.put(_converted(part.source.take(values, corner), form.dtype), whole)
        return whole

    def _read(self, part: Part) -> tuple[npt.NDArray[Any], _Corner]:
        """Return the values around what a part shows, and where in the source they begin."""
        form = interpret_element(part.dataset.datatype)
        origin = (0,) * len(part.source_shape)
        if isinstance(part.dataset.layout, VirtualLayout):
            return self._virtual(part, form), origin
        if isinstance(part.dataset.layout, ExternalLayout):
            if form.dtype == TEXT:
                raise Unsupported("text of variable length or references in a raw file")
            pieces = find_pieces(part.file, part.dataset, self._elsewhere)
            return read_external(part.dataset, form, pieces, self._elsewhere), origin
        dataset, corner = trim(part.dataset, part.source.lower, part.source.upper)
        number = self._elsewhere.number_of(part.file)
        values = self._elsewhere.run(number, part.file.contents.read_values(dataset))
        return (values if form.dtype == TEXT else values.astype(form.dtype)), corner

    def _virtual(self, part: Part, form: ElementForm) -> npt.NDArray[Any]:
        if id(part.dataset) not in self._known:
            if self._levels == 0:
                raise Unsupported(f"more than {MOST_LEVELS} virtual datasets show one another")
            self._levels -= 1
            mappings = resolve_mappings(part.file, part.dataset, self._elsewhere)
            check_convertible(mappings, part.dataset)
            self._known[id(part.dataset)] = self.all(mappings, part.dataset, form)
            self._levels += 1
        return self._known[id(part.dataset)]


def trim(dataset: Dataset, lower: _Corner, upper: _Corner) -> tuple[Dataset, _Corner]:
    """Return a dataset that has only the chunks between two corners, and where in the original it begins."""
    shape = dataset.dataspace.shape
    match dataset.layout:
        case ChunkedLayout(chunk_shape=chunk_shape) as layout:
            first = [start // chunk for start, chunk in zip(lower, chunk_shape, strict=True)]
            end = [-(-stop // chunk) for stop, chunk in zip(upper, chunk_shape, strict=True)]
            corner = tuple(number * chunk for number, chunk in zip(first, chunk_shape, strict=True))
            behind = [min(n, number * chunk) for number, chunk, n in zip(end, chunk_shape, shape, strict=True)]
            table = layout.chunks
            rows = ((table.index >= first) & (table.index < end)).all(axis=1)
            chunks = ChunkTable(
                index=table.index[rows] - np.array(first, np.int64),
                address=table.address[rows],
                nbytes=table.nbytes[rows],
                filter_mask=table.filter_mask[rows],
            )
            trimmed = replace(layout, chunks=chunks)
            return _with(dataset, trimmed, tuple(b - a for a, b in zip(corner, behind, strict=True))), corner
        case ContiguousLayout(address=address) if shape:
            row_nbytes = dataset.datatype.nbytes * prod(shape[1:])
            start = None if address is None else address + lower[0] * row_nbytes
            rows_shape = (max(0, upper[0] - lower[0]), *shape[1:])
            part = ContiguousLayout(start, rows_shape[0] * row_nbytes)
            return _with(dataset, part, rows_shape), (lower[0],) + (0,) * (len(shape) - 1)
    return dataset, (0,) * len(shape)


def _with(dataset: Dataset, layout: ChunkedLayout | ContiguousLayout, shape: tuple[int, ...]) -> Dataset:
    return replace(dataset, layout=layout, dataspace=replace(dataset.dataspace, shape=shape))


def _check_types(source: Datatype, virtual: Datatype) -> None:
    """Raise where the conversion of a source's elements is not one of those below."""
    numbers = FixedPoint | FloatingPoint
    if isinstance(source, VariableLengthString) and isinstance(virtual, VariableLengthString):
        return
    if interpret_element(virtual).dtype == TEXT:
        raise Unsupported("references in a virtual dataset mean objects of the files that it shows")
    same = source == virtual or (isinstance(source, numbers) and isinstance(virtual, numbers))
    longer = isinstance(source, String) and isinstance(virtual, String) and source.nbytes <= virtual.nbytes
    if not same and not longer:
        what = f"{type(source).__name__} of {source.nbytes} bytes to {type(virtual).__name__} of {virtual.nbytes}"
        raise Unsupported(f"the type of a source is not that of the virtual dataset, from {what}")


def _converted(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return numbers in another type, as the library converts them: what is out of range becomes the nearest."""
    if dtype.kind not in "iu" or values.dtype.kind not in "iuf" or values.dtype == dtype:
        with np.errstate(over="ignore"):
            return values.astype(dtype)
    limits = np.iinfo(dtype)
    if values.dtype.kind == "f":
        if np.isnan(values).any():
            raise Unsupported("a source has NaN where the virtual dataset has integers")
        whole = np.trunc(values.astype(np.float64))
        # The limits as floats may be out of range themselves, so what reaches them is set afterwards.
        inside = np.where((whole > limits.min) & (whole < limits.max), whole, 0).astype(dtype)
        return np.where(whole >= limits.max, limits.max, np.where(whole <= limits.min, limits.min, inside)).astype(
            dtype
        )
    have = np.iinfo(values.dtype)
    return values.clip(max(limits.min, have.min), min(limits.max, have.max)).astype(dtype)
