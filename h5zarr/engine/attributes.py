"""Attributes: from JSON, with the record of their types, to what netCDF4 gives."""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from h5zarr.hierarchy import Json

FILL_VALUE = "_FillValue"
# Hidden by the netCDF library wherever they stand in an HDF5 file, whoever wrote them.
HIDDEN = frozenset(
    {
        *("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Coordinates", "_Netcdf4Dimid"),
        *("_NCProperties", "_IsNetcdf4", "_SuperblockVersion", "_Format", "_nc3_strict"),
        *("_ARRAY_DIMENSIONS", "_Codecs", "_nczarr_array", "_nczarr_attr", "_nczarr_group", "_nczarr_superblock"),
    }
)


def restore_attributes(
    attributes: Mapping[str, Json],
    types: Mapping[str, Json],
    hidden: Collection[str] = HIDDEN,
    padded: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Return attributes of a group or variable as netCDF4 gives them: numpy scalars and arrays, text, lists of text.

    `types` is what is recorded of them, `padded` the sizes of text that was filled up with blanks. `_FillValue` of a
    variable needs its type, and must be hidden here: see `restore_fill`. That of a group is an attribute like others.
    """
    restored = {name: _restore(value, types.get(name)) for name, value in attributes.items() if name not in hidden}
    for name, nbytes in (padded or {}).items():
        if name in restored:
            restored[name] = _pad(restored[name], nbytes)
    return restored


def restore_fill(attributes: Mapping[str, Json], types: Mapping[str, Json], dtype: np.dtype[Any]) -> dict[str, Any]:
    """Return `_FillValue` alone, of a variable whose elements are shown as `dtype`; nothing where it has none.

    It stands in the record where it is of another type than the values, or xarray's form has no room for it.
    """
    recorded = types.get(FILL_VALUE)
    if isinstance(recorded, Mapping):
        value, kind = recorded["value"], recorded["type"]
        if kind != "text":
            return {FILL_VALUE: _restore(value, kind)}
        return {FILL_VALUE: np.bytes_(value.encode()) if dtype.kind == "S" else value}
    if FILL_VALUE not in attributes:
        return {}
    if isinstance(attributes[FILL_VALUE], str) and dtype.kind in "OU":
        return {FILL_VALUE: attributes[FILL_VALUE]}
    number = _decode_number(attributes[FILL_VALUE])
    return {FILL_VALUE: np.asarray(number).astype(dtype.newbyteorder("="))[()]}


def _decode_number(value: Json) -> Any:
    """Return the number that xarray stores as base64 of a double, as two of those, or as it is."""
    if isinstance(value, str):
        return struct.unpack("<d", b64decode(value))[0]
    if isinstance(value, Sequence):
        real, imaginary = map(_decode_number, value)
        return complex(real, imaginary)
    return value


def _restore(value: Json, kind: Json | None) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(kind, list):
        return _restore_records(value, kind)
    if kind is None and isinstance(value, list):
        if all(isinstance(one, str) for one in value):
            return [one.partition("\0")[0] for one in value]
        if not all(isinstance(one, int | float) for one in value):
            return value  # of a type that netCDF has not
    restored = np.array(value, kind)
    if restored.dtype.kind == "b":  # netCDF has none of that, and shows the integers of the enumeration
        restored = restored.astype(np.int8)
    return restored.reshape(-1)[0] if restored.size == 1 else restored


def _restore_records(value: Json, kinds: Sequence[Sequence[str]]) -> Any:
    """Return one record, or an array of some, with members where a C compiler puts them."""
    names, formats = [name for name, _ in kinds], [np.dtype(kind) for _, kind in kinds]
    records = value if isinstance(value, list) else [value]
    restored = np.zeros(len(records), np.dtype({"names": names, "formats": formats}, align=True))
    for name in names:
        restored[name] = [record[name] for record in records]
    return restored[0] if len(records) == 1 else restored


def _pad(value: Any, nbytes: int) -> Any:
    if isinstance(value, list):
        return [_pad(one, nbytes) for one in value]
    return value + " " * (nbytes - len(value.encode())) if isinstance(value, str) else value
