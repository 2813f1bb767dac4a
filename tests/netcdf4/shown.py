"""What readers see of datasets with values in other files, compared with h5py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.commands.translate.related import Related, find_related
from h5zarr.filters.pipeline import undo_filters
from h5zarr.formats import scan_source
from h5zarr.hdf5.model import Dataset
from h5zarr.io.access import Access
from h5zarr.io.source import open_source
from h5zarr.io.span import Span
from h5zarr.io.steps import Step
from h5zarr.netcdf4.element_forms import ElementForm, interpret_element
from h5zarr.netcdf4.fill_values import interpret_fill
from h5zarr.netcdf4.virtual import Located, locate
from h5zarr.tree import ConvertedValues, StoredChunks


@contextmanager
def opened(path: Path, **choices: Any) -> Iterator[Related]:
    """The file at `path` with those that it refers to."""
    access = Access.from_options(**choices)
    with open_source(path) as source, find_related(source, scan_source(source), str(path), access) as related:
        yield related


def find_dataset(related: Related, name: str) -> Dataset:
    return dict(related.file.datasets())[f"/{name}"]


def interpret(related: Related, name: str = "x") -> Located:
    """Return where the values of a dataset are."""
    dataset = find_dataset(related, name)
    form = interpret_element(dataset.datatype)
    return locate(related.file, dataset, form, related, dataset.dataspace.shape)


def show(related: Related, name: str = "x") -> npt.NDArray[Any]:
    """Return the values of a dataset as a reader of the references puts them together."""
    dataset, storage = find_dataset(related, name), interpret(related, name).storage
    if isinstance(storage, ConvertedValues):
        return related.run(0, storage.read())
    assert isinstance(storage, StoredChunks)
    return _decode(related, dataset, interpret_element(dataset.datatype), storage)


def _decode(related: Related, dataset: Dataset, form: ElementForm, stored: StoredChunks) -> npt.NDArray[Any]:
    shape = dataset.dataspace.shape + form.shape
    fill = interpret_fill(dataset, form)
    whole = np.full(shape, np.zeros((), form.dtype)[()] if fill is None else fill, form.dtype)
    order = [tuple(index) for index in stored.index.tolist()]
    assert order == sorted(set(order))
    sources = np.broadcast_to(stored.source, len(stored.address)).tolist()
    chunk_nbytes = form.dtype.itemsize * int(np.prod(stored.chunk_shape))
    masks = [0] * len(order) if stored.filter_mask is None else stored.filter_mask.tolist()
    rows = zip(order, sources, stored.address.tolist(), stored.nbytes.tolist(), masks, strict=True)
    for index, source, address, nbytes, mask in rows:
        content = related.run(source, read_span(address, nbytes))
        plain = undo_filters(content, stored.filters, mask, chunk_nbytes)
        assert len(plain) == chunk_nbytes
        block = np.frombuffer(plain, form.dtype).reshape(stored.chunk_shape)
        corner = [number * extent for number, extent in zip(index, stored.chunk_shape, strict=True)]
        assert all(at < extent for at, extent in zip(corner, shape, strict=True))
        place = tuple(slice(at, at + n) for at, n in zip(corner, stored.chunk_shape, strict=True))
        part = tuple(slice(0, extent - at) for at, extent in zip(corner, shape, strict=True))
        whole[place] = block[part]
    return whole


def read_span(address: int, nbytes: int) -> Step[bytes]:
    (content,) = yield [Span(address, nbytes)]
    return bytes(content)
