"""Values in raw files: consecutive segments of external files.

The HDF5 library reads zeros where a raw file is shorter than its segment, and fails if the raw file does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile, SourceError, Unsupported
from h5zarr.hdf5.model import Dataset, ExternalLayout, H5File
from h5zarr.hdf5.numpy_values import decode_elements
from h5zarr.io.span import Span
from h5zarr.io.steps import Step, guarded
from h5zarr.netcdf4.element_forms import TEXT, ElementForm
from h5zarr.netcdf4.elsewhere import Elsewhere
from h5zarr.tree import ConvertedValues, Storage, StoredChunks

_MOST_CHUNKS = 1_000_000


class RawFileMissing(SourceError):
    """The values of a dataset are in a raw file that does not exist."""

    remedy = "Put the raw file next to the file that refers to it, then try again."


@dataclass(frozen=True, slots=True)
class Piece:
    """A byte range of a dataset. `present` of its `nbytes` are at `address` in source `number`; the rest are zeros."""

    number: int
    address: int
    nbytes: int
    present: int


def interpret_external(file: H5File, dataset: Dataset, form: ElementForm, elsewhere: Elsewhere) -> Storage:
    """Return where the values are. Raises `RawFileMissing` if a raw file does not exist."""
    pieces = find_pieces(file, dataset, elsewhere)
    if form.is_plain and all(piece.present == piece.nbytes for piece in pieces):
        stored = _stored(dataset, form, pieces)
        if stored is not None:
            return stored
    if form.dtype == TEXT:
        raise Unsupported("variable-length text or references in a raw file cannot be read")
    return ConvertedValues(
        read=lambda: guarded(_read(dataset, form, pieces, elsewhere)),
        nbytes=prod(dataset.dataspace.shape + form.shape) * form.dtype.itemsize,
    )


def find_pieces(file: H5File, dataset: Dataset, elsewhere: Elsewhere) -> list[Piece]:
    """Return the byte ranges that make up a dataset. Adjacent ranges of the same file are merged."""
    assert isinstance(dataset.layout, ExternalLayout)
    pieces: list[Piece] = []
    left = dataset.dataspace.count * dataset.datatype.nbytes
    for segment in dataset.layout.segments:
        nbytes = left if segment.nbytes is None else min(left, segment.nbytes)
        if nbytes == 0:
            continue
        left -= nbytes
        raw = elsewhere.find_raw(file, segment.file)
        if raw is None:
            raise RawFileMissing(f"the values are in the raw file {segment.file!r}, which does not exist")
        present = min(nbytes, max(0, raw.nbytes - segment.address))
        last = pieces[-1] if pieces else None
        if (
            last
            and last.present == last.nbytes
            and (last.number, last.address + last.nbytes) == (raw.number, segment.address)
        ):
            pieces[-1] = Piece(raw.number, last.address, last.nbytes + nbytes, last.nbytes + present)
        else:
            pieces.append(Piece(raw.number, segment.address, nbytes, present))
    if left:
        raise MalformedFile(f"the listed segments of raw files have {left} bytes fewer than the dataset needs")
    return pieces


def _stored(dataset: Dataset, form: ElementForm, pieces: list[Piece]) -> StoredChunks | None:
    """Return equal chunks along the first axis longer than 1, or None if the pieces cannot be cut this way."""
    shape = dataset.dataspace.shape
    split = next((axis for axis, extent in enumerate(shape) if extent > 1), max(0, len(shape) - 1))
    row_nbytes = dataset.datatype.nbytes * prod(shape[split + 1 :])
    if len(pieces) > 1 and any(piece.nbytes % row_nbytes for piece in pieces):
        return None
    chunk_nbytes = gcd(*(piece.nbytes for piece in pieces))
    counts = [piece.nbytes // chunk_nbytes for piece in pieces]
    if sum(counts) > _MOST_CHUNKS:
        return None
    chunk_shape = [max(1, extent) for extent in shape]
    if shape and len(pieces) > 1:
        chunk_shape[split] = chunk_nbytes // row_nbytes
    index = np.zeros((sum(counts), len(shape) + len(form.shape)), np.int64)
    if shape:
        index[:, split] = np.arange(sum(counts))
    starts = [
        piece.address + np.arange(n, dtype=np.int64) * chunk_nbytes for piece, n in zip(pieces, counts, strict=True)
    ]
    numbers = [piece.number for piece in pieces]
    one_file = len(set(numbers)) <= 1
    return StoredChunks(
        chunk_shape=tuple(chunk_shape) + form.shape,
        index=index,
        address=np.concatenate(starts) if starts else np.empty(0, np.int64),
        nbytes=np.full(sum(counts), chunk_nbytes, np.int64),
        source=(numbers[0] if numbers else 0) if one_file else np.repeat(np.array(numbers, np.int32), counts),
        element_nbytes=form.dtype.itemsize,
    )


def _read(dataset: Dataset, form: ElementForm, pieces: list[Piece], elsewhere: Elsewhere) -> Step[npt.NDArray[Any]]:
    return read_external(dataset, form, pieces, elsewhere)
    yield  # makes this a step, although it reads nothing from its own source


def read_external(dataset: Dataset, form: ElementForm, pieces: list[Piece], elsewhere: Elsewhere) -> npt.NDArray[Any]:
    """Return all values of a dataset, in its shape followed by that of the form."""
    raw = b"".join(elsewhere.run(piece.number, _read_piece(piece)) for piece in pieces)
    values = decode_elements(dataset.datatype, raw, dataset.dataspace.count)
    return values.astype(form.dtype).reshape(dataset.dataspace.shape + form.shape)


def _read_piece(piece: Piece) -> Step[bytes]:
    """Return the bytes of a piece, padded with zeros beyond the end of the file."""
    if piece.present == 0:
        return bytes(piece.nbytes)
    (content,) = yield [Span(piece.address, piece.present)]
    return bytes(content).ljust(piece.nbytes, b"\0")
