from __future__ import annotations

import gzip
import io
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from h5zarr.containers.json.json_reading import decode_references
from h5zarr.containers.json.json_recognition import is_references
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.references import References
from h5zarr.containers.source_state import SourceState
from h5zarr.errors import H5ZarrError, MalformedFile, Unsupported
from h5zarr.io.source import Identity
from h5zarr.signatures import WrongFormat
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import TO_THE_END, ArrayNode, GroupNode, Hierarchy, Manifest
from h5zarr.zarr_model.v3_nodes import encode_metadata_v3
from tests.containers.hierarchies import (
    LITTLE,
    RawFile,
    assert_same,
    make_array,
    make_hierarchy,
    v3_text,
    write_json_v3,
)
from tests.containers.json.test_json_v2 import GOLDEN as GOLDEN_V2
from tests.containers.json.test_json_v3 import GOLDEN as GOLDEN_V3
from tests.containers.json.test_json_v3 import ODD_NAMES, nested, small

URL = "s3://bucket/data.nc"


def decode(document: Any) -> References:
    return decode_references(json.dumps(document).encode(), "refs.json")


def array_v3(**changes: Any) -> dict[str, Any]:
    """Return the metadata of an array of 4 by 6 elements in chunks of 2 by 2, with changes."""
    node = ArrayNode(
        grid=RegularGrid((4, 6), (2, 2)),
        data_type="int32",
        codecs=(LITTLE,),
        fill_value=0,
        dimension_names=("y", "x"),
        attributes={},
        manifest=Manifest(index=np.empty((0, 2), np.int64), address=np.empty(0), nbytes=np.empty(0)),
    )
    metadata = {**encode_metadata_v3(node), **changes}
    return {name: value for name, value in metadata.items() if value is not ...}


def array_v2(**changes: Any) -> dict[str, Any]:
    given = {"zarr_format": 2, "shape": [4, 6], "chunks": [2, 2], "dtype": "<i4", "fill_value": None, "order": "C"}
    return {**given, "filters": None, "compressor": None, **changes}


def group_v3(**attributes: Any) -> dict[str, Any]:
    return {"zarr_format": 3, "node_type": "group", "attributes": attributes}


def manifest_of(entries: dict[str, Any], **changes: Any) -> Manifest:
    node = decode({"v/zarr.json": array_v3(**changes), **entries}).hierarchy.nodes["/v"]
    assert isinstance(node, ArrayNode)
    return node.manifest


# What h5zarr writes


def test_the_golden_file_of_version_3_is_the_hierarchy_that_it_was_written_from() -> None:
    read = decode_references(GOLDEN_V3.read_bytes(), "golden_v3.json")
    assert_same(read.hierarchy, small())
    identity = Identity(nbytes=9000, etag='"e"')
    assert read.provenance == Provenance("0.1", (SourceState("s3://bucket/ocean.nc", identity),))


def test_the_golden_file_of_version_2_is_the_same_in_the_terms_of_version_3() -> None:
    assert_same(decode_references(GOLDEN_V2.read_bytes(), "golden_v2.json").hierarchy, small())


def test_groups_in_groups_read_back(raw_file: RawFile) -> None:
    hierarchy = nested(raw_file)
    assert_same(decode_references(v3_text(hierarchy), "refs.json").hierarchy, hierarchy)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_read_back_as_arrays_groups_attributes_and_files(tmp_path: Path, name: str) -> None:
    file = RawFile(tmp_path / f"U{name}")
    array = make_array(file, np.arange(12).reshape(3, 4), (2, 2), dimension_names=("y", name), inline=[(1, 1)])
    nodes = {f"/{name}": array, f"/G{name}": GroupNode(attributes={name: name}), f"/G{name}/{name}": array}
    hierarchy = make_hierarchy(file, nodes)
    assert_same(decode_references(v3_text(hierarchy), "refs.json").hierarchy, hierarchy)


def written(hierarchy: Hierarchy, *sources: str) -> References:
    """Return what is read of a hierarchy that was made of the files at `sources`."""
    provenance = Provenance("1", tuple(SourceState(url, Identity(nbytes=1)) for url in sources))
    out = io.BytesIO()
    write_json_v3(hierarchy, provenance, out)
    return decode_references(out.getvalue(), "refs.json")


