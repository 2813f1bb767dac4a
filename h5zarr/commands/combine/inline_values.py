"""Write a small variable, or one whose times are converted, as one inlined chunk."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.commands.combine.constants import time_numbers
from h5zarr.commands.combine.meaning import PARAMETERS
from h5zarr.commands.combine.members import Member, times_of
from h5zarr.commands.combine.times import CommonTimes
from h5zarr.encode.inlining import Budget
from h5zarr.errors import NotJoinable, Unrepresentable
from h5zarr.filters import blosc
from h5zarr.filters.blosc import COMPRESSORS, SHUFFLES
from h5zarr.zarr_model.data_types import encode_dtype, encode_serializer
from h5zarr.zarr_model.fill_values import encode_fill
from h5zarr.zarr_model.grid import whole_grid
from h5zarr.zarr_model.hierarchy import ArrayNode, Json, Manifest
from h5zarr.zarr_model.missing import FILL_VALUE
from h5zarr.zarr_model.vlen_text import encode_texts

Values = npt.NDArray[Any]
_MISSING_TIME = -(2**63) + 2  # netCDF's default for 64-bit integers
_LARGE, _VERY_LARGE = 1 << 10, 1 << 16  # bytes from which compression pays off
_LEVEL = 4


def is_small(members: Sequence[Member], budget: Budget) -> bool:
    """Return whether to inline a variable. It must be small, and have one dimension or be inlined in all files."""
    nodes = [one.node for one in members]
    is_inline = all(not node.manifest.count for node in nodes)
    nbytes = sum(map(needed_nbytes, members))
    rank = len(nodes[0].shape) - any(one.is_padded for one in members)  # text of different lengths is joined as text
    limit = budget.inlining.coordinate_nbytes * (16 if rank == 1 or is_inline else 0)
    return nbytes <= limit and budget.allows(nbytes)


def needed_nbytes(member: Member) -> int:
    """Return the bytes that the values of a member take when they are inlined."""
    inline = sum(map(len, member.node.manifest.inline.values()))
    return max(inline, prod(member.node.shape) * member.dtype.itemsize, prod(member.shape) * member.dtype.itemsize)


def write_inline(
    members: Sequence[Member],
    shape: tuple[int, ...],
    times: CommonTimes | None,
    missing: Any,
) -> ArrayNode:
    """Return an array with all values in one inlined chunk. Where no file has values, it has `missing`.

    `missing` is None if the files have everything. The attributes are those of the first member.
    """
    first = members[0]
    parts = [(one, one.values() if times is None else _convert(one, times)) for one in members]
    dtypes = {values.dtype.newbyteorder("=") for _, values in parts}
    dtype = dtypes.pop() if len(dtypes) == 1 else np.result_type(*dtypes)
    whole = np.empty(shape, dtype)
    if missing is not None:
        whole[...] = missing if times is None else _MISSING_TIME
    for one, values in parts:
        whole[_box(one, len(shape))] = values
    attributes = dict(first.node.attributes)
    if times is not None:
        attributes = _with_times(attributes, times, whole)
    return make_inline(whole, first.node.dimension_names, attributes)


def make_inline(
    values: Values, dimension_names: tuple[str, ...], attributes: Mapping[str, Json], *, compressed: bool = False
) -> ArrayNode:
    """Return an array with these values in one inlined chunk. It is compressed if that is asked for, or if it is large.

    A cube of half a million files has as many times, which every update writes again.
    """
    dtype = values.dtype
    content = encode_texts(values) if dtype.kind == "O" else values.tobytes()
    codecs: tuple[Json, ...] = (encode_serializer(dtype),)
    if dtype.kind != "O" and len(content) > _VERY_LARGE:
        settings = (2, 2, dtype.itemsize, len(content), _LEVEL, SHUFFLES.index("shuffle"), COMPRESSORS.index("zstd"))
        content = blosc.encode(content, settings)
        codecs += (blosc.to_codec(settings, None),)
    elif compressed and len(content) > _LARGE:
        content = zlib.compress(content, _LEVEL)
        codecs += ({"name": "numcodecs.zlib", "configuration": {"level": _LEVEL}},)
    return ArrayNode(
        grid=whole_grid(values.shape),
        data_type=encode_dtype(dtype),
        codecs=codecs,
        fill_value=encode_fill(dtype, None),
        dimension_names=dimension_names,
        attributes=attributes,
        manifest=inline_manifest(values.ndim, {(0,) * values.ndim: content} if values.size else {}),
    )


def inline_manifest(rank: int, inline: Mapping[tuple[int, ...], bytes]) -> Manifest:
    """Return a manifest that refers to no file."""
    none = np.empty(0, np.int64)
    return Manifest(index=np.empty((0, rank), np.int64), address=none, nbytes=none, inline=inline)


def _box(member: Member, rank: int) -> tuple[slice, ...]:
    """Return the part of the cube that a member fills."""
    return tuple(
        slice(member.box[axis].position, member.box[axis].stop) if axis in member.box else slice(None)
        for axis in range(rank)
    )


# --- times


def _convert(member: Member, times: CommonTimes) -> Values:
    """Return the times of a member in the common units, as 64-bit integers."""
    units = times_of(member)
    assert units is not None
    values, missing = time_numbers(member)
    made = times.convert(values, units)
    return np.where(missing, _MISSING_TIME, made) if missing.any() else made


def _with_times(attributes: dict[str, Json], times: CommonTimes, values: Values) -> dict[str, Json]:
    """Return the attributes of converted times."""
    kept = {name: value for name, value in attributes.items() if name not in (*PARAMETERS, "_Unsigned")}
    if "units" in kept:
        kept["units"] = times.units
    return {**kept, FILL_VALUE: _MISSING_TIME} if (values == _MISSING_TIME).any() else kept


def missing_number(path: str, member: Member, dtype: np.dtype[Any]) -> Any:
    """Return the stored value that readers show as missing data. Raises Unrepresentable if there is none."""
    times = times_of(member)
    if times is not None and not times.has_missing_dates:
        raise Unrepresentable(f"{path}: readers show missing times of this calendar as dates")
    found = member.meaning.parameters.get(FILL_VALUE)
    if found is not None:
        return found
    if dtype.kind == "f" and not {"scale_factor", "add_offset"} & set(member.meaning.parameters):
        return np.nan
    raise Unrepresentable(f"{path}: its type, {dtype}, has no value for missing data")


def require_room(path: str, members: Sequence[Member], budget: Budget) -> None:
    """Take the bytes of a variable that must be inlined from the budget. Raises NotJoinable if they do not fit."""
    nbytes = sum(8 * prod(one.shape) for one in members)
    if not budget.allows(nbytes):
        what = f"{path}: its times are counted in different units, and converting them takes {nbytes:,} bytes"
        raise NotJoinable(what, remedy="Allow more with max_inline_bytes=NUMBER, or leave it out with exclude=[PATH].")
