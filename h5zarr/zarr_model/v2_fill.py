"""Fill values in Zarr version 2, where one field has two meanings.

`fill_value` is both the value of unwritten chunks and the value that xarray treats as missing data. So h5zarr writes
the CF `_FillValue` there, or null. If unwritten chunks must have another value, h5zarr writes them explicitly.

With null, zarr 3 reads unwritten chunks as zero, or NaT for times (zarr 2 left their contents undefined). xarray then
masks by the attribute `_FillValue`, if that is a plain number. With a number, xarray masks by that number and ignores
the attribute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import Unrepresentable
from h5zarr.zarr_model.codecs import byte_order
from h5zarr.zarr_model.data_types import decode_data_type, describe
from h5zarr.zarr_model.fill_values import decode_element, decode_fill, encode_element_v2, encode_fill
from h5zarr.zarr_model.hierarchy import ArrayNode, ChunkLocations, Json, Manifest
from h5zarr.zarr_model.missing import FILL_VALUE, NotAFillValue, decode_missing, encode_missing
from h5zarr.zarr_model.v2_codecs import encode_chunk

FILL_NBYTES_LIMIT = 1 << 24
"""Limit for the unwritten chunks of one array that are written explicitly, in bytes."""

_CHUNK_NBYTES_LIMIT = 1 << 28


@dataclass(frozen=True, slots=True)
class Filled:
    """The fill value of an array in version 2, its attributes, and its chunks, including those written explicitly."""

    fill_value: Json
    attributes: dict[str, Json]
    manifest: ChunkLocations


def encode_fill_v2(node: ArrayNode, dtype: np.dtype[Any], *, joinable: bool = False) -> Filled:
    """Return a representation in which readers of version 2 see the same values. Raises Unrepresentable if none exists.

    Tools that join arrays use the fill value of the first array for all of them. So the fill value of a `joinable`
    array does not depend on which chunks are written.
    """
    unwritten = decode_element(node.fill_value, dtype)
    missing = decode_missing(node.attributes.get(FILL_VALUE), dtype)
    if missing is None:
        if not has_unwritten(node) or _is_default(unwritten):
            return Filled(None, dict(node.attributes), node.manifest)
        return Filled(None, dict(node.attributes), _write_out(node, unwritten))
    fill_value = encode_element_v2(missing)
    attributes = {name: value for name, value in node.attributes.items() if name != FILL_VALUE}
    if _same(missing, unwritten) or not has_unwritten(node):
        return Filled(fill_value, attributes, node.manifest)
    if _is_default(unwritten) and dtype.kind != "c" and not joinable:  # JSON cannot express a complex attribute
        return Filled(None, {**attributes, FILL_VALUE: missing.item()}, node.manifest)
    return Filled(fill_value, attributes, _write_out(node, unwritten))


def _same(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    return one.tobytes() == other.tobytes() or bool(one.dtype.kind in "fc" and np.isnan(one) and np.isnan(other))


def _is_default(element: npt.NDArray[Any]) -> bool:
    """Return whether readers return `element` for unwritten chunks if the fill value is null.

    They do not for records: zarr 3.1 returns the text "0" instead of empty text, and fails on gaps between members.
    """
    if element.dtype.names is not None:
        return False
    if element.dtype.kind == "O":
        return bool(element == "")
    return bool(np.isnat(element)) if element.dtype.kind in "mM" else not any(element.tobytes())


def has_unwritten(node: ArrayNode) -> bool:
    """Return whether some chunks are neither referenced nor inlined. Readers return the fill value for them."""
    manifest = node.manifest
    return node.grid.chunk_count > manifest.count + len(manifest.inline) or bool(len(_unwritten(node)))


def _unwritten(node: ArrayNode) -> npt.NDArray[np.int64]:
    """Return the coordinates of chunks that are neither referenced nor inlined. The grid must fit in memory."""
    grid, inline = node.grid, node.manifest.inline
    free = np.ones(grid.grid_shape, bool)
    for written in (node.manifest.index, np.array(list(inline), np.int64).reshape(len(inline), len(grid.shape))):
        inside = written[grid.contains(written)]
        if len(inside):  # without coordinates, this would select the only chunk of a scalar
            free[tuple(inside.T)] = False
    return np.argwhere(free)


def _write_out(node: ArrayNode, element: npt.NDArray[Any]) -> Manifest:
    """Return the chunks of the array, with the unwritten chunks added and filled with `element`."""
    manifest = node.manifest
    content = _full_chunk(node, element)
    encoded = None if content is None else encode_chunk(content, node.codecs)
    count = node.grid.chunk_count - manifest.count - len(manifest.inline)
    if encoded is None or count * len(encoded) > FILL_NBYTES_LIMIT:
        raise Unrepresentable(
            f"unwritten chunks read as {element.item()!r}, which Zarr version 2 cannot express without masking it, and "
            f"{'there are too many to write explicitly' if encoded else 'they cannot be written explicitly'}"
        )
    chunks = dict.fromkeys(map(tuple, _unwritten(node).tolist()), encoded)
    return Manifest(
        index=manifest.index,
        address=manifest.address,
        nbytes=manifest.nbytes,
        source=manifest.source,
        inline={**manifest.inline, **chunks},
    )


def _full_chunk(node: ArrayNode, element: npt.NDArray[Any]) -> bytes | None:
    """Return the bytes of a chunk filled with `element`, or None if it would be too large."""
    count = prod(node.chunk_shape)
    text = str(element).encode()
    one = len(text).to_bytes(4, "little") + text if element.dtype.kind == "O" else element.tobytes()
    if len(one) * count > _CHUNK_NBYTES_LIMIT:
        return None
    return count.to_bytes(4, "little") + one * count if element.dtype.kind == "O" else one * count


@dataclass(frozen=True, slots=True)
class Unmixed:
    """The two meanings of `fill_value` in version 2: Zarr's fill value, and attributes with the CF `_FillValue`.

    `left_out` is the reason why there is no `_FillValue` although one was given.
    """

    fill_value: Json
    attributes: dict[str, Json]
    left_out: str | None = None


def decode_fill_v2(
    value: Json, dtype: np.dtype[Any], attributes: Mapping[str, Json], *, is_mask: bool = True
) -> Unmixed:
    """Return what `fill_value` of version 2 means in version 3. Raises MalformedFile if it does not fit the type.

    As in xarray, a fill value that is not null overrides the attribute `_FillValue`, whose value is a plain number.
    `is_mask` means that the array follows xarray's convention. In other arrays, the fill value is only the value of
    unwritten chunks, 0 by default, and does not mark missing data.
    """
    element = None if value is None else decode_fill(value, dtype)
    fill_value = _encode_element(element, dtype)
    kept = {name: given for name, given in attributes.items() if name != FILL_VALUE}
    stated = attributes.get(FILL_VALUE) if element is None or not is_mask else element
    if stated is None:
        return Unmixed(fill_value, kept)
    try:
        return Unmixed(fill_value, {**kept, FILL_VALUE: _encode_missing(stated, dtype, attributes)})
    except NotAFillValue as error:
        if element is not None and (dtype.kind in "mMV" or _is_default(element)):  # not meant to mask values
            return Unmixed(fill_value, kept)
        shown = stated.item() if isinstance(stated, np.ndarray) else stated
        what = f"{FILL_VALUE} {shown!r} of a variable of type {describe(dtype)} is left out: {error}"
        return Unmixed(fill_value, kept, what)


def _encode_element(element: npt.NDArray[Any] | None, dtype: np.dtype[Any]) -> Json:
    """Return `fill_value` of version 3 for an element. For None, return what zarr reads for null in version 2."""
    if dtype.kind in "OU":
        return "" if element is None else str(element)
    if element is None and dtype.kind in "mM":
        element = np.array("NaT", dtype)
    return encode_fill(dtype, element)


def encode_given_fill(value: Json, node: ArrayNode) -> Json:
    """Return `fill_value` of version 3 for a value from the user. Raises MalformedFile if it does not fit the type."""
    dtype = decode_data_type(node.data_type, byte_order(node.codecs))
    return _encode_element(decode_fill(value, dtype), dtype)


def _encode_missing(stated: Json, dtype: np.dtype[Any], attributes: Mapping[str, Json]) -> Json:
    """Return the attribute `_FillValue` of version 3 for an element, or for the attribute of version 2."""
    if isinstance(stated, str) and decode_missing(stated, dtype) is not None:
        return stated  # already in the form of version 3, as VirtualiZarr writes it
    value = stated if isinstance(stated, np.ndarray) else np.asarray(stated) if _is_plain(stated) else str(stated)
    return encode_missing(value, dtype, attributes.get("_Unsigned"))


def _is_plain(stated: Json) -> bool:
    """Return whether `stated` is a number, or a list with one number."""
    return isinstance(stated[0] if isinstance(stated, list) and len(stated) == 1 else stated, bool | int | float)
