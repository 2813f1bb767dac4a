"""Variables that consist of several arrays, and variables whose packing changes along an axis. Both are read lazily.

Each part is decoded by xarray with its own attributes, and the decoded values are joined as `xarray.concat` joins them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from xarray.backends.common import BackendArray
from xarray.core import dtypes, indexing
from xarray.core.variable import Variable

from h5zarr.errors import MalformedFile
from h5zarr.zarr_model.joined import Boxes, JoinedVariable

Values: TypeAlias = npt.NDArray[Any]
Decode: TypeAlias = Callable[[Variable], Variable]
"""Decodes a variable as xarray does, with the user's options."""

_MEANING = ("scale_factor", "add_offset", "_FillValue", "missing_value")


@dataclass(frozen=True, slots=True, eq=False)
class DecodedPart:
    """A decoded array of a variable, and where it belongs; see `JoinedPart`."""

    variable: Variable
    boxes: Boxes


def join_parts(joined: JoinedVariable, parts: Sequence[DecodedPart]) -> Variable:
    """Return the variable of all parts. Elements without a part are missing, in the way of `xarray.concat`."""
    shape, axes = joined.shape, joined.axes
    first = parts[0].variable
    for part in parts:
        _check_part(part, first, joined)
    is_text = first.dtype.kind == "S" and first.ndim == len(shape)  # decoding removes the dimension of characters
    lengths = tuple(
        shape[number] if number in axes or (is_text and number == first.ndim - 1) else length
        for number, length in enumerate(first.shape)
    )
    dtype = _common_type([part.variable.dtype for part in parts])
    missing: Any = None
    if not joined.is_complete:
        dtype, missing = dtypes.maybe_promote(dtype)
    array = _JoinedArray(lengths, np.dtype(dtype), axes, tuple(parts), missing)
    differing = {name for name in _MEANING if len({repr(part.variable.attrs.get(name)) for part in parts}) > 1}
    attributes = {name: value for name, value in first.attrs.items() if name not in differing}
    encoding = _without_packing(first.encoding) | {"original_shape": lengths}
    encoding |= {"chunksizes": None, "preferred_chunks": _preferred_chunks(lengths, axes, parts)}
    return Variable(first.dims, indexing.LazilyIndexedArray(array), attributes, encoding)


