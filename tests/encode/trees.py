"""Trees made by hand, and their encoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from h5zarr.encode.encode import Encoding
from h5zarr.encode.inlining import Inlining
from h5zarr.io.span import Span
from h5zarr.io.steps import run
from h5zarr.tree import ConvertedValues, HeldBytes, StoredChunks, Tree, TreeGroup, Variable
from h5zarr.zarr_model.hierarchy import Hierarchy

CONTENT = bytes(range(256)) * 1024


def encode(
    variables: Mapping[str, Variable],
    inlining: Inlining | None = None,
    groups: Mapping[str, TreeGroup] | None = None,
    *,
    joinable: bool = False,
) -> tuple[Hierarchy, list[Span]]:
    """Return the hierarchy of some variables, and the spans read for it. Byte i of the file is i modulo 256."""
    read: list[Span] = []

    def read_many(spans: Sequence[Span]) -> list[memoryview]:
        read.extend(spans)
        return [memoryview(CONTENT)[address : address + nbytes] for address, nbytes in spans]

    nodes: dict[str, Any] = {"/": TreeGroup(), **(groups or {}), **variables}
    encoding = Encoding(Tree(nodes=nodes, sources=("file.h5",)), inlining or Inlining(), joinable=joinable)
    encoded: dict[str, Any] = {}
    for step in encoding.steps.values():
        encoded |= run(step, read_many)
    return encoding.finish(encoded), read


def stored(count: int, chunk_nbytes: int, name: str = "x", **more: Any) -> Variable:
    """Return a one-dimensional variable of bytes, with consecutive chunks from byte 1000."""
    chunks = StoredChunks(
        chunk_shape=(chunk_nbytes,),
        index=np.arange(count, dtype=np.int64)[:, None],
        address=1000 + chunk_nbytes * np.arange(count, dtype=np.int64),
        nbytes=np.full(count, chunk_nbytes, np.int64),
    )
    return Variable(dtype=np.dtype("u1"), shape=(count * chunk_nbytes,), dimensions=(name,), storage=chunks, **more)


def held(content: bytes) -> Variable:
    return Variable(dtype=np.dtype("u1"), shape=(len(content),), dimensions=("x",), storage=HeldBytes(content))


def texts(values: list[str], nbytes: int) -> Variable:
    """Return a variable of text whose stated size is `nbytes`."""

    def read() -> Any:
        return np.array(values, object)
        yield

    return Variable(
        dtype=np.dtype(object),
        shape=(len(values),),
        dimensions=("t",),
        storage=ConvertedValues(read=read, nbytes=nbytes),
    )


def scalar(code: str = "<i2", **attributes: Any) -> Variable:
    """Return a variable without axes and without content, with attributes."""
    dtype = np.dtype(code)
    storage = HeldBytes(bytes(dtype.itemsize))
    return Variable(dtype=dtype, shape=(), dimensions=(), storage=storage, attributes=attributes)