def one_chunk_each(*sources: int) -> Hierarchy:
    """Return four arrays with one chunk each, in the files with these numbers."""
    one = np.array([1])
    nodes: dict[str, GroupNode | ArrayNode] = {"/": GroupNode(attributes={})}
    for place, source in enumerate(sources):
        manifest = Manifest(index=one[:, None] - 1, address=one, nbytes=one, source=source)
        nodes[f"/v{place}"] = ArrayNode(
            grid=RegularGrid((1,), (1,)),
            data_type="int8",
            codecs=({"name": "bytes"},),
            fill_value=0,
            dimension_names=("x",),
            attributes={},
            manifest=manifest,
        )
    return Hierarchy(nodes=nodes, urls=("s3://b/0", "s3://b/1?v=2", "s3://b/2", "s3://b/3"))


def test_urls_keep_their_numbers_and_those_that_nothing_refers_to_have_one() -> None:
    read = written(one_chunk_each(2, 1, 0), "s3://b/0", "s3://b/1?v=2", "s3://b/2", "s3://b/3")
    assert_same(read.hierarchy, one_chunk_each(2, 1, 0))


def test_the_first_file_may_go_by_another_url() -> None:
    read = written(one_chunk_each(3, 0, 1), "file:///elsewhere/0", "s3://b/1?v=2", "s3://b/2", "s3://b/3")
    assert_same(read.hierarchy, one_chunk_each(3, 0, 1))


def test_urls_that_are_not_among_the_files_come_behind_them() -> None:
    read = written(one_chunk_each(2, 0, 1), "s3://b/0")
    assert read.hierarchy.urls == ("s3://b/0", "s3://b/2", "s3://b/1?v=2")


def test_without_provenance_urls_are_numbered_as_they_occur() -> None:
    document = json.loads(v3_text(one_chunk_each(2, 1, 2, 0)))
    del document["h5zarr"]
    read = decode(document)
    assert read.provenance is None
    assert read.hierarchy.urls == ("s3://b/2", "s3://b/1?v=2", "s3://b/0")
    arrays = [node for node in read.hierarchy.nodes.values() if isinstance(node, ArrayNode)]
    assert [array.manifest.source for array in arrays] == [0, 1, 0, 2]


@pytest.mark.parametrize("value", [5, {}, {"version": "1", "sources": [{}]}, {"version": 1, "sources": []}])
def test_provenance_in_another_form_is_malformed(value: Any) -> None:
    with pytest.raises(MalformedFile, match=r"^refs.json: .* not have h5zarr's form"):
        decode({"version": 1, "h5zarr": value, "refs": {"zarr.json": group_v3()}})


# The container


def test_compressed_files_are_known_by_their_first_bytes(raw_file: RawFile) -> None:
    zstandard = pytest.importorskip("zstandard")
    hierarchy = nested(raw_file)
    content = v3_text(hierarchy)
    halves = content[:100], content[100:]
    forms = [
        gzip.compress(content),
        b"".join(map(gzip.compress, halves)),
        zstandard.compress(content),
        b"".join(map(zstandard.compress, halves)),
    ]
    for form in forms:
        assert is_references(form[:8])
        assert_same(decode_references(form, "refs.json").hierarchy, hierarchy)


@pytest.mark.parametrize("damage", [lambda content: content[:-5], lambda content: content[:20] + b"x" + content[21:]])
@pytest.mark.parametrize("name", ["gzip", "zstandard"])
def test_damaged_compression_is_malformed(name: str, damage: Any) -> None:
    compress = pytest.importorskip(name).compress
    with pytest.raises(MalformedFile, match=r"^refs.json: "):
        decode_references(damage(compress(v3_text(small()))), "refs.json")


@pytest.mark.parametrize("name", ["gzip", "zstandard"])
def test_a_bomb_is_not_decompressed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compress = pytest.importorskip(name).compress
    monkeypatch.setattr("h5zarr.containers.compression._ALWAYS_NBYTES", 1 << 16)
    monkeypatch.setattr("h5zarr.containers.compression._GROWTH", 10)
    with pytest.raises(MalformedFile, match="decompress to more than"):
        decode_references(compress(b"{" + b" " * (1 << 22)), "refs.json")


