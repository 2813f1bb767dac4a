"""Columns of Parquet files, made from numpy arrays and bytes.

They are built from their buffers. Given arrays or lists, pyarrow imports pandas, and some of its own functions: that
takes longer than writing a million rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import Unsupported
from h5zarr.io.ranges import Column
from h5zarr.packages import missing

Flags = npt.NDArray[np.bool_]


class OldParquet(Unsupported):
    """The package that reads and writes Parquet is too old."""

    remedy = "Install it: pip install 'pyarrow>=19'"


def import_pyarrow() -> Any:
    """Return pyarrow, which is needed only to write and to read."""
    try:
        import pyarrow  # type: ignore[import-untyped, unused-ignore]
        import pyarrow.parquet  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise missing("pyarrow", "Parquet") from None
    if not hasattr(pyarrow, "json_"):
        raise OldParquet(f"pyarrow {pyarrow.__version__} is too old for references in Parquet")
    return pyarrow


def make_texts(pyarrow: Any, kind: Any, lengths: Column, content: bytes, is_there: Flags | None = None) -> Any:
    """Return a column of texts or bytes, which are concatenated in `content`."""
    ends = np.zeros(
        len(lengths) + 1, np.int64 if kind in (pyarrow.large_binary(), pyarrow.large_string()) else np.int32
    )
    np.cumsum(lengths, out=ends[1:])
    buffers = [_bits(pyarrow, is_there), pyarrow.py_buffer(ends), pyarrow.py_buffer(content)]
    return pyarrow.Array.from_buffers(kind, len(lengths), buffers)


def make_integers(pyarrow: Any, column: Column, is_there: Flags | None = None) -> Any:
    """Return a column of 64-bit integers."""
    content = pyarrow.py_buffer(np.ascontiguousarray(column, np.int64))
    return pyarrow.Array.from_buffers(pyarrow.int64(), len(column), [_bits(pyarrow, is_there), content])


def list_texts(pyarrow: Any, texts: Sequence[str | None]) -> Any:
    """Return a column of texts, of which some may be missing."""
    contents = [b"" if one is None else one.encode("utf-8", "surrogateescape") for one in texts]
    lengths = np.fromiter(map(len, contents), np.int64, len(contents))
    is_there = np.fromiter((one is not None for one in texts), bool, len(texts))
    return make_texts(pyarrow, pyarrow.large_string(), lengths, b"".join(contents), is_there)


def make_lists(pyarrow: Any, ends: Column, values: Any) -> Any:
    """Return a column of lists: list `i` has the values from `ends[i]` to `ends[i + 1]`."""
    buffers = [None, pyarrow.py_buffer(np.ascontiguousarray(ends, np.int64))]
    return pyarrow.Array.from_buffers(pyarrow.large_list(values.type), len(ends) - 1, buffers, children=[values])


def numbers_of(pyarrow: Any, column: Any) -> Column:
    """Return a column of integers as numpy; missing values are arbitrary."""
    found = column if column.type == pyarrow.int64() else column.cast(pyarrow.int64())
    return np.frombuffer(found.buffers()[1] or b"", np.int64, len(found), found.offset * 8)


def are_there(column: Any) -> Flags:
    """Return which rows of a column have a value."""
    bits = column.buffers()[0]
    if bits is None:
        return np.ones(len(column), np.bool_)
    rows = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    return rows[column.offset : column.offset + len(column)].astype(np.bool_)


def only_chunk(column: Any) -> Any:
    """Return a column of a table as one array."""
    found = column.combine_chunks()
    if hasattr(found, "chunks"):  # the case if there are no rows
        found = found.chunk(0)
    return getattr(found, "storage", found)


def _bits(pyarrow: Any, is_there: Flags | None) -> Any:
    return None if is_there is None else pyarrow.py_buffer(np.packbits(is_there, bitorder="little"))
