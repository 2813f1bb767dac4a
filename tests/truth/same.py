"""When two values are equal, and how they differ: the one comparison of types, byte order, NaN, text and records.

`same` is strict: equal types in the same byte order. `same_numbers` ignores the type. `Hdf5Values` compares values with
those that h5py reads, bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from h5py import h5t

IEEE = tuple(kind.get_fields() for kind in (h5t.IEEE_F16LE, h5t.IEEE_F32LE, h5t.IEEE_F64LE))


def same(mine: Any, their: Any) -> bool:
    """Return whether two things have the same type and value. Byte order is part of a type, and NaN equals NaN."""
    if isinstance(mine, tuple | list) and type(mine) is type(their):
        return len(mine) == len(their) and all(map(same, mine, their))
    if isinstance(mine, dict) and isinstance(their, dict):
        return mine.keys() == their.keys() and all(same(mine[key], their[key]) for key in mine)
    if isinstance(mine, np.ndarray | np.generic) and isinstance(their, np.ndarray | np.generic):
        return _same_dtype(mine.dtype, their.dtype) and same_numbers(mine, their)
    return type(mine) is type(their) and bool(mine == their or (mine != mine and their != their))


def same_numbers(mine: Any, their: Any) -> bool:
    """Return whether arrays have the same shape and values, member by member if they are records."""
    if mine.shape != their.shape:
        return False
    if mine.dtype.names is not None:
        return all(same_numbers(mine[name], their[name]) for name in mine.dtype.names)
    return bool(np.all((mine == their) | ((mine != mine) & (their != their))))


def same_bytes(mine: Any, their: Any) -> bool:
    """Return whether arrays are equal bit by bit, in types that differ at most in byte order."""
    if mine.dtype.kind == "O" or their.dtype.kind in "OTS":
        return bool(mine.shape == their.shape and mine.ravel().tolist() == their.ravel().tolist())
    return (
        native(mine.dtype) == native(their.dtype) and mine.shape == their.shape and not _other_bits(mine, their).any()
    )


def same_but_rounded(mine: Any, their: Any) -> bool:
    """Return whether numbers are equal up to the rounding of float32, even after an offset was added."""
    largest = float(np.nanmax(np.abs(their), initial=0))
    return bool(np.allclose(mine, their, rtol=1e-6, atol=1e-6 * largest, equal_nan=True))


def native(dtype: Any) -> Any:
    return dtype.newbyteorder("=") if dtype.kind in "biufcmMV" else dtype


def texts(values: Any) -> list[str]:
    """Return the texts in an array of any text type, without NUL padding."""
    flat = np.asarray(values).reshape(-1).tolist()
    return [(one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one)).rstrip("\0") for one in flat]


def short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 120 else f"{shown[:117]}…"


@dataclass(frozen=True)
class Hdf5Values:
    """Compares values with h5py's, as their HDF5 type defines them: bit by bit, except for the padding of text.

    `target_of` returns what a reference points to, for ours and for h5py's. With `as_stored`, our values have the forms
    of the file: integers for booleans, records for complex numbers, opaque bytes for times.
    """

    target_of: Callable[[Any], Any]
    as_stored: bool

    def differ(self, kind: Any, ours: Any, theirs: Any) -> str | None:
        """Return how values of an HDF5 type differ, or None."""
        match kind:
            case h5t.TypeArrayID():
                return self.differ(kind.get_super(), ours, theirs)
            case h5t.TypeVlenID():
                return self._sequences(kind.get_super(), ours, theirs)
            case h5t.TypeCompoundID() if theirs.dtype.names is not None or ours.dtype.names is not None:
                return self._records(kind, ours, theirs)
            case h5t.TypeStringID():
                return _texts_differ(kind, ours, theirs)
            case h5t.TypeReferenceID():
                mine, their = ([self.target_of(one) for one in side.reshape(-1).tolist()] for side in (ours, theirs))
                return None if mine == their else f"references to {short(mine)} are to {short(their)}"
        if theirs.dtype.kind in "mM" and (self.as_stored or np.datetime_data(theirs.dtype)[0] == "generic"):
            theirs = theirs.view(f"V{theirs.dtype.itemsize}")  # h5py reads opaque values with a certain tag as times
        if theirs.dtype.kind == "b" and self.as_stored:
            theirs = theirs.view(np.int8)
        if self.as_stored and _is_converted(kind):
            wider = np.promote_types(ours.dtype, theirs.dtype)  # each library has its own type for these
            ours, theirs = ours.astype(wider), theirs.astype(wider)
        if native(ours.dtype) != native(theirs.dtype) or ours.shape != theirs.shape:
            return f"{ours.dtype} {ours.shape} is {theirs.dtype} {theirs.shape}"
        return _bits_differ(kind, ours, theirs)

    def _sequences(self, kind: Any, ours: Any, theirs: Any) -> str | None:
        if isinstance(kind, h5t.TypeAtomicID) and kind.get_order() == h5t.ORDER_BE:
            return None  # h5py returns the bytes of such sequences in the wrong order
        mine, their = ours.reshape(-1), theirs.reshape(-1)
        if mine.shape != their.shape:
            return f"{mine.size} sequences are {their.size}"
        found = (self.differ(kind, one, np.asarray(other)) for one, other in zip(mine, their, strict=True))
        return next(filter(None, found), None)

    def _records(self, kind: Any, ours: Any, theirs: Any) -> str | None:
        names = [name for name in ours.dtype.names or () if self.as_stored or not name.startswith("_gap")]
        if self.as_stored and theirs.dtype.kind == "c":
            pairs = list(zip(names, (theirs.real, theirs.imag), strict=True))
        elif names == list(theirs.dtype.names or ()):
            pairs = [(name, theirs[name]) for name in names]
        else:
            return f"members {names or ours.dtype} are {theirs.dtype.names or theirs.dtype}"
        for number, (name, their) in enumerate(pairs):
            if difference := self.differ(kind.get_member_type(number), ours[name], their):
                return f"member {name}: {difference}"
        return None


def _same_dtype(mine: np.dtype[Any], their: np.dtype[Any]) -> bool:
    """Return whether types are the same on this machine: `<i4` is `i4` if that is the machine's order."""
    return mine == their and mine.isnative == their.isnative and mine.isalignedstruct == their.isalignedstruct


