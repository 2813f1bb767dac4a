"""Fill values in Zarr version 2, where one field means two things.

What unwritten chunks read as and what xarray takes for missing data are both `fill_value`. So it is the CF `_FillValue`
or null; where that is not what unwritten chunks must read as, those are written out.

With null, zarr 3 reads unwritten chunks as zero, or NaT for times (zarr 2 left their contents undefined), and xarray
masks by the attribute `_FillValue`, if that is a plain number. With a number, xarray masks by that and overrules the
attribute.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import Unrepresentable
from h5zarr.hierarchy import ArrayNode, Json, Manifest
from h5zarr.refs.v2_codecs import encode_chunk
from h5zarr.refs.v2_types import decode_element, decode_missing, encode_element_v2

FILL_NBYTES_LIMIT = 1 << 24
"""How many bytes unwritten chunks of one array may take when they are written out."""

_CHUNK_NBYTES_LIMIT = 1 << 28
_NAME = "_FillValue"


@dataclass(frozen=True, slots=True)
class Filled:
    """An array's fill value in version 2, its attributes, and its chunks with what had to be written out."""

    fill_value: Json
    attributes: dict[str, Json]
    manifest: Manifest


def encode_fill_v2(node: ArrayNode, dtype: np.dtype[Any], *, joinable: bool = False) -> Filled:
    """Return what makes version 2 readers see the same values. Raises Unrepresentable if nothing does.

    Whoever joins arrays takes the fill value of the first for all. So the fill value of a `joinable` array does not
    depend on what of it is written.
    """
    unwritten = decode_element(node.fill_value, dtype)
    missing = decode_missing(node.attributes.get(_NAME), dtype)
    if missing is None:
        if not _has_unwritten(node) or _is_default(unwritten):
            return Filled(None, dict(node.attributes), node.manifest)
        return Filled(None, dict(node.attributes), _write_out(node, unwritten))
    fill_value = encode_element_v2(missing)
    attributes = {name: value for name, value in node.attributes.items() if name != _NAME}
    if _same(missing, unwritten) or not _has_unwritten(node):
        return Filled(fill_value, attributes, node.manifest)
    if _is_default(unwritten) and dtype.kind != "c" and not joinable:  # JSON has no complex numbers for the attribute
        return Filled(None, {**attributes, _NAME: missing.item()}, node.manifest)
    return Filled(fill_value, attributes, _write_out(node, unwritten))


def _same(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    return one.tobytes() == other.tobytes() or bool(one.dtype.kind in "fc" and np.isnan(one) and np.isnan(other))


def _is_default(element: npt.NDArray[Any]) -> bool:
    """Return whether readers give `element` for chunks that are not there when the fill value is null.

    Of records they do not: zarr 3.1 has the text "0" where there should be none, and fails on gaps between members.
    """
    if element.dtype.names is not None:
        return False
    if element.dtype.kind == "O":
        return bool(element == "")
    return bool(np.isnat(element)) if element.dtype.kind in "mM" else not any(element.tobytes())


def _grid_shape(node: ArrayNode) -> tuple[int, ...]:
    return tuple(-(-length // size) for length, size in zip(node.shape, node.chunk_shape, strict=True))


def _has_unwritten(node: ArrayNode) -> bool:
    manifest = node.manifest
    return prod(_grid_shape(node)) > manifest.count + len(manifest.inline) or bool(len(_unwritten(node)))


def _unwritten(node: ArrayNode) -> npt.NDArray[np.int64]:
    """Return the coordinates of chunks that are neither referred to nor inline; the grid must be of a size to hold."""
    grid = _grid_shape(node)
    inline = node.manifest.inline
    free = np.ones(grid, bool)
    for written in (node.manifest.index, np.array(list(inline), np.int64).reshape(len(inline), len(grid))):
        inside = written[(written < np.array(grid, np.int64)).all(axis=1)]
        if len(inside):  # without coordinates, a scalar's only chunk would be meant
            free[tuple(inside.T)] = False
    return np.argwhere(free)


def _write_out(node: ArrayNode, element: npt.NDArray[Any]) -> Manifest:
    """Return the array's chunks with those that were never written, full of `element`."""
    manifest = node.manifest
    content = _full_chunk(node, element)
    encoded = None if content is None else encode_chunk(content, node.codecs)
    count = prod(_grid_shape(node)) - manifest.count - len(manifest.inline)
    if encoded is None or count * len(encoded) > FILL_NBYTES_LIMIT:
        raise Unrepresentable(
            f"chunks that were never written read as {element.item()!r}, which Zarr version 2 cannot say without "
            f"masking it, and {'they are too many to be written out' if encoded else 'they cannot be written out'}"
        )
    chunks = dict.fromkeys(map(tuple, _unwritten(node).tolist()), encoded)
    return replace(manifest, inline={**manifest.inline, **chunks})


def _full_chunk(node: ArrayNode, element: npt.NDArray[Any]) -> bytes | None:
    """Return the bytes of a chunk of nothing but `element`, or None if it would be too large."""
    count = prod(node.chunk_shape)
    text = str(element).encode()
    one = len(text).to_bytes(4, "little") + text if element.dtype.kind == "O" else element.tobytes()
    if len(one) * count > _CHUNK_NBYTES_LIMIT:
        return None
    return count.to_bytes(4, "little") + one * count if element.dtype.kind == "O" else one * count
