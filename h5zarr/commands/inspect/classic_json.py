"""A netCDF classic file as JSON for machines, in the form of `json.py`. `format` has what HDF5 lacks."""

from __future__ import annotations

from h5zarr.commands.inspect.classic import described, select_variables, type_text
from h5zarr.commands.inspect.json import VERSION, Json, json_value
from h5zarr.errors import Problem
from h5zarr.io.log import RequestLog
from h5zarr.netcdf3.classic_file import Attributes, ClassicFile, ClassicVariable
from h5zarr.netcdf3.interpret import find_fill

SCHEMA = """\
As for HDF5, and:
format      name, version (1, 2, 5), header_nbytes, records, record_nbytes, streaming (the number of records is counted)
datasets    layout has kind (fixed, record), address, nbytes (of all values, or of one record), stride (of records)
fill        kind (default, user), value
"""


def describe_classic(
    file: ClassicFile,
    problems: tuple[Problem, ...],
    log: RequestLog,
    *,
    pattern: str | None = None,
    attributes: bool = True,
) -> dict[str, Json]:
    """Return the description of a file, or of the part that `pattern` selects, in the form of `SCHEMA`."""
    whole, variables = select_variables(file, pattern)

    def describe_attributes(owned: Attributes) -> dict[str, Json]:
        if not attributes:
            return {}
        found = described(owned)
        return {
            "attributes": {
                name: {"type": type_text(owned[name].type), "shape": [owned[name].values.size], "value": value}
                for name, value in ((name, json_value(each.value)) for name, each in found.items())
            }
        }

    root = {"dimensions": _dimensions(file), **describe_attributes(file.header.attributes)}
    return {
        "version": VERSION,
        "url": file.url,
        "nbytes": file.nbytes,
        "format": _format(file),
        "groups": {"/": root} if whole else {},
        "datasets": {
            f"/{one.name}": {**_dataset(file, one), **describe_attributes(one.attributes)} for one in variables
        },
        "datatypes": {},
        "problems": [
            {"path": each.path, "kind": each.kind, "message": each.message, "remedy": each.remedy} for each in problems
        ],
        "counts": {"groups": 1, "datasets": len(file.header.variables), "chunks": 0},
        "cost": {"rounds": log.rounds, "requests": log.requests, "nbytes": log.nbytes},
    }


def _format(file: ClassicFile) -> dict[str, Json]:
    return {
        "name": "netCDF-3",
        "version": file.header.version,
        "header_nbytes": file.header.nbytes,
        "records": file.record_count,
        "record_nbytes": file.record_nbytes,
        "streaming": file.header.stated_records is None,
    }


def _dimensions(file: ClassicFile) -> dict[str, Json]:
    return {one.name: {"length": file.length(one), "unlimited": one.length is None} for one in file.header.dimensions}


def _dataset(file: ClassicFile, variable: ClassicVariable) -> dict[str, Json]:
    shape = file.shape(variable)
    layout: dict[str, Json] = {
        "kind": "record" if variable.is_record else "fixed",
        "address": variable.begin,
        "nbytes": variable.slab_nbytes,
    }
    if variable.is_record:
        layout["stride"] = file.record_nbytes
    is_default = find_fill(variable).tobytes() == variable.type.default_fill.tobytes()
    return {
        "type": type_text(variable.type),
        "shape": list(shape),
        "max_shape": [None, *shape[1:]] if variable.is_record else list(shape),
        "dimensions": [file.header.dimensions[number].name for number in variable.dimension_ids],
        "layout": layout,
        "filters": [],
        "fill": {"kind": "default" if is_default else "user", "value": json_value(find_fill(variable))},
    }
