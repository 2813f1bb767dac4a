"""What h5py makes of a file: the same questions that a scan answers, asked in the fastest way h5py has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO

import h5py
import numpy as np
import numpy.typing as npt

Opened = str | BinaryIO


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The chunks of a dataset as h5py enumerates them, sorted by grid coordinates."""

    index: npt.NDArray[np.int64]
    address: npt.NDArray[np.int64]
    nbytes: npt.NDArray[np.int64]
    filter_mask: npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A dataset as h5py shows it; `chunks` are h5py's own records, `place` is where contiguous values are."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunk_shape: tuple[int, ...] | None
    compression: str | None
    shuffle: bool
    fill: Any
    attributes: dict[str, Any]
    chunks: list[Any]
    place: tuple[int, int]


def list_chunks(opened: Opened, path: str = "values") -> list[Any]:
    """The records of `chunk_iter`: appending them is the least that h5py can do for a caller that keeps them."""
    with h5py.File(opened, "r") as file:
        records: list[Any] = []
        file[path].id.chunk_iter(records.append)
        return records


def chunk_columns(opened: Opened, path: str = "values") -> Columns:
    """The records of `chunk_iter` as columns."""
    with h5py.File(opened, "r") as file:
        dataset = file[path]
        records: list[Any] = []
        dataset.id.chunk_iter(records.append)
        return as_columns(records, dataset.chunks)


def as_columns(records: list[Any], chunk_shape: tuple[int, ...]) -> Columns:
    """Columns of h5py's records, in row-major order of the grid."""
    count, rank = len(records), len(chunk_shape)
    origin = np.fromiter((extent for record in records for extent in record.chunk_offset), np.int64, count * rank)
    index = origin.reshape(count, rank) // chunk_shape
    order = np.lexsort(index.T[::-1])
    return Columns(
        index=index[order],
        address=np.fromiter((record.byte_offset for record in records), np.int64, count)[order],
        nbytes=np.fromiter((record.size for record in records), np.int64, count)[order],
        filter_mask=np.fromiter((record.filter_mask for record in records), np.uint32, count)[order],
    )


def walk(opened: Opened) -> tuple[dict[str, Seen], dict[str, dict[str, Any]]]:
    """Every dataset and the attributes of every group, by path without the leading slash."""
    datasets: dict[str, Seen] = {}
    groups: dict[str, dict[str, Any]] = {}

    def visit(path: str, found: h5py.Group | h5py.Dataset) -> None:
        attributes = dict(found.attrs)
        if isinstance(found, h5py.Group):
            groups[path] = attributes
            return
        chunks: list[Any] = []
        if found.chunks is not None:
            found.id.chunk_iter(chunks.append)
        datasets[path] = Seen(
            shape=found.shape,
            dtype=found.dtype,
            chunk_shape=found.chunks,
            compression=found.compression,
            shuffle=found.shuffle,
            fill=found.fillvalue,
            attributes=attributes,
            chunks=chunks,
            place=(found.id.get_offset() or 0, found.id.get_storage_size()),
        )

    with h5py.File(opened, "r") as file:
        groups[""] = dict(file.attrs)
        file.visititems(visit)
    return datasets, groups
