"""A file as JSON for machines: complete, never shortened. `SCHEMA` documents the structure.

Numbers that JSON lacks are the strings "NaN", "Infinity" and "-Infinity". Bytes are text: UTF-8, or Latin-1 if they are
not valid UTF-8. References are paths. Complex numbers are [real, imaginary], opaque values hexadecimal, compound values
objects.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from h5zarr.commands.inspect.dimensions import Dimensions, find_dimensions
from h5zarr.commands.inspect.fill import fill_array
from h5zarr.commands.inspect.inspect_report import counts
from h5zarr.commands.inspect.part import select
from h5zarr.commands.inspect.selections import selection_text
from h5zarr.commands.inspect.storage import chunk_total
from h5zarr.commands.inspect.types import type_name
from h5zarr.commands.inspect.values import PathOf, unknown_path
from h5zarr.display import text_of
from h5zarr.filters.table import filter_label
from h5zarr.hdf5.model import (
    Attribute,
    ChunkedLayout,
    CommittedDatatype,
    CompactLayout,
    ContiguousLayout,
    Dataset,
    Dataspace,
    ExternalLayout,
    ExternalLink,
    Group,
    H5File,
    HardLink,
    Layout,
    Link,
    Object,
    SoftLink,
    VirtualLayout,
)
from h5zarr.hdf5.object_references import AttributeReference, ObjectReference, RegionReference
from h5zarr.io.log import RequestLog

Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None

VERSION = 1
SCHEMA = """\
version     1; it grows when a key changes its meaning or goes, not when one is added
url         the file, without credentials
nbytes      its size
groups      by path: address, attributes, dimensions, links
  dimensions  by name: length, unlimited, path of the scale
  links       by name: kind (hard, soft, external, user), path or target, file; hard links to what could not be read
              have path null
datasets    by path: address, type, shape, max_shape (null in it: unlimited), dimensions (null: without a name),
            layout, filters, fill, attributes; shape is [] for a scalar, null for a null dataspace
  layout      kind (compact, contiguous, chunked, virtual, external), and by kind: address, nbytes; chunk_shape, index,
              chunks_stored, chunks_total, nbytes (as stored); mappings; segments
  filters     number, name (as the file says it), label, optional, values; in the order of writing
  fill        kind (undefined, default, user), value (null unless the writer chose one: zeros by default)