@pytest.mark.parametrize("content", [b"{", b' \r\n\t{"a"', b"\xef\xbb\xbf{", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd\x00"])
def test_what_may_be_references(content: bytes) -> None:
    assert is_references(content)


@pytest.mark.parametrize("content", [b"", b"\x89HDF\r\n\x1a\n", b"CDF\x01", b"[{", b'"{"', b"PAR1"])
def test_what_cannot_be_references(content: bytes) -> None:
    assert not is_references(content)


def test_version_0_is_an_object_of_entries_and_values_may_be_objects() -> None:
    hierarchy = decode({"zarr.json": group_v3(title="a"), "v/zarr.json": json.dumps(array_v3())}).hierarchy
    assert list(hierarchy.nodes) == ["/", "/v"]
    assert hierarchy.nodes["/"].attributes == {"title": "a"}


def test_metadata_may_be_in_base64() -> None:
    text = "base64:" + b64encode(json.dumps(array_v3()).encode()).decode()
    assert list(decode({"v/zarr.json": text}).hierarchy.nodes) == ["/", "/v"]


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ([], "not references: this is a text file"),
        ({}, "no Zarr metadata"),
        ({"a": 1}, "no Zarr metadata"),
        ({"version": 1}, "no object of references"),
        ({"version": 1, "refs": []}, "no object of references"),
        ({"version": 1, "refs": {}, "templates": {"a": 5}}, "not an object that maps names to texts"),
    ],
)
def test_a_document_that_holds_no_references_is_malformed(document: Any, what: str) -> None:
    with pytest.raises(MalformedFile, match=what) as caught:
        decode(document)
    assert caught.value.remedy
    assert str(caught.value).startswith("refs.json: ")


@pytest.mark.parametrize("content", [b"{", b"{'a': 1}", b'{"a":' * 100_000])
def test_invalid_json_is_malformed(content: bytes) -> None:
    with pytest.raises(MalformedFile, match=r"^refs.json: it is not valid JSON"):
        decode_references(content, "refs.json")


@pytest.mark.parametrize("content", [b"", b"\xff{}", b"[" * 100_000])
def test_what_does_not_start_like_an_object_is_another_format(content: bytes) -> None:
    with pytest.raises(WrongFormat, match=r"^refs.json: not references"):
        decode_references(content, "refs.json")


def test_another_version_of_the_format_is_refused() -> None:
    with pytest.raises(Unsupported, match="version 2 of the reference format"):
        decode({"version": 2, "refs": {}})


# Templates


def with_templates(url: Any, **templates: Any) -> References:
    return decode({"version": 1, "templates": templates, "refs": {"v/zarr.json": array_v3(), "v/c/0/0": [url, 0, 1]}})


@pytest.mark.parametrize(
    ("url", "whole"),
    [("{{u}}", "s3://a/b"), ("{{ u }}/{{n}}.nc", "s3://a/b/7.nc"), ("http://{x}/{{n}}", "http://{x}/7"), ("x", "x")],
)
def test_names_of_templates_are_replaced(url: str, whole: str) -> None:
    assert with_templates(url, u="s3://a/b", n="7").hierarchy.urls == (whole,)


def test_braces_mean_themselves_without_templates() -> None:
    assert with_templates("{{u}}{% x %}").hierarchy.urls == ("{{u}}{% x %}",)


@pytest.mark.parametrize(
    "url",
    ["{{f(c='x')}}", "{{u|upper}}", "{% if u %}a{% endif %}", "{{u}}{# x #}", "{{", "{{a.b}}", "{{{u}}}", "{{u}}}"],
)
def test_code_in_urls_is_refused(url: str) -> None:
    with pytest.raises(Unsupported, match=r"^refs.json: v/c/0/0: the URL contains code") as caught:
        with_templates(url, u="a")
    assert "Expand" in caught.value.remedy


def test_single_braces_that_some_readers_take_for_a_template_are_refused() -> None:
    with pytest.raises(Unsupported, match="single braces"):
        with_templates("s3://{u}/{{n}}", u="a", n="7")
    assert with_templates("s3://{u}/n", u="a").hierarchy.urls == ("s3://{u}/n",)


def test_templates_that_are_code_are_refused_and_so_are_generators() -> None:
    with pytest.raises(Unsupported, match='template "f" is code'):
        with_templates("x", f="s3://{{c}}")
    with pytest.raises(Unsupported, match="generators"):
        decode({"version": 1, "refs": {}, "gen": [{"key": "a", "url": "b", "dimensions": {}}]})
    assert decode({"version": 1, "refs": {"zarr.json": group_v3()}, "gen": []}).hierarchy.urls == ()


