"""Interpret a classic file as a `Tree` with one group. Variables refer to their bytes in the file."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile, Problem, Truncated
from h5zarr.netcdf3.classic_file import Attributes, ClassicFile, ClassicVariable
from h5zarr.netcdf3.nc_types import NcType
from h5zarr.tree import AttributeValue, HeldBytes, Storage, StoredRun, Tree, TreeGroup, Variable, refuse_name

_FILL_VALUE = "_FillValue"
_TINY_RECORD_NBYTES = 1024


def interpret_classic(file: ClassicFile, url: str) -> Tree:
    """Return the tree of a file. References will use `url` for it.

    Variables whose stated location is impossible are left out. If a variable is truncated, its missing values read as
    the fill value. Both cases are listed in `problems`.
    """
    root = TreeGroup(
        attributes=_attributes(file.header.attributes),
        unlimited=tuple(one.name for one in file.header.dimensions if one.length is None),
        is_classic=True,
    )
    nodes: dict[str, TreeGroup | Variable] = {"/": root}
    problems = list(file.problems)
    lengths = _lengths(file)
    for number, variable in enumerate(file.header.variables):
        path = f"/{variable.name}"
        problem = refuse_name(path, variable.name)
        if problem is None and (why := _refusal(file, number, lengths) or _twice(path, nodes)):
            problem = Problem.from_error(path, MalformedFile(why))
        if problem is not None:
            problems.append(problem)
            continue
        nodes[path] = interpret_variable(file, variable)
        problems += _cut_off(file, variable, path)
    return Tree(nodes=nodes, sources=(url,), problems=tuple(problems))


def interpret_variable(file: ClassicFile, variable: ClassicVariable) -> Variable:
    """Return a variable with the location of its values."""
    return Variable(
        dtype=variable.type.dtype,
        shape=file.shape(variable),
        dimensions=tuple(file.header.dimensions[number].name for number in variable.dimension_ids),
        storage=_storage(file, variable),
        fill=find_fill(variable),
        attributes=_attributes(variable.attributes),
    )


def find_fill(variable: ClassicVariable) -> npt.NDArray[Any]:
    """Return one element: a valid scalar `_FillValue` of the variable's type, or netCDF's default."""
    stated = variable.attributes.get(_FILL_VALUE)
    if stated is not None and stated.type is variable.type and stated.values.size == 1:
        return np.asarray(stated.values[0], variable.type.dtype)
    return variable.type.default_fill


def missing_nbytes(file: ClassicFile, variable: ClassicVariable) -> int:
    """Return how many bytes of a variable's values lie beyond the end of the file."""
    if not variable.is_record:
        return max(0, variable.slab_nbytes - max(0, file.nbytes - variable.begin))
    whole, partial = present_records(file, variable)
    return (file.record_count - whole) * variable.slab_nbytes - partial


def present_records(file: ClassicFile, variable: ClassicVariable) -> tuple[int, int]:
    """Return how many complete records of a variable the file holds, and how many bytes of the next, truncated one."""
    room = file.nbytes - variable.begin
    if room <= 0 or not variable.slab_nbytes:
        return (0, 0) if variable.slab_nbytes else (file.record_count, 0)
    begun = min(file.record_count, (room - 1) // file.record_nbytes + 1)
    in_last = room - (begun - 1) * file.record_nbytes if begun else 0
    return (begun, 0) if in_last >= variable.slab_nbytes or not begun else (begun - 1, in_last)


def _storage(file: ClassicFile, variable: ClassicVariable) -> Storage:
    if 0 in file.shape(variable):
        return HeldBytes(b"")
    # With several record variables, each adds to the size of a record.
    is_alone = file.record_nbytes == variable.slab_nbytes
    is_run = not variable.is_record or (is_alone and variable.slab_nbytes < _TINY_RECORD_NBYTES)
    return StoredRun(
        shape=file.shape(variable),
        address=variable.begin,
        source_nbytes=file.nbytes,
        stride=None if is_run else file.record_nbytes,
    )


def _lengths(file: ClassicFile) -> dict[str, int]:
    """Return the length of each dimension. If a name occurs twice, the first dimension counts."""
    found: dict[str, int] = {}
    for dimension in file.header.dimensions:
        found.setdefault(dimension.name, file.length(dimension))
    return found


def _refusal(file: ClassicFile, number: int, lengths: dict[str, int]) -> str | None:
    if number in file.refused:
        return file.refused[number]
    for dimension in (file.header.dimensions[one] for one in file.header.variables[number].dimension_ids):
        if not dimension.name:
            return "one of its dimensions has no name"
        if file.length(dimension) != lengths[dimension.name]:
            return f"two dimensions of different lengths are called {dimension.name!r}"
    return None


def _twice(path: str, nodes: dict[str, TreeGroup | Variable]) -> str | None:
    return "two variables have this name; the second one is left out" if path in nodes else None


def _cut_off(file: ClassicFile, variable: ClassicVariable, path: str) -> list[Problem]:
    missing = missing_nbytes(file, variable)
    if not missing:
        return []
    if variable.is_record:
        records = file.record_count - present_records(file, variable)[0]
        what = f"{records:,} of {file.record_count:,} records are incomplete, {missing:,} bytes are missing"
    else:
        what = f"{missing:,} of {variable.slab_nbytes:,} bytes are missing"
    error = Truncated(f"the file is truncated: {what} and read as the fill value", at=file.nbytes)
    return [Problem.from_error(path, error)]


def _attributes(attributes: Attributes) -> dict[str, AttributeValue]:
    return {
        name: attribute.text if attribute.type is NcType.CHAR else attribute.values
        for name, attribute in attributes.items()
    }
