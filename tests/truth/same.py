"""Whether two values are the same: the one comparison of types, byte order, NaN, text and records.

`same` is strict: of one type, in one byte order. `same_numbers` compares numbers of whatever type. NaN is NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def same(mine: Any, their: Any) -> bool:
    """Return whether two things have the same type and value; the order of bytes is part of a type."""
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
    """Return whether arrays hold the same, to the last bit, in types that differ in nothing but byte order."""
    if mine.dtype.kind == "O" or their.dtype.kind in "OTS":
        return bool(mine.shape == their.shape and mine.ravel().tolist() == their.ravel().tolist())
    if native(mine.dtype) != native(their.dtype) or mine.shape != their.shape:
        return False
    little = [one.astype(one.dtype.newbyteorder("<")).tobytes() for one in (mine, their)]
    return bool(little[0] == little[1])


def same_but_rounded(mine: Any, their: Any) -> bool:
    """Return whether numbers are the same up to the rounding of float32, even after an offset was added."""
    largest = float(np.nanmax(np.abs(their), initial=0))
    return bool(np.allclose(mine, their, rtol=1e-6, atol=1e-6 * largest, equal_nan=True))


def native(dtype: Any) -> Any:
    return dtype.newbyteorder("=") if dtype.kind in "biufcmMV" else dtype


def texts(values: Any) -> list[str]:
    """Return the texts of an array of any type of text, without the NULs that pad them."""
    flat = np.asarray(values).reshape(-1).tolist()
    return [(one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one)).rstrip("\0") for one in flat]


def _same_dtype(mine: np.dtype[Any], their: np.dtype[Any]) -> bool:
    """Return whether types are the same on this machine: `<i4` is `i4` where that is the machine's order."""
    return mine == their and mine.isnative == their.isnative and mine.isalignedstruct == their.isalignedstruct