def _common_type(found: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """Return the type that holds the values of all parts. xarray leaves the length of text to numpy."""
    if len({one.kind for one in found}) == 1 and found[0].kind in "SU":
        return np.result_type(*found)
    return np.dtype(dtypes.result_type(*found))


def _without_packing(encoding: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the encoding without what only some parts have: xarray would pack all values by it when it writes them."""
    return {name: value for name, value in encoding.items() if name not in (*_MEANING, "dtype", "_Unsigned")}


def _check_part(part: DecodedPart, first: Variable, joined: JoinedVariable) -> None:
    """Raise MalformedFile if a part does not have the shape that the record says. References are untrusted.

    Text that xarray did not decode may be shorter.
    """
    variable, axes = part.variable, joined.axes
    if variable.dims != first.dims or axes[-1] >= variable.ndim:
        raise MalformedFile("the parts of a joined variable have different dimensions")
    for number, length in enumerate(variable.shape):
        is_shorter = variable.dtype.kind == "S" and number == len(joined.shape) - 1 and length <= joined.shape[number]
        if number not in axes and length != first.shape[number] and not is_shorter:
            raise MalformedFile("the parts of a joined variable have different shapes")
    for at, axis in enumerate(axes):
        if len(part.boxes) and int((part.boxes[:, at, 1] + part.boxes[:, at, 2]).max()) > variable.shape[axis]:
            raise MalformedFile("a part of a joined variable is shorter than the record says")


def _preferred_chunks(
    shape: tuple[int, ...], axes: tuple[int, ...], parts: Sequence[DecodedPart]
) -> dict[Any, int | tuple[int, ...]]:
    """Return the chunks that xarray should prefer: those of the largest part, cut where parts begin and end."""
    largest = max(parts, key=lambda part: part.variable.size).variable
    known = largest.encoding.get("preferred_chunks", {})
    found: dict[Any, int | tuple[int, ...]] = {}
    for number, name in enumerate(largest.dims):
        usual = known.get(name, shape[number] or 1)
        if number not in axes:
            found[name] = usual
            continue
        step = max(usual) if isinstance(usual, tuple) else usual
        at = axes.index(number)
        edges = {0, shape[number]}
        for part in parts:
            for start, _, length in part.boxes[:, at].tolist():
                edges |= {*range(start, start + length, max(1, int(step))), start + length}
        found[name] = tuple(np.diff(sorted(edges)).tolist())
    return found


class _JoinedArray(BackendArray):
    """The values of several decoded arrays as one."""

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        axes: tuple[int, ...],
        parts: tuple[DecodedPart, ...],
        missing: Any,
    ) -> None:
        self.shape, self.dtype = shape, dtype
        self._axes, self._parts, self._missing = axes, parts, missing

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> Values:
        wanted = [_positions(one, length) for one, length in zip(key, self.shape, strict=True)]
        result = np.zeros(tuple(map(len, wanted)), self.dtype)
        if self._missing is not None:
            result[...] = self._missing
        for part in self._parts:
            for where, inner in _selections(part.boxes, [wanted[axis] for axis in self._axes]):
                taken, target = list(wanted), [np.arange(len(one)) for one in wanted]
                for axis, at, position in zip(self._axes, where, inner, strict=True):
                    target[axis], taken[axis] = at, position
                if self.dtype.kind == "S" and taken:  # text of a part may be shorter; the rest is NUL
                    is_there = taken[-1] < part.variable.shape[-1]
                    target[-1], taken[-1] = target[-1][is_there], taken[-1][is_there]
                selection = {name: _narrow(one) for name, one in zip(part.variable.dims, taken, strict=True)}
                result[np.ix_(*target)] = part.variable.isel(selection).values
        dropped = tuple(0 if isinstance(one, int | np.integer) else slice(None) for one in key)
        return np.asarray(result[dropped]) if any(one == 0 for one in dropped if isinstance(one, int)) else result


def _positions(key: Any, length: int) -> npt.NDArray[np.int64]:
    if isinstance(key, slice):
        return np.arange(*key.indices(length), dtype=np.int64)
    return np.atleast_1d(np.asarray(key, np.int64))


def _narrow(positions: npt.NDArray[np.int64]) -> slice | npt.NDArray[np.int64]:
    """Return neighbouring positions as a slice, which is read with fewer and shorter requests."""
    if len(positions) and bool((np.diff(positions) == 1).all()):
        return slice(int(positions[0]), int(positions[-1]) + 1)
    return positions


def _selections(boxes: Boxes, wanted: Sequence[npt.NDArray[np.int64]]) -> list[tuple[list[Values], list[Values]]]:
    """Return what a part contributes: where in the result, and from where in the part, along each joined axis."""
    if boxes.shape[1] > 1:
        found = []
        for box in boxes:
            each = [_inside(box[at : at + 1], positions) for at, positions in enumerate(wanted)]
            if all(len(where) for where, _ in each):
                found.append(([where for where, _ in each], [inner for _, inner in each]))
        return found
    where, inner = _inside(boxes[:, 0], wanted[0])
    return [([where], [inner])] if len(where) else []


def _inside(boxes: npt.NDArray[np.int64], positions: npt.NDArray[np.int64]) -> tuple[Values, Values]:
    """Return which positions are in one of the boxes along an axis, and where they are in the part."""
    order = np.argsort(boxes[:, 0], kind="stable")
    start, inner, length = boxes[order].T
    at = np.searchsorted(start, positions, "right") - 1
    is_inside = (at >= 0) & (positions < start[at] + length[at])
    where = np.flatnonzero(is_inside)
    at = at[where]
    return where, inner[at] + positions[where] - start[at]


def decode_with_parameters(stored: Variable, axis: int, parameters: Mapping[str, Values], decode: Decode) -> Variable:
    """Return a variable that is decoded with other attributes in each part. `parameters` has them along `axis`."""
    for name, values in parameters.items():
        if values.shape != (stored.shape[axis],):
            raise MalformedFile(f"the values of {name} are not one for each element of the axis")
    array = _DecodedArray(stored, axis, parameters, decode)
    sample = array.sample
    encoding = _without_packing(stored.encoding)
    return Variable(sample.dims, indexing.LazilyIndexedArray(array), sample.attrs, encoding)


class _DecodedArray(BackendArray):
    """Stored values that are decoded when they are read, each with the attributes of its position."""

    def __init__(self, stored: Variable, axis: int, parameters: Mapping[str, Values], decode: Decode) -> None:
        self._stored, self._axis, self._parameters, self._decode = stored, axis, parameters, decode
        self.sample = self._decode_part(np.zeros((1,) * stored.ndim, stored.dtype), 0)
        self.shape, self.dtype = stored.shape, self.sample.dtype

    def _decode_part(self, values: Values, position: int) -> Variable:
        """Return some values, decoded with the attributes at a position."""
        own = {name: one[position] for name, one in self._parameters.items()}
        variable = Variable(self._stored.dims, values, {**self._stored.attrs, **own}, {"dtype": self._stored.dtype})
        decoded = self._decode(variable)
        decoded.attrs = {name: value for name, value in decoded.attrs.items() if name not in own}
        return decoded

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> Values:
        positions = _positions(key[self._axis], self.shape[self._axis])
        wanted = [_narrow(_positions(one, length)) for one, length in zip(key, self.shape, strict=True)]
        stored = self._stored.isel(dict(zip(self._stored.dims, wanted, strict=True))).values
        result = np.empty(stored.shape, self.dtype)
        changes = np.zeros(len(positions), bool)
        changes[:1] = True
        for one in self._parameters.values():
            row = _as_bytes(one[positions])
            changes[1:] |= row[1:] != row[:-1]
        edges = np.flatnonzero(changes)
        for begin, end in zip(edges, np.append(edges[1:], len(positions)), strict=True):
            part = (slice(None),) * self._axis + (slice(int(begin), int(end)),)
            result[part] = self._decode_part(stored[part], int(positions[begin])).values
        dropped = tuple(0 if isinstance(one, int | np.integer) else slice(None) for one in key)
        return np.asarray(result[dropped])


def _as_bytes(values: Values) -> Values:
    """Return values in a form in which NaN equals NaN."""
    return np.ascontiguousarray(values).view(f"V{values.dtype.itemsize}")
