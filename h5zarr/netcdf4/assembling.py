"""Assemble the values of virtual datasets that references cannot represent."""

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
from h5zarr.netcdf4.dataset_storage import convert
from h5zarr.netcdf4.element_forms import TEXT, ElementForm, interpret_element
from h5zarr.netcdf4.elsewhere import Elsewhere
from h5zarr.netcdf4.external import find_pieces, read_external
from h5zarr.netcdf4.fill_values import interpret_fill
from h5zarr.netcdf4.mappings import MOST_LEVELS, MappedPart, Mappings, resolve_mappings

# Bytes read from the sources of one virtual dataset; a small selection may be spread over large sources.
_MOST_NBYTES = 512 << 20
_Corner = tuple[int, ...]


def check_convertible(mappings: Mappings, dataset: Dataset) -> None:
    """Raise Unsupported if the values cannot be assembled, or only by reading too much."""
    needed = 0
    for part in mappings.parts:
        _check_types(part.dataset.datatype, dataset.datatype)
        trimmed, _ = trim(part.dataset, part.source.lower, part.source.upper)
        needed += trimmed.dataspace.count * trimmed.datatype.nbytes
    if needed > _MOST_NBYTES:
        raise Unsupported(
            "its parts do not match whole chunks, and assembling them would read "
            f"{needed} bytes, more than {_MOST_NBYTES}",
            remedy="Read it from the file itself, for example with h5py.",
        )


def assemble(mappings: Mappings, file: H5File, dataset: Dataset, elsewhere: Elsewhere) -> npt.NDArray[Any]:
    """Return all values of a virtual dataset, in the form that readers see."""
    form = interpret_element(dataset.datatype)
    whole = _Assembling(elsewhere).all(mappings, dataset, form)
    return convert(whole, form, file) if form.dtype == TEXT else whole


class _Assembling:
    """Assembles virtual datasets. Each is assembled only once, even if several others use it."""

    def __init__(self, elsewhere: Elsewhere) -> None:
        self._elsewhere = elsewhere
        self._known: dict[int, npt.NDArray[Any]] = {}
        self._levels = MOST_LEVELS

    def all(self, mappings: Mappings, dataset: Dataset, form: ElementForm) -> npt.NDArray[Any]:
        """Return all values. Text is still encoded as bytes."""
        fill: Any = b"" if form.dtype == TEXT else interpret_fill(dataset, form)
        whole = np.full(mappings.shape + form.shape, np.zeros((), form.dtype)[()] if fill is None else fill, form.dtype)
        for part in mappings.parts:
            if part.source.count:
                values, corner = self._read(part)
                part.virtual.put(_converted(part.source.take(values, corner), form.dtype), whole)
        return whole

    def _read(self, part: MappedPart) -> tuple[npt.NDArray[Any], _Corner]:
        """Return values that include those of a part, and the position in the source at which they start."""
        form = interpret_element(part.dataset.datatype)
        origin = (0,) * len(part.source_shape)
        if isinstance(part.dataset.layout, VirtualLayout):
            return self._virtual(part, form), origin
        if isinstance(part.dataset.layout, ExternalLayout):
            if form.dtype == TEXT:
                raise Unsupported("variable-length text or references in a raw file cannot be read")
            pieces = find_pieces(part.file, part.dataset, self._elsewhere)
            return read_external(part.dataset, form, pieces, self._elsewhere), origin
        dataset, corner = trim(part.dataset, part.source.lower, part.source.upper)
        number = self._elsewhere.number_of(part.file)
        values = self._elsewhere.run(number, part.file.contents.read_values(dataset))
        return (values if form.dtype == TEXT else values.astype(form.dtype)), corner

    def _virtual(self, part: MappedPart, form: ElementForm) -> npt.NDArray[Any]:
        if id(part.dataset) not in self._known:
            if self._levels == 0:
                raise Unsupported(f"virtual datasets are nested more than {MOST_LEVELS} levels deep")
            self._levels -= 1
            mappings = resolve_mappings(part.file, part.dataset, self._elsewhere)
            check_convertible(mappings, part.dataset)
            self._known[id(part.dataset)] = self.all(mappings, part.dataset, form)
            self._levels += 1
        return self._known[id(part.dataset)]


def trim(dataset: Dataset, lower: _Corner, upper: _Corner) -> tuple[Dataset, _Corner]:
    """Return a dataset with only the chunks between two corners, and its position in the original."""
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
    """Raise Unsupported unless the source's elements can be converted to the virtual dataset's type."""
    numbers = FixedPoint | FloatingPoint
    if isinstance(source, VariableLengthString) and isinstance(virtual, VariableLengthString):
        return
    if interpret_element(virtual).dtype == TEXT:
        raise Unsupported("references in a virtual dataset would point to objects in its source files")
    same = source == virtual or (isinstance(source, numbers) and isinstance(virtual, numbers))
    longer = isinstance(source, String) and isinstance(virtual, String) and source.nbytes <= virtual.nbytes
    if not same and not longer:
        what = f"{type(source).__name__} of {source.nbytes} bytes to {type(virtual).__name__} of {virtual.nbytes}"
        raise Unsupported(f"the type of a source differs from that of the virtual dataset: {what}")


def _converted(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Convert numbers to another type as the HDF5 library does: values out of range become the nearest limit."""
    if dtype.kind not in "iu" or values.dtype.kind not in "iuf" or values.dtype == dtype:
        with np.errstate(over="ignore"):
            return values.astype(dtype)
    limits = np.iinfo(dtype)
    if values.dtype.kind == "f":
        if np.isnan(values).any():
            raise Unsupported(
                "a source contains NaN, but the virtual dataset has integers",
                remedy="Give the virtual dataset a floating-point type.",
            )
        whole = np.trunc(values.astype(np.float64))
        # As floats, the limits themselves may be out of range. So values at or beyond them are set separately.
        inside = np.where((whole > limits.min) & (whole < limits.max), whole, 0).astype(dtype)
        return np.where(whole >= limits.max, limits.max, np.where(whole <= limits.min, limits.min, inside)).astype(
            dtype
        )
    have = np.iinfo(values.dtype)
    return values.clip(max(limits.min, have.min), min(limits.max, have.max)).astype(dtype)