def test_a_template_that_is_not_there_is_malformed() -> None:
    with pytest.raises(MalformedFile, match='v/c/0/0: there is no template "n"'):
        with_templates("{{n}}", u="a")


# Entries


def test_chunks_come_in_row_major_order_whatever_their_order_in_the_file() -> None:
    places = {(1, 2): 5, (0, 10): 3, (0, 9): 2, (1, 0): 4, (0, 0): 1}
    entries = {f"v/c/{y}/{x}": [URL, address, 7] for (y, x), address in places.items()}
    manifest = manifest_of(entries)
    assert manifest.index.tolist() == [[0, 0], [0, 9], [0, 10], [1, 0], [1, 2]]
    assert manifest.address.tolist() == [1, 2, 3, 4, 5]
    assert (manifest.index.dtype, manifest.address.dtype, manifest.nbytes.dtype) == (np.int64,) * 3
    assert manifest.source == 0


def test_chunks_far_apart_come_in_order_too() -> None:
    large = 10**17
    entries = {f"v/c/{y}/{x}": [URL, 0, 1] for y in (large, 0, 3) for x in (large, 1)}
    index = [[y, x] for y in (0, 3, large) for x in (1, large)]
    assert manifest_of(entries).index.tolist() == index


@pytest.mark.parametrize("count", [3, 100])
def test_several_urls_are_numbered_in_the_order_of_chunks(count: int) -> None:
    entries = {f"v/c/{place}/0": [f"u{place % 3}", place, 1] for place in range(count - 1, -1, -1)}
    read = decode({"v/zarr.json": array_v3(), **entries}).hierarchy
    assert read.urls == ("u0", "u1", "u2")
    node = read.nodes["/v"]
    assert isinstance(node, ArrayNode)
    assert isinstance(node.manifest.source, np.ndarray)
    assert node.manifest.source.dtype == np.int32
    assert node.manifest.source.tolist() == [place % 3 for place in range(count)]


@pytest.mark.parametrize("url", [None, ""])
def test_a_url_may_be_left_to_the_reader(url: str | None) -> None:
    read = decode({"v/zarr.json": array_v3(), "v/c/0/0": [url, 5, 6], "v/c/0/1": ["", 5, 6]}).hierarchy
    assert read.urls == ("",)


def test_a_url_alone_is_a_whole_file_and_is_written_as_it_was() -> None:
    entries = {"v/c/0/0": ["a"], "v/c/0/1": ["b", 7, 8], "v/c/0/2": [None]}
    read = decode({"v/zarr.json": array_v3(), **entries}).hierarchy
    node = read.nodes["/v"]
    assert isinstance(node, ArrayNode)
    assert node.manifest.address.tolist() == [0, 7, 0]
    assert node.manifest.nbytes.tolist() == [TO_THE_END, 8, TO_THE_END]
    assert json.loads(v3_text(read))["refs"]["v/c/0/0"] == ["a"]
    assert_same(decode_references(v3_text(read), "refs.json").hierarchy, read)


def test_chunks_may_be_inline_as_text_or_in_base64() -> None:
    entries = {"v/c/0/0": "text é\0", "v/c/1/2": "base64:AAH/", "v/c/1/1": "", "v/c/0/1": [URL, 1, 2]}
    manifest = manifest_of(entries)
    assert manifest.inline == {(0, 0): "text é\0".encode(), (1, 1): b"", (1, 2): b"\x00\x01\xff"}
    assert list(manifest.inline) == sorted(manifest.inline)
    assert manifest.index.tolist() == [[0, 1]]


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize(
    ("value", "what"),
    [
        ([URL, 1], "a reference is"),
        ([URL, 1, 2, 3], "a reference is"),
        ([], "a reference is"),
        ([5, 1, 2], "a reference is"),
        ([URL, -1, 2], "a reference is"),
        ([URL, 1, -2], "a reference is"),
        ([URL, 0, -1], "a reference is"),
        ([URL, 2**63, 0], "a reference is"),
        ([URL, 2**63 - 5, 10], "a reference is"),
        ([URL, 10**400, 0], "a reference is"),
        ([URL, 1.0, 2], "a reference is"),
        ([URL, "1", 2], "a reference is"),
        ([URL, True, 2], "a reference is"),
        ([URL, None, 2], "a reference is"),
        ([[URL], 1, 2], "a reference is"),
        ({}, "a chunk must be a text or a reference"),
        (5, "a chunk must be a text or a reference"),
        (None, "a chunk must be a text or a reference"),
        ("base64:AA", "cannot be decoded"),
        ("base64:%%%%", "cannot be decoded"),
        ("\ud800", "cannot be decoded"),
    ],
    ids=lambda value: str(value)[:30].encode("ascii", "replace").decode(),
)
def test_a_value_that_is_not_a_chunk_is_malformed_and_its_key_is_named(value: Any, what: str, count: int) -> None:
    entries = {f"v/c/0/{place}": [URL, place, 1] for place in range(1, count)}
    with pytest.raises(MalformedFile, match=rf"^refs.json: v/c/0/0: .*{what}") as caught:
        manifest_of({**entries, "v/c/0/0": value})
    assert "Write them again" in caught.value.remedy


