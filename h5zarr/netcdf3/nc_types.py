"""The external types of netCDF classic files and their default fill values. Spec: nc_type, FILL_*."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np


class NcType(IntEnum):
    """`nc_type` in the specification.

    UBYTE and later types belong to CDF-5, but netCDF-C reads them in every version.
    """

    BYTE = 1
    CHAR = 2
    SHORT = 3
    INT = 4
    FLOAT = 5
    DOUBLE = 6
    UBYTE = 7
    USHORT = 8
    UINT = 9
    INT64 = 10
    UINT64 = 11

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values in the file, always big-endian."""
        return _DTYPES[self]

    @property
    def nbytes(self) -> int:
        return _DTYPES[self].itemsize

    @property
    def default_fill(self) -> np.ndarray[Any, Any]:
        """One element: the value of unwritten data, unless the variable has a `_FillValue`."""
        return np.array(_FILLS[self], _DTYPES[self])


_DTYPES = {
    NcType.BYTE: np.dtype("i1"),
    NcType.CHAR: np.dtype("S1"),
    NcType.SHORT: np.dtype(">i2"),
    NcType.INT: np.dtype(">i4"),
    NcType.FLOAT: np.dtype(">f4"),
    NcType.DOUBLE: np.dtype(">f8"),
    NcType.UBYTE: np.dtype("u1"),
    NcType.USHORT: np.dtype(">u2"),
    NcType.UINT: np.dtype(">u4"),
    NcType.INT64: np.dtype(">i8"),
    NcType.UINT64: np.dtype(">u8"),
}
_FILL_REAL = float.fromhex("0x1.ep+122")  # 9.969209968386869e36, exact in float32
_FILLS: dict[NcType, Any] = {
    NcType.BYTE: -127,
    NcType.CHAR: b"\0",
    NcType.SHORT: -32767,
    NcType.INT: -2147483647,
    NcType.FLOAT: _FILL_REAL,
    NcType.DOUBLE: _FILL_REAL,
    NcType.UBYTE: 255,
    NcType.USHORT: 65535,
    NcType.UINT: 4294967295,
    NcType.INT64: -9223372036854775806,
    NcType.UINT64: 18446744073709551614,
}
