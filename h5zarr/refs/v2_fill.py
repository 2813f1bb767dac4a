"""Fill values in Zarr version 2, where one field means two things.

What unwritten chunks read as and what xarray takes for missing data are both `fill_value`. So it is the CF `_FillValue`
or null; where that is not what unwritten chunks must read as, those are written out.

With null, zarr 3 reads unwritten chunks as zero, or NaT for times (zarr 2 left their contents undefined), and xarray
masks by the attribute `_FillValue`, if that is a plain number. With a number, xarray masks by that and overrules the
attribute.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from types import UnionType
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.encode.data_types import encode_fill
from h5zarr.encode.missing import NotAFillValue, describe, encode_missing
from h5zarr.errors import MalformedFile, Unrepresentable
from h5zarr.hierarchy import ArrayNode, Json, Manifest
from h5zarr.refs.v2_codecs import byte_order, encode_chunk
from h5zarr.refs.v2_types import decode_data_type, decode_element, decode_missing, encode_element_v2

FILL_NBYTES_LIMIT = 1 << 24
"""How many bytes unwritten chunks of one array may take when they are written out."""

_CHUNK_NBYTES_LIMIT = 1 << 28
_NAME = "_FillValue"
# What `fill_value` of version 2 may be in JSON, for each kind of numpy's types. Readers take any of text for text.
_FORMS: Mapping[str, type | UnionType] = {
    "b": int,
    "i": int | float,
    "u": int | float,
    "f": int | float | str,
    "c": list,
    "m": int | str,
    "M": int | str,
    "S": str,
    "V": str,
    "U": str,
    "O": str | int | float,
}


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
        if not has_unwritten(node) or _is_default(unwritten):
            return Filled(None, dict(node.attributes), node.manifest)
        return Filled(None, dict(node.attributes), _write_out(node, unwritten))
    fill_value = encode_element_v2(missing)
    attributes = {name: value for name, value in node.attributes.items() if name != _NAME}
    if _same(missing, unwritten) or not has_unwritten(node):
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


def has_unwritten(node: ArrayNode) -> bool:
    """Return whether there are chunks that are neither referred to nor inline: readers give the fill value for them."""
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


@dataclass(frozen=True, slots=True)
class Unmixed:
    """The two things that `fill_value` of version 2 means, apart: Zarr's fill value, and the attributes with CF's.

    `left_out` says why there is no `_FillValue` although something was given for it.
    """

    fill_value: Json
    attributes: dict[str, Json]
    left_out: str | None = None


def decode_fill_v2(
    value: Json, dtype: np.dtype[Any], attributes: Mapping[str, Json], *, is_mask: bool = True
) -> Unmixed:
    """Return what `fill_value` of version 2 means in version 3. Raises MalformedFile if it is none of the type.

    As in xarray, a fill value that is not null overrules the attribute `_FillValue`, whose value is a plain number.
    `is_mask` says that xarray wrote the array, or somebody who keeps to its convention: for others, a fill value is
    what unwritten chunks read as, which zarr made 0 unless told otherwise, and nothing is missing because of it.
    """
    element = None if value is None else decode_fill(value, dtype)
    fill_value = _encode_element(element, dtype)
    kept = {name: given for name, given in attributes.items() if name != _NAME}
    told = attributes.get(_NAME) if element is None or not is_mask else element
    if told is None:
        return Unmixed(fill_value, kept)
    try:
        return Unmixed(fill_value, {**kept, _NAME: _encode_missing(told, dtype, attributes)})
    except NotAFillValue as error:
        if element is not None and (dtype.kind in "mMV" or _is_default(element)):  # masks nothing that it should
            return Unmixed(fill_value, kept)
        shown = told.item() if isinstance(told, np.ndarray) else told
        what = f"{_NAME} {shown!r} of a variable of type {describe(dtype)} is left out: {error}"
        return Unmixed(fill_value, kept, what)


def _encode_element(element: npt.NDArray[Any] | None, dtype: np.dtype[Any]) -> Json:
    """Return `fill_value` of version 3 for an element; for none, that of what zarr reads where version 2 has null."""
    if dtype.kind in "OU":
        return "" if element is None else str(element)
    if element is None and dtype.kind in "mM":
        element = np.array("NaT", dtype)
    return encode_fill(dtype, element)


def encode_given_fill(value: Json, node: ArrayNode) -> Json:
    """Return `fill_value` of version 3 for one that somebody gave. Raises MalformedFile if it is none of the type."""
    dtype = decode_data_type(node.data_type, byte_order(node.codecs))
    return _encode_element(decode_fill(value, dtype), dtype)


def decode_fill(value: Json, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the element that `value`, a `fill_value` of either version, stands for.

    Raises MalformedFile if it is none of the type.
    """
    is_of_kind = isinstance(value, _FORMS[dtype.kind])
    try:
        if not is_of_kind:
            raise TypeError("it is of another kind")
        if dtype.kind in "biu":
            if value != int(value) or (dtype.kind == "b" and value not in (0, 1)):
                raise ValueError("it is outside the range")
            value = int(value)
        if dtype.kind in "SV" and len(b64decode(value, validate=True)) > dtype.itemsize:
            raise ValueError("it is too long")
        if dtype.kind == "U" and len(value) > dtype.itemsize // 4:
            raise ValueError("it is too long")
        with np.errstate(over="ignore"):
            element = decode_element(str(value) if dtype.kind == "O" else value, dtype)
        if dtype.kind == "f" and np.isinf(element) and not isinstance(value, str) and np.isfinite(value):
            raise ValueError("it is outside the range")
    except (ValueError, TypeError, OverflowError) as error:
        raise MalformedFile(f"the fill value is none of {describe(dtype)}: {error}") from None
    return element


def _encode_missing(told: Json, dtype: np.dtype[Any], attributes: Mapping[str, Json]) -> Json:
    """Return the attribute `_FillValue` of version 3 for an element, or for what the attribute of version 2 was."""
    if isinstance(told, str) and decode_missing(told, dtype) is not None:
        return told  # in the form of version 3 already: VirtualiZarr leaves it so
    value = told if isinstance(told, np.ndarray) else np.asarray(told) if _is_plain(told) else str(told)
    return encode_missing(value, dtype, attributes.get("_Unsigned"))


def _is_plain(told: Json) -> bool:
    """Return whether `told` is a number, or a list of one."""
    return isinstance(told[0] if isinstance(told, list) and len(told) == 1 else told, bool | int | float)