@pytest.mark.parametrize(
    ("encoding", "key", "scalar"),
    [
        ({"name": "default", "configuration": {"separator": "/"}}, "c/1/12", "c"),
        ({"name": "default", "configuration": {"separator": "."}}, "c.1.12", "c"),
        ({"name": "default"}, "c/1/12", "c"),
        ("default", "c/1/12", "c"),
        ({"name": "v2", "configuration": {"separator": "/"}}, "1/12", "0"),
        ({"name": "v2", "configuration": {"separator": "."}}, "1.12", "0"),
        ({"name": "v2"}, "1.12", "0"),
    ],
)
@pytest.mark.parametrize("path", ["v", "g/c", "c/0", "0/1"])
def test_keys_are_understood_in_every_encoding(encoding: Any, key: str, scalar: str, path: str) -> None:
    grid = {"name": "regular", "configuration": {"chunk_shape": []}}
    no_axes = {"shape": [], "chunk_grid": grid, "dimension_names": []}
    entries = {
        f"{path}/zarr.json": array_v3(chunk_key_encoding=encoding),
        f"{path}/{key}": [URL, 3, 4],
        "s/zarr.json": array_v3(chunk_key_encoding=encoding, **no_axes),
        f"s/{scalar}": [URL, 5, 6],
    }
    nodes = decode(entries).hierarchy.nodes
    array, single = nodes[f"/{path}"], nodes["/s"]
    assert isinstance(array, ArrayNode)
    assert isinstance(single, ArrayNode)
    assert (array.manifest.index.tolist(), array.manifest.address.tolist()) == ([[1, 12]], [3])
    assert (single.manifest.index.shape, single.manifest.address.tolist()) == ((1, 0), [5])


@pytest.mark.parametrize("separator", [".", "/"])
@pytest.mark.parametrize("path", ["v", "g/c", "c/0", "0/1"])
def test_keys_of_version_2_are_understood_with_either_separator(path: str, separator: str) -> None:
    entries = {f"{path}/{y}{separator}{x}": [URL, 10 * y + x, 4] for y in range(2) for x in range(30)}
    node = decode({f"{path}/.zarray": array_v2(dimension_separator=separator), **entries}).hierarchy.nodes[f"/{path}"]
    assert isinstance(node, ArrayNode)
    assert node.manifest.index.tolist() == [[y, x] for y in range(2) for x in range(30)]


@pytest.mark.parametrize("key", ["s/0", "s/"])
def test_the_key_of_a_scalar_in_version_2_is_0_or_as_virtualizarr_has_it(key: str) -> None:
    node = decode({"s/.zarray": array_v2(shape=[], chunks=[]), key: [URL, 5, 6]}).hierarchy.nodes["/s"]
    assert isinstance(node, ArrayNode)
    assert node.manifest.address.tolist() == [5]


def test_of_two_keys_of_a_scalar_that_of_zarr_counts() -> None:
    entries = {"s/": [URL, 1, 6], "s/0": [URL, 5, 6], "s/x": [URL, 2, 2]}
    node = decode({"s/.zarray": array_v2(shape=[], chunks=[]), **entries}).hierarchy.nodes["/s"]
    assert isinstance(node, ArrayNode)
    assert node.manifest.address.tolist() == [5]


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize(
    "key",
    ["c/0", "c/0/0/0", "c/00/0", "c/-1/0", "c/0/x", "c/0.0", "c", "c/", "c/1/", f"c/{10**18}/0", "c/٣/0", "c/0/0\n"],
)
def test_a_key_that_no_reader_asks_for_is_malformed(key: str, count: int) -> None:
    entries = {f"v/c/0/{place}": [URL, place, 1] for place in range(1, count)}
    with pytest.raises(MalformedFile, match="not a valid chunk key") as caught:
        manifest_of({**entries, f"v/{key}": [URL, 0, 1]})
    assert str(caught.value).startswith(f"refs.json: v/{key}: ")


