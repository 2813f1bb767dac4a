"""Reading any content as a reference file ends in an H5ZarrError or in a valid hierarchy."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from h5zarr.containers.json.json_reading import decode_references
from h5zarr.errors import H5ZarrError
from h5zarr.zarr_model.hierarchy import TO_THE_END, ArrayNode, GroupNode, Hierarchy
from tests.containers.hierarchies import v2_text, v3_text
from tests.containers.json.test_json_v3 import small

OBJECTS = {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|O", "fill_value": "", "order": "F"}
MIXED = {
    "version": 1,
    "templates": {"u": "s3://bucket"},
    "refs": {
        ".zgroup": {"zarr_format": 2},
        ".zmetadata": {"zarr_consolidated_format": 1, "metadata": {"w/.zattrs": {"_FillValue": 5}}},
        "w/.zarray": {
            **OBJECTS,
            "shape": [20, 3],
            "chunks": [1, 3],
            "dtype": "<M8[s]",
            "fill_value": 5,
            "dimension_separator": "/",
            "filters": [{"id": "delta", "dtype": "<i8"}, {"id": "shuffle", "elementsize": 8}],
            "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0},
        },
        **{f"w/{place}/0": ["{{u}}/a", place, 5] for place in range(20)},
        "g/t/.zarray": {**OBJECTS, "filters": [{"id": "json2"}], "compressor": None},
        "g/t/0": '["a","b","|O",[2]]',
        "g/r/.zarray": {**OBJECTS, "dtype": [["a", "<i4"], ["b", [["c", "|S3"]]]], "fill_value": None},
        "g/r/0": ["{{u}}/whole"],
    },
}


def unfolded(content: bytes) -> Any:
    """Return a document in which metadata are objects, so that edits reach them."""
    document = json.loads(content)
    for key, value in document["refs"].items():
        if isinstance(value, str) and value.startswith("{"):
            document["refs"][key] = json.loads(value)
    return document


DOCUMENTS = [unfolded(v3_text(small())), unfolded(v2_text(small())), MIXED, MIXED["refs"]]
WORDS = ["<i4", "|O", ">f8", "|S3", "F", "zstd", "v2", "default", ".", "/", "base64:AA==", "base64:A", "", "\ud800"]
NAMES = [
    "shape",
    "dtype",
    "codecs",
    "name",
    "id",
    "v/c/0",
    "g/temp/c/0/2",
    "zarr.json",
    ".zarray",
    "w/1/0",
    "a//.zgroup",
]
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=3)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every container inside a document, with each of its keys or positions."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += [(value, key), *places(inner)]
    return found


@st.composite
def edited_documents(draw: st.DrawFn) -> Any:
    document = deepcopy(draw(st.sampled_from(DOCUMENTS)))
    for _ in range(draw(st.integers(1, 3))):
        container, key = draw(st.sampled_from(places(document)))
        match draw(st.sampled_from(["replace", "remove", "add", "move"])):
            case "replace":
                container[key] = draw(VALUES)
            case "remove":
                del container[key]
            case "add" if isinstance(container, dict):
                container[draw(st.sampled_from(NAMES) | st.text(max_size=4))] = draw(VALUES)
            case "add":
                container.append(draw(VALUES))
            case "move":
                other, place = draw(st.sampled_from(places(document)))
                other[place] = deepcopy(container[key])
        if not places(document):
            break
    return document


def check(hierarchy: Hierarchy) -> None:
    """Check that a hierarchy keeps its promises, and can be written."""
    assert isinstance(hierarchy.nodes["/"], GroupNode)
    seen = set()
    for path, node in hierarchy.nodes.items():
        assert path == "/" or (path.rpartition("/")[0] or "/") in seen
        if isinstance(node, GroupNode):
            seen.add(path)
            continue
        check_array(node, len(hierarchy.urls))
    v3_text(hierarchy)


def check_array(node: ArrayNode, url_count: int) -> None:
    manifest, rank = node.manifest, len(node.shape)
    assert len(node.chunk_shape) == len(node.dimension_names) == rank
    assert all(isinstance(name, str) for name in node.dimension_names)
    assert min(node.chunk_shape, default=1) > 0
    assert node.fill_value is not None
    assert all(isinstance(codec["name"], str) for codec in node.codecs)
    assert manifest.index.shape == (manifest.count, rank)
    assert {column.dtype.str for column in (manifest.index, manifest.address, manifest.nbytes)} == {"<i8"}
    rows = list(map(tuple, manifest.index.tolist()))
    assert rows == sorted(set(rows))
    assert not set(rows) & set(manifest.inline)
    assert not manifest.count or min(manifest.address.min(), manifest.nbytes.min() - TO_THE_END) >= 0
    assert not manifest.count or np.max(manifest.source) < url_count


def failure_of(content: bytes) -> H5ZarrError | None:
    """Return how reading fails, or None where it does not, and what was read is right."""
    try:
        read = decode_references(content, "refs.json")
    except H5ZarrError as error:
        return error
    check(read.hierarchy)
    return None


@settings(max_examples=400)
@given(edited_documents(), st.booleans())
def test_edited_documents(document: Any, is_folded: bool) -> None:
    if is_folded and isinstance(document, dict) and isinstance(refs := document.get("refs"), dict):
        document["refs"] = {key: json.dumps(value) if isinstance(value, dict) else value for key, value in refs.items()}
    if (error := failure_of(json.dumps(document).encode())) is not None:
        assert str(error).startswith("refs.json: ")
        assert error.remedy


@settings(max_examples=200)
@given(st.binary(max_size=50), st.sampled_from([b"", b"{", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"]))
def test_bytes_of_any_kind(content: bytes, first: bytes) -> None:
    error = failure_of(first + content)
    assert error is not None
    assert str(error).startswith("refs.json: ")


def test_types_inside_types_end_somewhere() -> None:
    inner: Any = "<i4"
    for _ in range(400):
        inner = [["a", inner]]
    refs = {"v/.zarray": {**OBJECTS, "dtype": inner, "fill_value": None, "filters": None, "compressor": None}}
    failure_of(json.dumps(refs).encode())
