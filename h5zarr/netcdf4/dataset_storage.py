"""Describe where the values of an HDF5 dataset are, as a `Storage` of the tree."""

from __future__ import annotations

from base64 import b64encode
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.hdf5.datatype import Array, Datatype
from h5zarr.hdf5.model import ChunkedLayout, CompactLayout, ContiguousLayout, Dataset, H5File
from h5zarr.io.steps import Step
from h5zarr.netcdf4.attribute_values import path_of
from h5zarr.netcdf4.element_forms import TEXT, ElementForm
from h5zarr.tree import ConvertedValues, HeldBytes, Storage, StoredChunks, StoredRun

_TEXT_NBYTES = 64  # estimated size of one text, used to decide whether to read them


def interpret_storage(file: H5File, dataset: Dataset, form: ElementForm, source: int) -> Storage:
    """Return the storage of a dataset whose file is source number `source`."""
    if form.is_plain:
        if isinstance(dataset.layout, CompactLayout):
            return HeldBytes(dataset.layout.content)
        return stored_chunks(dataset, form, source)
    stored = None
    if form.dtype != TEXT and not isinstance(dataset.layout, CompactLayout):
        stored = stored_chunks(dataset, form, source)
    count = dataset.dataspace.count * int(np.prod(form.shape, dtype=np.int64))
    return ConvertedValues(
        read=lambda: _read_converted(file, dataset, form),
        nbytes=count * (_TEXT_NBYTES if form.dtype == TEXT else form.dtype.itemsize),
        source=source,
        stored=stored,
        codec=_elements_codec(dataset) if stored is not None else None,
    )


def stored_run(file: H5File, dataset: Dataset, form: ElementForm, source: int) -> StoredRun | None:
    """Return the values of a contiguous dataset, or None if it has another layout or no values."""
    layout, shape = dataset.layout, dataset.dataspace.shape + form.shape
    if not form.is_plain or not isinstance(layout, ContiguousLayout) or layout.address is None:
        return None
    if layout.nbytes == 0 or layout.nbytes != prod(shape) * form.dtype.itemsize:
        return None
    end = max(file.nbytes, layout.address + layout.nbytes)
    return StoredRun(shape=shape, address=layout.address, source_nbytes=end, source=source)


def stored_chunks(dataset: Dataset, form: ElementForm, source: int) -> StoredChunks:
    """Return the chunks of a dataset. Contiguous values are one chunk."""
    layout, shape = dataset.layout, dataset.dataspace.shape
    if isinstance(layout, ContiguousLayout):
        rank = len(shape) + len(form.shape)
        count = 0 if layout.address is None or layout.nbytes == 0 else 1
        return StoredChunks(
            chunk_shape=tuple(max(1, extent) for extent in shape) + form.shape,
            index=np.zeros((count, rank), np.int64),
            address=np.array([layout.address or 0][:count], np.int64),
            nbytes=np.array([layout.nbytes][:count], np.int64),
            source=source,
            element_nbytes=_base_nbytes(dataset.datatype),
        )
    assert isinstance(layout, ChunkedLayout)  # the caller handles the others
    table = layout.chunks
    index = table.index
    if form.shape:
        index = np.hstack([index, np.zeros((len(table), len(form.shape)), np.int64)])
    return StoredChunks(
        chunk_shape=layout.chunk_shape + form.shape,
        index=index,
        address=table.address,
        nbytes=table.nbytes,
        filter_mask=table.filter_mask,
        filters=dataset.filters,
        source=source,
        element_nbytes=_base_nbytes(dataset.datatype),
    )


def _elements_codec(dataset: Dataset) -> dict[str, Any]:
    """Return the Zarr metadata of the codec that converts the dataset's elements. See `codecs/elements.py`."""
    datatype = b64encode(dataset.datatype_message).decode()
    return {"name": "h5zarr.elements", "configuration": {"datatype": datatype}}


def _base_nbytes(datatype: Datatype) -> int:
    """Return the size of a Zarr element. For an array type, this is an element of its base type."""
    while isinstance(datatype, Array):
        datatype = datatype.base
    return datatype.nbytes


def _read_converted(file: H5File, dataset: Dataset, form: ElementForm) -> Step[npt.NDArray[Any]]:
    """Return the values of a dataset in the form that readers see."""
    values = yield from file.contents.read_values(dataset)
    return convert(values, form, file)


def convert(values: npt.NDArray[Any], form: ElementForm, file: H5File) -> npt.NDArray[Any]:
    """Convert decoded values to the form's type. Object references become paths."""
    if form.dtype != TEXT:
        return values.astype(form.dtype)
    if values.size and not isinstance(values.reshape(-1)[0], bytes):
        paths = [path_of(reference, file) for reference in values.reshape(-1)]
        return _objects(paths, values.shape)
    return _texts(values)


def _texts(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Decode text as UTF-8. If any element is not valid UTF-8, all remain bytes, padded to the longest."""
    contents: list[bytes] = values.reshape(-1).tolist()
    try:
        return _objects([content.decode() for content in contents], values.shape)
    except UnicodeDecodeError:
        return np.array(contents, f"S{max(1, *(len(content) for content in contents))}").reshape(values.shape)


def _objects(elements: list[str], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    made = np.empty(len(elements), object)
    made[:] = elements
    return made.reshape(shape)