def _other_bits(mine: Any, their: Any) -> Any:
    """Return which elements of two arrays of one type and shape have different bits."""
    dtype = native(mine.dtype)
    if not dtype.itemsize:
        return np.zeros(mine.size, bool)
    sides = (np.ascontiguousarray(one, dtype).view(np.uint8).reshape(-1, dtype.itemsize) for one in (mine, their))
    return np.not_equal(*sides).any(axis=-1)


def _bits_differ(kind: Any, ours: Any, theirs: Any) -> str | None:
    other = _other_bits(ours, theirs)
    # A conversion may return any NaN, and zarr reads a float16 fill value with Python's struct, which has only one NaN.
    if ours.dtype.kind in "fc" and (_is_converted(kind) or ours.dtype.itemsize == 2):
        other &= ~(np.isnan(ours) & np.isnan(theirs)).reshape(-1)
    if not other.any():
        return None
    first = int(np.flatnonzero(other)[0])
    pair = f"{ours.reshape(-1)[first]!r} is {theirs.reshape(-1)[first]!r}"
    return f"{int(other.sum())} of {other.size} values differ, {pair}"


def _is_converted(kind: Any) -> bool:
    """Return True for floats in another format than numpy's, which are read as a larger type."""
    return isinstance(kind, h5t.TypeFloatID) and kind.get_fields() not in IEEE


def _texts_differ(kind: Any, ours: Any, theirs: Any) -> str | None:
    is_variable = kind.is_variable_str()
    if ours.dtype.kind not in "OTSU" if is_variable else ours.dtype != theirs.dtype:
        return f"type {ours.dtype} is {theirs.dtype}"
    mine = [_encoded(one) for one in ours.reshape(-1).tolist()]
    their = [_encoded(one) if is_variable else _unpadded(kind, _encoded(one)) for one in theirs.reshape(-1).tolist()]
    return None if mine == their else f"texts {short(mine)} are {short(their)}"


def _encoded(one: Any) -> bytes:
    return one.encode("utf-8", "surrogateescape") if isinstance(one, str) else bytes(one or b"")


def _unpadded(kind: Any, content: bytes) -> bytes:
    if kind.get_strpad() == h5t.STR_SPACEPAD:
        return content.rstrip(b" \0")
    return content.partition(b"\0")[0] if kind.get_strpad() == h5t.STR_NULLTERM else content.rstrip(b"\0")
