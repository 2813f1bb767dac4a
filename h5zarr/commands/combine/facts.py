"""What must be the same in files that are combined: a few facts per array, kept after everything else is freed."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np

from h5zarr.errors import H5ZarrError
from h5zarr.zarr_model.data_types import decode_data_type
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Hierarchy, Json, VariableRecord
from h5zarr.zarr_model.missing import FILL_VALUE, decode_missing_number

ABSENT = "none"
_CONVENTIONS = ("scale_factor", "add_offset", "units", "calendar")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayFacts:
    """The facts of an array that are compared, as readable text.

    `meaning` has the attributes that define what the numbers mean. `content` describes the values of a coordinate, if
    the references contain them. `is_referenced`: the chunks are referenced, so they stay as they are in the file.
    """

    data_type: str
    shape: tuple[int, ...]
    dimension_names: tuple[str, ...]
    chunk_shape: tuple[int, ...]
    codecs: str
    fill_value: str
    meaning: Mapping[str, str]
    is_referenced: bool
    content: str | None = None

    def length_along(self, dimension: str) -> int | None:
        """Return the length of the named axis, or None if there is no such axis."""
        if dimension not in self.dimension_names:
            return None
        return self.shape[self.dimension_names.index(dimension)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """The arrays of a file by path, the paths that references cannot hold, and the unlimited dimensions."""

    arrays: Mapping[str, ArrayFacts]
    refused: frozenset[str] = frozenset()
    unlimited: frozenset[str] = field(default_factory=frozenset)


def find_facts(hierarchy: Hierarchy) -> FileFacts:
    """Return the facts of a file."""
    arrays, unlimited = {}, set()
    for path, node in hierarchy.nodes.items():
        if isinstance(node, GroupNode):
            unlimited |= set() if node.record is None else set(node.record.unlimited)
        else:
            arrays[path] = _find_array_facts(path, node, hierarchy.record_of(path))
    refused = frozenset(problem.path for problem in hierarchy.problems if problem.path not in hierarchy.nodes)
    return FileFacts(arrays=arrays, refused=refused, unlimited=frozenset(unlimited))


def _find_array_facts(path: str, node: ArrayNode, record: VariableRecord | None) -> ArrayFacts:
    withheld = {} if record is None else {name: kept.value for name, kept in record.withheld.items()}
    meaning = {name: _text(node.attributes.get(name, withheld.get(name))) for name in _CONVENTIONS}
    meaning[FILL_VALUE] = _missing_text(node, record)
    return ArrayFacts(
        data_type=node.data_type if isinstance(node.data_type, str) else _type_text(node.data_type),
        shape=node.shape,
        dimension_names=node.dimension_names,
        chunk_shape=node.grid.largest_shape,
        codecs=", ".join(map(_codec_text, node.codecs)),
        fill_value=_text(node.fill_value),
        meaning=meaning,
        is_referenced=node.manifest.count > 0,
        content=_content_text(path, node),
    )


def _text(value: Json) -> str:
    return ABSENT if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _type_text(data_type: Json) -> str:
    settings = data_type.get("configuration", {})
    return f"{data_type['name']}({', '.join(f'{name}={_text(value)}' for name, value in settings.items())})"


def _codec_text(codec: Json) -> str:
    settings = codec.get("configuration", {})
    if not settings:
        return str(codec["name"])
    return f"{codec['name']}({', '.join(f'{name}={_text(value)}' for name, value in sorted(settings.items()))})"


def _missing_text(node: ArrayNode, record: VariableRecord | None) -> str:
    """Return `_FillValue` as a number. The attribute holds floats as base64; a left-out value is in the record."""
    value = node.attributes.get(FILL_VALUE)
    if value is None and record is not None and record.fill_value is not None:
        value = record.fill_value.value
    if isinstance(value, str) and isinstance(node.data_type, str) and node.data_type.startswith("float"):
        try:
            return repr(decode_missing_number(value))
        except (ValueError, struct.error):
            return _text(value)
    return _text(value)


def _content_text(path: str, node: ArrayNode) -> str | None:
    """Return the first and last value of a coordinate with plain inlined values, and a checksum of all."""
    is_plain = len(node.codecs) == 1 and node.codecs[0]["name"] == "bytes"
    inline = node.manifest.inline
    if node.dimension_names != (path.rpartition("/")[2],) or not is_plain or len(inline) != 1 or node.manifest.count:
        return None
    (content,) = inline.values()
    order = node.codecs[0].get("configuration", {}).get("endian", "little")
    try:
        values = np.frombuffer(content, decode_data_type(node.data_type, ">" if order == "big" else "<"))
    except (H5ZarrError, ValueError):
        return None
    shown = f"{values[0]} to {values[-1]}" if len(values) else "no values"
    return f"{shown}, checksum {sha256(values.tobytes()).hexdigest()[:8]}"
