"""A netCDF classic file as text: dimensions, variables with the location of their values, attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.commands.inspect.attribute_text import attribute_lines
from h5zarr.commands.inspect.numpy_types import datatype_of
from h5zarr.commands.inspect.values import unknown_path
from h5zarr.commands.inspect.view import View, column_width, padded
from h5zarr.display import counted, readable, size
from h5zarr.errors import Problem
from h5zarr.hdf5.datatype import Charset, Datatype, Padding, String
from h5zarr.hdf5.model import Attribute, Dataspace, SpaceKind
from h5zarr.io.log import RequestLog, cost_text
from h5zarr.netcdf3.classic_file import Attributes, ClassicFile, ClassicVariable
from h5zarr.netcdf3.header import VERSIONS
from h5zarr.netcdf3.interpret import interpret_classic
from h5zarr.netcdf3.nc_types import NcType
from h5zarr.patterns import compile_pattern

NAME_COLUMN, TYPE_COLUMN, SHAPE_COLUMN = 36, 12, 40
ATTRIBUTES, GROUP_ATTRIBUTES = 16, 40
BETWEEN = " · "


def find_problems(file: ClassicFile) -> tuple[Problem, ...]:
    """Return the problems of a file, as a translation would report them."""
    return interpret_classic(file, file.url).problems


def select_variables(file: ClassicFile, pattern: str | None) -> tuple[bool, list[ClassicVariable]]:
    """Return whether the pattern selects the file itself, and which variables it selects."""
    matches: Callable[[str], bool] = (lambda path: True) if pattern is None else compile_pattern(pattern)
    whole = matches("/")
    return whole, [one for one in file.header.variables if whole or matches(f"/{one.name}")]


def render_classic(file: ClassicFile, view: View) -> list[str]:
    """Return the lines of a file; empty if nothing matches the pattern."""
    whole, variables = select_variables(file, view.pattern)
    if not whole and not variables:
        return []
    lines = [view.bold(readable(file.url)), f"  {format_text(file)}"]
    used = {number for variable in variables for number in variable.dimension_ids}
    dimensions = [one for number, one in enumerate(file.header.dimensions) if whole or number in used]
    if dimensions:
        names = [readable(one.name) for one in dimensions]
        column = column_width(names, NAME_COLUMN)
        lines.append("  dimensions:")
        for name, one in zip(names, dimensions, strict=True):
            limit = " (UNLIMITED)" if one.length is None else ""
            lines.append(f"    {name}{padded(name, column)} = {file.length(one)}{limit}")
    if variables:
        lines += ["  variables:", *_variable_lines(file, variables, view)]
    if whole and view.attributes and file.header.attributes:
        shown = described(file.header.attributes)
        lines += ["  attributes:", *attribute_lines(shown, unknown_path, view, indent=4, most=GROUP_ATTRIBUTES)]
    return lines


def format_text(file: ClassicFile) -> str:
    """Return one line on the format: `netCDF-3, CDF-1 · header of 480 bytes · 300 records of 132 bytes`."""
    header = file.header
    said = [f"netCDF-3, {VERSIONS[header.version]}", f"header of {size(header.nbytes)}"]
    if file.record_nbytes:
        how = " (counted: the header does not say)" if header.stated_records is None else ""
        said.append(f"{counted(file.record_count, 'record')} of {size(file.record_nbytes)}{how}")
    return BETWEEN.join(said)


def place_text(file: ClassicFile, variable: ClassicVariable) -> str:
    """Return where the values are: `fixed · 12 bytes at 0x1d8`, `records · 8 bytes each at 0x1e4`."""
    nbytes = counted(variable.slab_nbytes, "byte") if variable.slab_nbytes < 10_000 else size(variable.slab_nbytes)
    if variable.is_record:
        return f"records{BETWEEN}{nbytes} each from {variable.begin:#x}"
    return f"fixed{BETWEEN}{nbytes} at {variable.begin:#x}"


def type_text(type: NcType) -> str:
    return "char" if type is NcType.CHAR else type.dtype.name


def classic_summary(file: ClassicFile, problems: tuple[Problem, ...], log: RequestLog) -> str:
    """Return one line: what the file holds, and what was read to find out."""
    held = [counted(len(file.header.variables), "variable")]
    if problems:
        held.append(counted(len(problems), "problem"))
    return f"{', '.join(held)} · {cost_text(log, file.nbytes)}"


def described(attributes: Attributes) -> dict[str, Attribute]:
    """Return attributes in the form used for HDF5."""
    found = {}
    for name, one in attributes.items():
        value: npt.NDArray[Any] = one.values
        if one.type is NcType.CHAR:
            value = np.array(one.text.encode())
        space = Dataspace(SpaceKind.SIMPLE if value.ndim else SpaceKind.SCALAR, value.shape)
        found[name] = Attribute(name=name, datatype=_datatype(one.type, one.values.size), dataspace=space, value=value)
    return found


def shape_text(file: ClassicFile, variable: ClassicVariable) -> str:
    """Return `(time=240, lat=180)`, or `scalar`."""
    names = [readable(file.header.dimensions[number].name) for number in variable.dimension_ids]
    axes = [f"{name}={extent}" for name, extent in zip(names, file.shape(variable), strict=True)]
    return f"({', '.join(axes)})" if axes else "scalar"


def _variable_lines(file: ClassicFile, variables: list[ClassicVariable], view: View) -> list[str]:
    rows = [(readable(one.name), type_text(one.type), shape_text(file, one)) for one in variables]
    columns = [
        column_width((row[number] for row in rows), most)
        for number, most in enumerate((NAME_COLUMN, TYPE_COLUMN, SHAPE_COLUMN))
    ]
    lines = []
    for (name, type, shape), variable in zip(rows, variables, strict=True):
        start = f"    {view.bold(name)}{padded(name, columns[0])}  {type}{padded(type, columns[1])}  "
        lines.append(f"{start}{shape}{padded(shape, columns[2])}  {place_text(file, variable)}")
        if view.attributes:
            owner = _datatype(variable.type, 1)
            shown: Mapping[str, Attribute] = described(variable.attributes)
            lines += attribute_lines(shown, unknown_path, view, indent=8, most=ATTRIBUTES, owner=owner)
    return lines


def _datatype(type: NcType, count: int) -> Datatype:
    if type is NcType.CHAR:
        return String(nbytes=max(1, count), padding=Padding.NULL_PADDED, charset=Charset.UTF8)
    found = datatype_of(type.dtype.newbyteorder("="))
    assert found is not None  # the format has nothing but text and numbers
    return found
