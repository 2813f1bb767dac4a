"""Variables of references in columns: how their chunks are stored, their parts, and parameters per file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from h5zarr.commands.inspect.inspected_references import InspectedArray, InspectedReferences
from h5zarr.commands.inspect.storage import BETWEEN, ratio_text
from h5zarr.commands.inspect.values import value_text
from h5zarr.commands.inspect.variables import Row, type_columns
from h5zarr.commands.inspect.view import View
from h5zarr.commands.inspect.zarr_values import describe_array_attributes, fill_text, type_of, type_text
from h5zarr.containers.layout_text import ranges_text
from h5zarr.display import ELLIPSIS, counted, readable, shortened, size
from h5zarr.errors import MalformedFile
from h5zarr.filters.table import filter_label
from h5zarr.hdf5.model import Attribute
from h5zarr.zarr_model.codecs import (
    CROP_CODEC,
    NUMCODECS_PREFIX,
    CodecFilter,
    find_similar_filter,
    is_compressing,
    own_codec_label,
    split_crop,
)
from h5zarr.zarr_model.grid import ChunkGrid
from h5zarr.zarr_model.hierarchy import Json
from h5zarr.zarr_model.joined import JoinedPart, JoinedVariable

PARTS = 6
_MOST_TYPES = 3
_VALUE_LIMIT = 30
_SERIALIZERS = ("bytes", "vlen-utf8", "vlen-bytes")  # the type says as much


def reference_row(
    found: InspectedReferences,
    path: str,
    variable: InspectedArray | JoinedVariable,
    view: View,
    hidden_attributes: Collection[str],
) -> Row:
    """Return the row of a variable. One that consists of parts has a few lines about each."""
    name, shape = readable(path.rpartition("/")[2]), shape_text(variable.dimension_names, variable.shape)
    if isinstance(variable, JoinedVariable):
        return _joined_row(name, shape, variable, found.parts_of(path, variable), view, hidden_attributes)
    datatype = type_of(variable)
    type, members = (datatype, []) if isinstance(datatype, str) else type_columns(datatype, view)
    return Row(
        name=name,
        type=type,
        shape=shape,
        storage=storage_text(variable),
        members=members,
        details=_parameter_lines(variable),
        attributes=describe_array_attributes(variable, hidden_attributes) if view.attributes else {},
        owner=None if isinstance(datatype, str) else datatype,
    )


def shape_text(names: Sequence[str], shape: Sequence[int]) -> str:
    """Return `(time=240, lat=180)`, or `scalar`."""
    axes = [f"{readable(name)}={extent}" for name, extent in zip(names, shape, strict=True)]
    return f"({', '.join(axes)})" if axes else "scalar"


def storage_text(array: InspectedArray) -> str:
    """Return chunks, codecs, size and fill: `chunks (1, 180) · 240 of 240 · deflate(4) · 3.1 MB (4.2:1)`."""
    counts = array.chunks
    if counts.total == counts.inlined == 1:
        said = [f"inlined {size(counts.inlined_nbytes)}"]
    else:
        stored = f"{counts.referenced + counts.inlined:,} of {counts.total:,}"
        said = [_chunks_text(array), stored + (f", {counts.inlined:,} inlined" if counts.inlined else "")]
    said += [", ".join(codec_labels(array.codecs))] if codec_labels(array.codecs) else []
    if counts.referenced and counts.nbytes is not None:
        is_smaller = counts.nbytes and counts.plain_nbytes and any(map(is_compressing, array.codecs))
        ratio = f" ({ratio_text((counts.plain_nbytes or 0) / counts.nbytes)}:1)" if is_smaller else ""
        said.append(size(counts.nbytes) + ratio)
    fill = fill_text(array)
    return BETWEEN.join([*said, *([f"fill {fill}"] if fill is not None else [])])


def grid_text(grid: ChunkGrid) -> str:
    """Return the shape of chunks: `(10, 20)`, or `(1 to 10, 20)` if they have different lengths along an axis."""
    lengths = [
        str(axis.longest) if axis.shortest == axis.longest else f"{axis.shortest} to {axis.longest}"
        for axis in grid.axes
    ]
    return f"({', '.join(lengths)})"


def codec_labels(codecs: Sequence[Json]) -> list[str]:
    """Return the codecs in the words for filters: `shuffle`, `deflate(4)`."""
    return [label_codec(codec, found) for codec, found in find_filters(codecs)]


def find_filters(codecs: Sequence[Json]) -> list[tuple[Json, CodecFilter | None]]:
    """Return the codecs that correspond to filters, each with its filter; None if HDF5 has no such filter."""
    shown = [codec for codec in codecs if codec["name"] not in _SERIALIZERS and codec["name"] != CROP_CODEC]
    return [(codec, find_similar_filter(codec)) for codec in shown]


def label_codec(codec: Json, found: CodecFilter | None) -> str:
    """Return the label of the filter of a codec, or the name of the codec if it has none."""
    if found is not None:
        return filter_label(found)
    return readable(own_codec_label(codec) or str(codec["name"]).removeprefix(NUMCODECS_PREFIX))


def _chunks_text(array: InspectedArray) -> str:
    text = f"chunks {grid_text(array.grid)}"
    try:
        stored_shape, _ = split_crop(array.codecs, len(array.shape))
    except MalformedFile:
        return text
    return text if stored_shape is None else f"{text}, stored as {_tuple(stored_shape)}"


def _tuple(lengths: Sequence[int]) -> str:
    return f"({', '.join(map(str, lengths))})"


def _parameter_lines(array: InspectedArray) -> list[str]:
    """Return at most one line: attributes that each file has its own value of, and the variables with the values."""
    names = [f"{readable(name)} in {readable(where)}" for name, where in array.record.parameters.items()]
    return [f"one per file: {', '.join(names)}"] if names else []


# --- variables that consist of parts


def _joined_row(
    name: str,
    shape: str,
    variable: JoinedVariable,
    arrays: Sequence[InspectedArray | None],
    view: View,
    hidden_attributes: Collection[str],
) -> Row:
    """Return the row of a variable of several arrays. Attributes that differ are shown with each part."""
    known = [one for one in arrays if one is not None]
    types = list(dict.fromkeys(map(type_text, known)))
    more = f", {ELLIPSIS}" if len(types) > _MOST_TYPES else ""
    attributes = [
        {} if one is None or not view.attributes else describe_array_attributes(one, hidden_attributes)
        for one in arrays
    ]
    common = {key: one for key, one in (attributes[0] if attributes else {}).items() if _is_common(key, attributes)}
    details = []
    for number, (part, array) in enumerate(zip(variable.parts, arrays, strict=True)):
        if view.everything or number < PARTS:
            own = {key: one for key, one in attributes[number].items() if key not in common}
            details += _part_lines(number, part, array, variable, own, view)
    if not view.everything and len(arrays) > PARTS:
        details.append(f"{ELLIPSIS} {counted(len(arrays) - PARTS, 'more part')} (use {view.hint})")
    return Row(
        name=name,
        type=", ".join(types[:_MOST_TYPES]) + more or "no type",
        shape=shape,
        storage=f'{counted(len(arrays), "part")}, which engine="h5zarr" joins',
        members=[],
        details=details,
        attributes=common,
        owner=None,
    )


def _is_common(name: str, attributes: Sequence[Mapping[str, Attribute]]) -> bool:
    """Return whether all parts have the same attribute of this name."""
    found = [one.get(name) for one in attributes]
    texts = {None if one is None else (one.datatype, value_text(one.value, one.datatype)) for one in found}
    return len(texts) == 1


def _part_lines(
    number: int,
    part: JoinedPart,
    array: InspectedArray | None,
    variable: JoinedVariable,
    own: Mapping[str, Attribute],
    view: View,
) -> list[str]:
    """Return what a part contains, and how it is stored, on lines of their own."""
    type = "missing" if array is None else type_text(array)
    place = f", in {readable(part.path)}" if view.everything else ""
    lines = [f"part {number}, {type}: {_boxes_text(part, variable)}{place}"]
    if array is None:
        return lines
    values = [
        f"{readable(name)} = {shortened(value_text(one.value, one.datatype), view.limit(_VALUE_LIMIT))}"
        for name, one in own.items()
    ]
    below = [storage_text(array), *([", ".join(values)] if values else []), *_parameter_lines(array)]
    return lines + [f"    {line}" for line in below]


def _boxes_text(part: JoinedPart, variable: JoinedVariable) -> str:
    """Return the ranges of a part along the joined axis; for several axes, the range along each of the first box."""
    names = [readable(variable.dimension_names[axis]) for axis in variable.axes]
    boxes: list[list[list[int]]] = part.boxes.tolist()
    if not boxes:
        return "nothing"
    if len(names) == 1:
        return f"{names[0]} {ranges_text([(start, length) for ((start, _, length),) in boxes])}"
    first = ", ".join(
        f"{name} {ranges_text([(start, length)])}" for name, (start, _, length) in zip(names, boxes[0], strict=True)
    )
    return first + (f" and {len(boxes) - 1:,} more" if len(boxes) > 1 else "")
