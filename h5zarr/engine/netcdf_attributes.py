"""Restore attributes as netCDF4 returns them, from JSON and the types in the record.

Booleans and complex numbers, which netCDF lacks, are returned as h5netcdf does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import SURPRISES, MalformedFile
from h5zarr.netcdf_names import HIDDEN
from h5zarr.zarr_model.hierarchy import AttributeType, Json, KeptValue
from h5zarr.zarr_model.missing import FILL_VALUE, decode_missing_number


def restore_attributes(
    attributes: Mapping[str, Json],
    types: Mapping[str, AttributeType],
    hidden: Collection[str] = HIDDEN,
    padded: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Return the attributes of a group or variable as netCDF4 returns them: numpy values, text, lists of text.

    `types` are the recorded types, `padded` the sizes of text that the file pads with blanks. Callers must hide the
    `_FillValue` of a variable, which depends on its type: see `restore_fill`. On a group it is an ordinary attribute.
    """
    restored = {name: _restore(value, types.get(name)) for name, value in attributes.items() if name not in hidden}
    for name, nbytes in (padded or {}).items():
        if name in restored:
            restored[name] = _pad(restored[name], nbytes)
    return restored


def restore_fill(
    attributes: Mapping[str, Json],
    kept: KeptValue | None,
    dtype: np.dtype[Any],
    members: AttributeType | None = None,
) -> dict[str, Any]:
    """Return `_FillValue` for a variable whose elements are shown as `dtype`; an empty dict if it has none.

    `kept`, from the record, takes precedence: it has a type or a value that the attributes cannot hold.
    """
    if kept is not None:
        if kept.type is not None or members is not None:  # the members of a record
            return {FILL_VALUE: _restore(kept.value, kept.type or members)}
        return {FILL_VALUE: np.bytes_(kept.value.encode()) if dtype.kind == "S" else kept.value}
    if FILL_VALUE not in attributes:
        return {}
    if isinstance(attributes[FILL_VALUE], str) and dtype.kind in "OU":
        return {FILL_VALUE: attributes[FILL_VALUE]}
    try:
        number = decode_missing_number(attributes[FILL_VALUE])
        return {FILL_VALUE: np.asarray(number).astype(dtype.newbyteorder("="))[()]}
    except SURPRISES:  # in references that others wrote; it costs the masking, not the variable
        return {FILL_VALUE: attributes[FILL_VALUE]}


def _restore(value: Json, kind: AttributeType | None) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(kind, tuple):
        return _restore_records(value, kind)
    if kind is None and isinstance(value, list):
        if all(isinstance(one, str) for one in value):
            return [one.partition("\0")[0] for one in value]
        if not all(isinstance(one, int | float) for one in value):
            return value  # netCDF does not have the type
    restored = _restore_numbers(value, kind)
    return restored.reshape(-1)[0] if restored.size == 1 else restored


def _restore_numbers(value: Json, kind: str | None) -> npt.NDArray[Any]:
    """Return numbers of a type. The innermost lists of complex numbers are their parts."""
    if kind is None or np.dtype(kind).kind != "c":
        return np.array(value, kind)
    parts = np.array(value, f"f{np.dtype(kind).itemsize // 2}")
    if not parts.size:
        return parts.astype(kind)
    if not parts.ndim or parts.shape[-1] != 2:
        raise MalformedFile(f"the record says {kind} of an attribute that does not have two parts")
    return parts.view(kind)[..., 0]


def _restore_records(value: Json, kinds: Sequence[tuple[str, str]]) -> Any:
    """Return one record or an array of records, with the members aligned like a C struct."""
    names, formats = [name for name, _ in kinds], [np.dtype(kind) for _, kind in kinds]
    records = value if isinstance(value, list) else [value]
    restored = np.zeros(len(records), np.dtype({"names": names, "formats": formats}, align=True))
    for name in names:
        restored[name] = _restore_numbers([record[name] for record in records], np.dtype(restored.dtype[name]).name)
    return restored[0] if len(records) == 1 else restored


def _pad(value: Any, nbytes: int) -> Any:
    if isinstance(value, list):
        return [_pad(one, nbytes) for one in value]
    return value + " " * (nbytes - len(value.encode())) if isinstance(value, str) else value