@pytest.mark.parametrize("key", ["0", "0.0.0", "0/0", "-1.0", "00.1", "."])
def test_a_key_of_version_2_that_no_reader_asks_for_is_malformed(key: str) -> None:
    with pytest.raises(MalformedFile, match="not a valid chunk key"):
        decode({"v/.zarray": array_v2(), f"v/{key}": [URL, 0, 1]})


@pytest.mark.parametrize(
    "key", ["v/readme", "v/0.0", "v/cx", "vc/0/0", "c/0/0", "w/c/0/0", "", "/", "v/", "readme", "v"]
)
@pytest.mark.parametrize("value", [[URL, 0, 1], "text", 5, None, {}])
def test_keys_that_are_neither_metadata_nor_chunks_are_ignored(key: str, value: Any) -> None:
    assert manifest_of({key: value, "v/c/1/1": [URL, 5, 6]}).index.tolist() == [[1, 1]]


# Nodes


def test_groups_that_only_paths_tell_of_are_there_and_parents_come_before_children() -> None:
    document = {"a/b/v/zarr.json": array_v3(), "a/zarr.json": group_v3(title="a"), "zarr.json": group_v3()}
    hierarchy = decode(document).hierarchy
    assert list(hierarchy.nodes) == ["/", "/a", "/a/b", "/a/b/v"]
    assert hierarchy.nodes["/a"].attributes == {"title": "a"}
    assert isinstance(hierarchy.nodes["/a/b"], GroupNode)


def test_consolidated_metadata_count_only_for_nodes_without_their_own() -> None:
    stale = {"a": group_v3(title="stale"), "b": group_v3(title="b"), "b/v": array_v3()}
    root = {**group_v3(), "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": stale}}
    nodes = decode({"zarr.json": root, "a/zarr.json": group_v3(title="a"), "b/v/c/0/0": [URL, 1, 2]}).hierarchy.nodes
    assert list(nodes) == ["/", "/a", "/b", "/b/v"]
    assert nodes["/a"].attributes == {"title": "a"}
    assert nodes["/b"].attributes == {"title": "b"}
    assert isinstance(nodes["/b/v"], ArrayNode)
    assert nodes["/b/v"].manifest.count == 1


def test_consolidated_metadata_of_version_2_count_only_for_keys_that_are_missing() -> None:
    inside = {
        ".zgroup": {"zarr_format": 2},
        "v/.zarray": array_v2(shape=[9, 9]),
        "v/.zattrs": {"_ARRAY_DIMENSIONS": ["y", "x"]},
    }
    consolidated = {"zarr_consolidated_format": 1, "metadata": inside}
    document = {".zmetadata": json.dumps(consolidated), "v/.zarray": array_v2(), "v/1.1": [URL, 1, 2]}
    node = decode(document).hierarchy.nodes["/v"]
    assert isinstance(node, ArrayNode)
    assert (node.shape, node.dimension_names) == ((4, 6), ("y", "x"))


def test_attributes_of_version_3_are_kept_as_they_are() -> None:
    attributes = {
        "_FillValue": "AAAAAAAA+H8=",
        "_ARRAY_DIMENSIONS": ["a"],
        "x": [None, {"y": 1.0}],
        "nan": float("nan"),
    }
    node = decode({"v/zarr.json": array_v3(attributes=attributes)}).hierarchy.nodes["/v"]
    assert json.dumps(node.attributes) == json.dumps(attributes)


