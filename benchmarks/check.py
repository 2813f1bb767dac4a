"""Is a scan right? Every chunk, dataset and attribute against h5py, before anything is timed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import h5py
import numpy as np
from with_h5py import Columns, Seen, as_columns, chunk_columns, walk

from h5zarr.hdf5.datatype import Datatype, FixedPoint, FloatingPoint
from h5zarr.hdf5.model import ChunkedLayout, ChunkTable, Dataset, Group, H5File
from h5zarr.hdf5.object_references import ObjectReference

DEFLATE, SHUFFLE = 1, 2
Resolve: TypeAlias = Callable[[h5py.Reference | ObjectReference], str | None]


class Wrong(Exception):
    """The scan and h5py disagree, so timing it would be pointless."""


def check_chunks(scanned: H5File, path: Path, name: str = "values") -> int:
    """The number of chunks of the one dataset of a many-chunks file, having compared every one."""
    datasets = {path.strip("/"): dataset for path, dataset in scanned.datasets()}
    _expect("problems", scanned.problems, ())
    layout = datasets[name].layout
    if not isinstance(layout, ChunkedLayout):
        raise Wrong(f"{name}: {type(layout).__name__} instead of a chunked layout")
    expected = chunk_columns(str(path))
    _check_table(name, layout.chunks, expected)
    return len(expected.address)


def check_datasets(scanned: H5File, path: Path) -> int:
    """The number of datasets of a many-datasets file, having compared all that h5py says about each."""
    _expect("problems", scanned.problems, ())
    datasets, groups = walk(str(path))
    found = {path.strip("/"): thing for path, thing in scanned.walk()}
    _expect("paths", sorted(found), sorted([*datasets, *groups]))
    with h5py.File(path, "r") as file:
        addresses = {h5py.h5o.get_info(file[name or "/"].id).addr: f"/{name}" for name in (*groups, *datasets)}
        _expect("addresses", dict(scanned.paths), addresses)

        def resolve(reference: h5py.Reference | ObjectReference) -> str | None:
            # Not by `.name` of what h5py finds: that searches the whole file, for each reference.
            if isinstance(reference, ObjectReference):
                return scanned.path_of(reference)
            target = h5py.h5r.dereference(reference, file.id) if reference else None
            return addresses[h5py.h5o.get_info(target).addr] if target else None

        for name, attributes in groups.items():
            group = found[name]
            if not isinstance(group, Group):
                raise Wrong(f"/{name}: {type(group).__name__} instead of a group")
            _check_attributes(name, group, attributes, resolve)
        for name, seen in datasets.items():
            dataset = found[name]
            if not isinstance(dataset, Dataset):
                raise Wrong(f"/{name}: {type(dataset).__name__} instead of a dataset")
            _check_dataset(name, dataset, seen)
            _check_attributes(name, dataset, seen.attributes, resolve)
    return len(datasets)


def _check_dataset(name: str, dataset: Dataset, seen: Seen) -> None:
    _expect(f"{name}: shape", dataset.dataspace.shape, seen.shape)
    dtype = _numpy_dtype(dataset.datatype)
    _expect(f"{name}: dtype", dtype, seen.dtype)
    numbers = ((SHUFFLE,) if seen.shuffle else ()) + ((DEFLATE,) if seen.compression == "gzip" else ())
    _expect(f"{name}: filters", tuple(step.number for step in dataset.filters), numbers)
    element = dataset.fill.element
    fill = np.zeros((), dtype)[()] if element is None else np.frombuffer(element, dtype)[0]
    _expect(f"{name}: fill", fill, seen.fill)
    layout = dataset.layout
    if isinstance(layout, ChunkedLayout):
        _expect(f"{name}: chunk shape", layout.chunk_shape, seen.chunk_shape)
        _check_table(name, layout.chunks, as_columns(seen.chunks, layout.chunk_shape))
    else:
        _expect(f"{name}: chunk shape", None, seen.chunk_shape)


def _check_table(name: str, table: ChunkTable, expected: Columns) -> None:
    for column in ("index", "address", "nbytes", "filter_mask"):
        ours, theirs = getattr(table, column), getattr(expected, column)
        if ours.shape != theirs.shape or not np.array_equal(ours, theirs):
            raise Wrong(f"{name}: column {column!r} of the chunk table differs: {ours.shape} and {theirs.shape}")


def _check_attributes(name: str, owner: Group | Dataset, expected: dict[str, Any], resolve: Resolve) -> None:
    _expect(f"{name}: attribute names", sorted(owner.attributes), sorted(expected))
    for key, value in expected.items():
        _expect(f"{name}: attribute {key!r}", _plain(owner.attributes[key].value, resolve), _plain(value, resolve))


def _plain(value: Any, resolve: Resolve) -> Any:
    """`value` in a form in which both libraries' values are equal when they mean the same."""
    if isinstance(value, h5py.Reference | ObjectReference):
        return resolve(value)
    if isinstance(value, bytes):
        return value.rstrip(b"\0").decode()
    if isinstance(value, str):
        return str(value)
    array = np.asarray(value)
    if array.dtype.names:
        fields = [_plain(array[field], resolve) for field in array.dtype.names]
        return (array.dtype.names, fields)
    if array.dtype.kind in "OSUT":
        items = [_plain(item, resolve) for item in array.ravel().tolist()]
        return items[0] if array.shape == () else (array.shape, items)
    return (array.dtype.str, array.shape, array.tobytes())


def _numpy_dtype(datatype: Datatype) -> np.dtype[Any]:
    match datatype:
        case FixedPoint():
            return np.dtype(f"{datatype.order.value}{'i' if datatype.signed else 'u'}{datatype.nbytes}")
        case FloatingPoint():
            return np.dtype(f"{datatype.order.value}f{datatype.nbytes}")
    raise Wrong(f"no numpy type for {datatype}")


def _expect(what: str, ours: Any, theirs: Any) -> None:
    if ours != theirs:
        raise Wrong(f"{what}: {ours!r} by h5zarr, {theirs!r} by h5py")