datatypes   committed ones, by path: address, type, attributes
attributes  by name: type, shape, value; shape and value are null for a null dataspace
problems    path, kind, message, remedy
counts      groups, datasets, chunks: of the whole file, whatever part is shown
cost        rounds, requests, nbytes
"""


def describe(
    file: H5File,
    nbytes: int,
    log: RequestLog,
    *,
    pattern: str | None = None,
    depth: int | None = None,
    attributes: bool = True,
) -> dict[str, Json]:
    """Return the description of a file, or of the part that `pattern` and `depth` select, in the form of `SCHEMA`."""
    part = select(file, pattern, depth)
    dimensions = find_dimensions(file)
    shown = [(path, found) for path, found in file.walk() if path in part.whole]
    groups, datasets, chunks = counts(file)

    def describe_attributes(owner: Object) -> dict[str, Json]:
        if not attributes:
            return {}
        return {"attributes": {name: describe_attribute(each, file.path_of) for name, each in owner.attributes.items()}}

    return {
        "version": VERSION,
        "url": file.url,
        "nbytes": nbytes,
        "groups": {
            path: {**_group(file, path, found, dimensions), **describe_attributes(found)}
            for path, found in shown
            if isinstance(found, Group)
        },
        "datasets": {
            path: {**_dataset(path, found, dimensions), **describe_attributes(found)}
            for path, found in shown
            if isinstance(found, Dataset)
        },
        "datatypes": {
            path: {"address": found.address, "type": type_name(found.datatype), **describe_attributes(found)}
            for path, found in shown
            if isinstance(found, CommittedDatatype)
        },
        "problems": [
            {"path": each.path, "kind": each.kind, "message": each.message, "remedy": each.remedy}
            for each in file.problems
        ],
        "counts": {"groups": groups, "datasets": datasets, "chunks": chunks},
        "cost": {"rounds": log.rounds, "requests": log.requests, "nbytes": log.nbytes},
    }


def json_value(value: Any, path_of: PathOf = unknown_path) -> Json:
    """Return a numpy value, or one of the model, in JSON form."""
    if isinstance(value, np.ndarray):
        return json_value(value[()], path_of) if value.ndim == 0 else [json_value(each, path_of) for each in value]
    if isinstance(value, np.void):
        if value.dtype.names is not None:
            return {name: json_value(value[name], path_of) for name in value.dtype.names}
        return "0x" + value.tobytes().hex()
    if isinstance(value, ObjectReference | RegionReference | AttributeReference):
        return _reference(value, path_of)
    if isinstance(value, bytes):
        return text_of(value)
    if isinstance(value, np.complexfloating):
        return [_number(float(value.real)), _number(float(value.imag))]
    if isinstance(value, np.bool_ | bool):
        return bool(value)
    if isinstance(value, np.integer | int):
        return int(value)
    if isinstance(value, np.floating | float):
        return _number(float(value))
    return None if value is None else str(value)


def _number(value: float) -> Json:
    if value != value:
        return "NaN"
    return value if abs(value) != float("inf") else "Infinity" if value > 0 else "-Infinity"


def _reference(reference: ObjectReference | RegionReference | AttributeReference, path_of: PathOf) -> Json:
    match reference:
        case RegionReference(target, selection):
            said = None if selection is None else selection_text(selection)
            return {"path": _reference(target, path_of), "selection": said}
        case AttributeReference(target, name):
            return {"path": _reference(target, path_of), "attribute": name}
        case ObjectReference(address, file):
            return path_of(reference) if file is None else {"file": file, "address": address}


def _group(file: H5File, path: str, group: Group, dimensions: Dimensions) -> dict[str, Json]:
    return {
        "address": group.address,
        "dimensions": {
            each.name: {"length": each.length, "unlimited": each.unlimited, "path": each.path}
            for each in dimensions.of_group(path)
        },
        "links": {name: _link(file, link) for name, link in group.links.items()},
    }


def _link(file: H5File, link: Link) -> Json:
    match link:
        case HardLink(_, address):
            return {"kind": "hard", "path": file.paths.get(address) if address in file.objects else None}
        case SoftLink(_, target):
            return {"kind": "soft", "target": target}
        case ExternalLink(_, name, target):
            return {"kind": "external", "file": name, "target": target}
        case _:
            return {"kind": "user", "class": link.link_class, "content": "0x" + link.content.hex()}


def _dataset(path: str, dataset: Dataset, dimensions: Dimensions) -> dict[str, Json]:
    space = dataset.dataspace
    return {
        "address": dataset.address,
        "type": type_name(dataset.datatype),
        "shape": _shape(space),
        "max_shape": list(space.max_shape or space.shape) if space.count or space.shape else None,
        "dimensions": list(dimensions.of_axes(path, dataset)),
        "layout": _layout(dataset.layout, space.shape),
        "filters": [
            {
                "number": each.number,
                "name": each.name,
                "label": filter_label(each),
                "optional": each.optional,
                "values": list(each.values),
            }
            for each in dataset.filters
        ],
        "fill": {"kind": dataset.fill.kind.value, "value": json_value(fill_array(dataset.fill, dataset.datatype))},
    }


def _layout(layout: Layout, shape: tuple[int, ...]) -> Json:
    match layout:
        case CompactLayout(content):
            return {"kind": "compact", "nbytes": len(content)}
        case ContiguousLayout(address, nbytes):
            return {"kind": "contiguous", "address": address, "nbytes": nbytes}
        case ChunkedLayout():
            return {
                "kind": "chunked",
                "chunk_shape": list(layout.chunk_shape),
                "index": layout.index_kind.value,
                "chunks_stored": len(layout.chunks),
                "chunks_total": chunk_total(shape, layout.chunk_shape),
                "nbytes": int(layout.chunks.nbytes.sum()),
            }
        case VirtualLayout(mappings):
            pieces: list[Json] = [
                {
                    "selection": selection_text(each.virtual_selection),
                    "source_file": each.source_file,
                    "source_dataset": each.source_dataset,
                    "source_selection": selection_text(each.source_selection),
                }
                for each in mappings
            ]
            return {"kind": "virtual", "mappings": pieces}
        case ExternalLayout(segments):
            pieces = [{"file": each.file, "address": each.address, "nbytes": each.nbytes} for each in segments]
            return {"kind": "external", "segments": pieces}


def describe_attribute(attribute: Attribute, path_of: PathOf) -> Json:
    """Return the type, shape and value of an attribute."""
    return {
        "type": type_name(attribute.datatype),
        "shape": _shape(attribute.dataspace),
        "value": json_value(attribute.value, path_of),
    }


def _shape(space: Dataspace) -> Json:
    return list(space.shape) if space.count or space.shape else None