def test_dimensions_without_names_get_some_that_nothing_else_has() -> None:
    document = {
        "v/zarr.json": array_v3(dimension_names=...),
        "w/zarr.json": array_v3(dimension_names=[None, "x"]),
        "g/v/zarr.json": array_v3(dimension_names=None),
        "v_dim_1/zarr.json": array_v3(),
    }
    nodes = decode(document).hierarchy.nodes
    arrays = {path: node.dimension_names for path, node in nodes.items() if isinstance(node, ArrayNode)}
    assert arrays == {
        "/v": ("v_dim_0", "v_dim_1_"),
        "/w": ("w_dim_0", "x"),
        "/g/v": ("v_dim_0_", "v_dim_1__"),
        "/v_dim_1": ("y", "x"),
    }


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"chunk_grid": {"name": "hexagonal", "configuration": {}}}, "hexagonal"),
        ({"chunk_key_encoding": {"name": "fanout"}}, "fanout"),
        ({"storage_transformers": [{"name": "x"}]}, "storage transformers"),
        ({"extra": {"name": "x"}}, '"extra"'),
        ({"shape": [1] * 65}, "65 dimensions"),
    ],
)
def test_what_a_reader_must_understand_is_a_problem_and_the_rest_is_there(changes: Any, word: str) -> None:
    document = {
        "v/zarr.json": array_v3(**changes),
        "v/c/x": [],
        "w/zarr.json": array_v3(extra={"must_understand": False}),
    }
    hierarchy = decode(document).hierarchy
    assert list(hierarchy.nodes) == ["/", "/w"]
    (problem,) = hierarchy.problems
    assert (problem.path, problem.kind) == ("/v", "unsupported")
    assert word in problem.message


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": ...},
        {"shape": "4"},
        {"shape": [4]},
        {"shape": [4, -1]},
        {"shape": [4, 2**63]},
        {"chunk_grid": ...},
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0, 2]}}},
        {"chunk_grid": {"name": "regular", "configuration": []}},
        {"data_type": ...},
        {"data_type": {"name": 5}},
        {"fill_value": None},
        {"codecs": []},
        {"codecs": [5]},
        {"codecs": {}},
        {"attributes": []},
        {"dimension_names": ["x"]},
        {"dimension_names": [1, 2]},
        {"dimension_names": "yx"},
        {"chunk_key_encoding": ...},
        {"chunk_key_encoding": {"name": "default", "configuration": {"separator": "-"}}},
        {"node_type": "leaf"},
        {"zarr_format": 2},
    ],
    ids=str,
)
def test_metadata_that_are_wrong_are_malformed(changes: Any) -> None:
    with pytest.raises(MalformedFile, match=r"^refs.json: /v: ") as caught:
        decode({"v/zarr.json": array_v3(**changes)})
    assert caught.value.remedy


@pytest.mark.parametrize("value", ["", "{", "[]", "5", "base64:", "base64:%", "\ud800", 5, None, True, "[" * 100_000])
@pytest.mark.parametrize("key", ["v/zarr.json", "v/.zarray", ".zmetadata", "v/.zattrs"])
def test_metadata_that_are_not_a_json_object_are_malformed(key: str, value: Any) -> None:
    with pytest.raises(MalformedFile, match=rf"^refs.json: {key}: the metadata are not (valid JSON|a JSON object)"):
        decode({key: value})


def test_metadata_that_are_elsewhere_are_refused() -> None:
    with pytest.raises(Unsupported, match=r"zarr.json: the metadata are a reference") as caught:
        decode({"zarr.json": [URL, 0, 10]})
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({"a//b/zarr.json": group_v3()}, "a name in the path is empty"),
        ({"/zarr.json": group_v3()}, "a name in the path is empty"),
        ({"v/zarr.json": array_v3(), "v/w/zarr.json": group_v3()}, "inside an array"),
        ({"v/w/x/zarr.json": group_v3(), "v/zarr.json": array_v3()}, "inside an array"),
        ({"a/" * 1001 + "zarr.json": group_v3()}, "groups are nested"),
        ({".zmetadata": {}}, "no object of metadata"),
    ],
)
def test_nodes_that_cannot_be_are_malformed(document: Any, what: str) -> None:
    with pytest.raises(MalformedFile, match=what):
        decode(document)


def test_an_array_alone_is_refused() -> None:
    with pytest.raises(Unsupported, match="the root is an array") as caught:
        decode({".zarray": array_v2(), "0.0": [URL, 1, 2]})
    assert "into a group" in caught.value.remedy


def test_where_both_versions_are_there_version_3_counts_as_for_readers() -> None:
    document = {"v/zarr.json": array_v3(), "v/.zarray": array_v2(shape=[9, 9]), "w/.zarray": array_v2()}
    assert list(decode(document).hierarchy.nodes) == ["/", "/v"]


def test_errors_are_of_h5zarr_and_carry_what_to_do() -> None:
    with pytest.raises(H5ZarrError) as caught:
        decode_references(b"{}", "s3://bucket/refs.json")
    assert str(caught.value).startswith("s3://bucket/refs.json: ")
