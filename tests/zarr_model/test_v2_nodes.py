"""Arrays that zarr wrote with version 2 metadata: read as references, they are the same arrays in version 3."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numcodecs
import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.storage import MemoryStore

from h5zarr.containers.json.json_reading import decode_references
from h5zarr.errors import MalformedFile
from h5zarr.zarr_model.hierarchy import ArrayNode, Hierarchy
from h5zarr.zarr_model.v2_nodes import encode_v2
from tests.containers.hierarchies import assert_same, inline_references, open_store, v2_text, v3_text

INTEGERS = np.arange(24).reshape(4, 6)
FLOATS = np.linspace(0, 10, 24).reshape(4, 6)
NUMBERS = ("b1", "i1", "u1", "<i2", ">i2", "<i4", ">u4", "<i8", ">u8", "<f2", "<f4", ">f4", ">f8", "<c8", ">c16")
RECORDS = np.array([(1, 2.5, b"x"), (3, 4.5, b"yz")], [("a", "<i4"), ("b", "<f8"), ("c", "S2")])
ZLIB = numcodecs.Zlib(3)


def write_v2(values: Any, **options: Any) -> MemoryStore:
    """Return a store with an array whose last chunk was never written."""
    values = np.asarray(values)
    store = MemoryStore()
    group = zarr.open_group(store, mode="w", zarr_format=2)
    chunks = tuple((length + 1) // 2 for length in values.shape)
    choices = {"dtype": values.dtype, "compressors": None, **options}
    array = group.create_array("v", shape=values.shape, chunks=chunks, **choices)
    array[...] = values
    array.attrs["_ARRAY_DIMENSIONS"] = [f"d{axis}" for axis in range(values.ndim)]
    stored = sorted(key for key in store._store_dict if ".z" not in key)
    if len(stored) > 1:
        del store._store_dict[stored[-1]]
    return store


def decode(store: MemoryStore) -> Hierarchy:
    return decode_references(json.dumps(inline_references(store._store_dict)).encode(), "refs.json").hierarchy


def check_values(store: MemoryStore) -> ArrayNode:
    """Check that version 3 gives the values of version 2, and return its array."""
    hierarchy = decode(store)
    assert hierarchy.problems == ()
    expected = zarr.open_group(store, mode="r", zarr_format=2)["v"][...]
    read = zarr.open_group(open_store(v3_text(hierarchy)), mode="r")["v"][...]
    assert np.asarray(read).dtype.name == np.asarray(expected).dtype.name
    np.testing.assert_array_equal(read, expected)
    node = hierarchy.nodes["/v"]
    assert isinstance(node, ArrayNode)
    assert node.dimension_names == tuple(f"d{axis}" for axis in range(len(node.shape)))
    assert "_ARRAY_DIMENSIONS" not in node.attributes
    return node


def check_as_xarray_sees_it(store: MemoryStore) -> None:
    with xr.open_dataset(store, engine="zarr", chunks=None, consolidated=False, zarr_format=2) as dataset:
        expected = dataset["v"].load()
    with xr.open_dataset(open_store(v3_text(decode(store))), engine="zarr", chunks=None) as dataset:
        read = dataset["v"].load()
    assert read.dtype == expected.dtype
    xr.testing.assert_identical(read, expected)


@pytest.mark.parametrize("fill", [None, 1])
@pytest.mark.parametrize("code", NUMBERS)
def test_numbers_and_what_is_masked_of_them_are_the_same(code: str, fill: int | None) -> None:
    values = INTEGERS.astype(code)
    store = write_v2(values, fill_value=None if fill is None else np.ones((), values.dtype)[()])
    check_values(store)
    check_as_xarray_sees_it(store)


@pytest.mark.parametrize("fill", [np.nan, np.inf, -np.inf, -9999.0])
def test_a_fill_value_is_what_unwritten_chunks_read_as_and_what_is_masked(fill: float) -> None:
    store = write_v2(FLOATS.astype("f4"), fill_value=fill)
    assert "_FillValue" in check_values(store).attributes
    check_as_xarray_sees_it(store)


@pytest.mark.parametrize(
    "values",
    [
        np.array([b"ab", b"c", b"ddd", b""], "S3"),
        np.array([b"ab\0", b"\0\0c"], "V3"),
        np.array(["ab", "é", "x"], "<U3"),
        np.array(["ab", "é", "x"], ">U3"),
        np.array(["2001-02-03", "NaT", "1999-01-01"], "<M8[s]"),
        np.array(["2001-02-03", "NaT", "1999-01-01"], ">M8[ns]"),
        np.array([1, 2, 3], "<m8[10ms]"),
        np.array(5, "i4"),
        np.arange(3),
    ],
    ids=lambda values: f"{values.dtype.str}{values.shape}",
)
def test_text_opaque_bytes_times_and_scalars_are_the_same(values: Any) -> None:
    assert "_FillValue" not in check_values(write_v2(values, fill_value=None)).attributes


def test_records_are_the_same() -> None:
    store = write_v2(RECORDS[:1])
    node = decode(store).nodes["/v"]
    assert isinstance(node, ArrayNode)
    read = zarr.open_group(open_store(v3_text(decode(store))), mode="r")["v"][...]
    assert read.tolist() == RECORDS[:1].tolist()
    text = {"name": "null_terminated_bytes", "configuration": {"length_bytes": 2}}
    assert node.data_type["configuration"]["fields"] == [["a", "int32"], ["b", "float64"], ["c", text]]


@pytest.mark.parametrize("order", ["C", "F"])
def test_text_of_any_length_is_the_same(order: str) -> None:
    texts = np.array([["a", "bé", ""], ["x", "y", "long " * 9]], object)
    node = check_values(write_v2(texts, dtype="string", order=order, compressors=ZLIB))
    assert node.data_type == "string"
    assert node.fill_value == ""


def test_bytes_of_any_length_are_the_same() -> None:
    from zarr.dtype import VariableLengthBytes

    values = np.array([b"a", b"", b"b\0c"], object)
    assert check_values(write_v2(values, dtype=VariableLengthBytes())).data_type == "variable_length_bytes"


@pytest.mark.parametrize(
    "compressor",
    [
        ZLIB,
        numcodecs.GZip(4),
        numcodecs.BZ2(),
        numcodecs.LZ4(),
        numcodecs.LZMA(),
        numcodecs.Zstd(5),
        numcodecs.Zstd(5, checksum=True),
        numcodecs.Blosc(),
        numcodecs.Blosc("zstd", shuffle=-1),
        numcodecs.Blosc("lz4hc", shuffle=2, blocksize=256),
        numcodecs.Blosc("zlib", shuffle=0),
    ],
    ids=str,
)
@pytest.mark.parametrize("code", ["<i4", "u1"])
def test_compressors_are_undone(compressor: Any, code: str) -> None:
    check_values(write_v2(INTEGERS.astype(code), compressors=compressor))


@pytest.mark.parametrize(
    "filters",
    [
        [numcodecs.Shuffle(8)],
        [numcodecs.Fletcher32()],
        [numcodecs.CRC32()],
        [numcodecs.Adler32()],
        [numcodecs.Delta("<i8")],
        [numcodecs.Delta("<i8", "<i2")],
        [numcodecs.Delta("<i8", ">i2")],
        [numcodecs.AsType(">i2", "<i8")],
        [numcodecs.Delta("<i8"), numcodecs.Shuffle(8), numcodecs.Fletcher32()],
    ],
    ids=str,
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_filters_are_undone(filters: list[Any], order: str) -> None:
    check_values(write_v2(INTEGERS.astype("<i8"), filters=filters, compressors=ZLIB, order=order))


@pytest.mark.parametrize(
    "filter",
    [
        numcodecs.FixedScaleOffset(0, 100, "<f8", "<i2"),
        numcodecs.FixedScaleOffset(0, 100, "<f8"),
        numcodecs.Quantize(3, "<f8"),
        numcodecs.BitRound(10),
    ],
    ids=str,
)
def test_filters_with_a_loss_are_undone(filter: Any) -> None:
    check_values(write_v2(FLOATS, filters=[filter], compressors=ZLIB))


def test_what_version_2_can_hold_is_written_again_as_it_was() -> None:
    for values in (np.array(["ab", "é"], "<U3"), np.array([b"ab", b"c"], "S3"), INTEGERS.astype(">i2")):
        hierarchy = replace(decode(write_v2(values, compressors=ZLIB)), urls=("data.bin",))
        assert_same(decode_references(v2_text(hierarchy), "refs.json").hierarchy, hierarchy)


@pytest.mark.parametrize("options", [{"filters": [numcodecs.Delta("<i8", ">i2")]}, {"order": "F"}], ids=str)
def test_what_changes_the_array_before_its_bytes_is_not_written_as_version_2(options: dict[str, Any]) -> None:
    nodes, (problem,) = encode_v2(decode(write_v2(INTEGERS.astype("<i8"), **options)))
    assert list(nodes) == ["/"]
    assert (problem.path, problem.kind) == ("/v", "unrepresentable")


def test_a_compressor_of_arrays_takes_the_place_of_the_codec_for_bytes() -> None:
    zfpy = pytest.importorskip("numcodecs.zfpy")
    codecs = check_values(write_v2(FLOATS, compressors=zfpy.ZFPY(mode=4, tolerance=1e-3))).codecs
    assert [codec["name"] for codec in codecs] == ["numcodecs.zfpy"]


@pytest.mark.parametrize("shape", [(7,), (4, 6), (2, 3, 4)])
def test_fortran_order_is_a_transposition(shape: tuple[int, ...]) -> None:
    node = check_values(write_v2(np.arange(np.prod(shape)).reshape(shape), order="F"))
    assert [codec["name"] for codec in node.codecs] == ["transpose", "bytes"][len(shape) == 1 :]


def test_keys_may_have_slashes() -> None:
    node = check_values(write_v2(INTEGERS, chunk_key_encoding={"name": "v2", "separator": "/"}))
    assert sorted(node.manifest.inline) == [(0, 0), (0, 1), (1, 0)]


@pytest.mark.parametrize(
    ("filters", "values"),
    [
        ([numcodecs.Quantize(3, "<f8", "<f4")], FLOATS),
        ([numcodecs.PackBits()], INTEGERS % 2 == 0),
    ],
    ids=["quantize", "packbits"],
)
def test_a_codec_that_readers_of_version_3_get_wrong_is_a_problem(filters: list[Any], values: Any) -> None:
    (problem,) = decode(write_v2(values, filters=filters)).problems
    assert (problem.path, problem.kind) == ("/v", "unsupported")
    assert filters[0].codec_id in problem.message


def plain_array(**changes: Any) -> dict[str, Any]:
    given = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<f4", "fill_value": None, "order": "C"}
    return {**given, "filters": None, "compressor": None, **changes}


def decode_array(attributes: Any = None, entries: dict[str, Any] | None = None, **changes: Any) -> Hierarchy:
    refs = {"v/.zarray": plain_array(**changes), "v/.zattrs": attributes or {}, **(entries or {})}
    return decode_references(json.dumps(refs).encode(), "refs.json").hierarchy


def test_a_fill_value_overrules_the_attribute_as_in_xarray() -> None:
    hierarchy = decode_array({"_FillValue": 5.0, "units": "K", "_ARRAY_DIMENSIONS": ["x"]}, fill_value=-9.0)
    assert hierarchy.nodes["/v"].attributes == {"units": "K", "_FillValue": "AAAAAAAAIsA="}


def test_a_fill_value_masks_nothing_in_what_does_not_keep_to_the_convention_of_xarray() -> None:
    node = decode_array({"units": "K"}, fill_value=0.0).nodes["/v"]
    assert (node.fill_value, node.attributes) == (0.0, {"units": "K"})


@pytest.mark.parametrize("told", [5.0, 5, [5.0], "AAAAAAAAFEA="])
def test_without_a_fill_value_the_attribute_is_what_is_masked(told: Any) -> None:
    node = decode_array({"_FillValue": told}).nodes["/v"]
    assert node.attributes == {"_FillValue": "AAAAAAAAFEA="}
    assert isinstance(node, ArrayNode)
    assert node.fill_value == 0.0


def test_the_attribute_may_be_given_as_an_unsigned_number() -> None:
    node = decode_array({"_FillValue": 255, "_Unsigned": "true"}, dtype="|i1").nodes["/v"]
    assert node.attributes == {"_FillValue": -1, "_Unsigned": "true"}


@pytest.mark.parametrize(
    ("told", "dtype"), [(1.5, "<i4"), (300, "|u1"), ("none", "<f4"), ([1, 2], "<f4"), ("x", "|S3"), ({}, "<i2")]
)
def test_an_attribute_that_cannot_be_masked_is_left_out_with_a_warning(told: Any, dtype: str) -> None:
    hierarchy = decode_array({"_FillValue": told}, dtype=dtype)
    assert hierarchy.nodes["/v"].attributes == {}
    (warning,) = hierarchy.warnings
    assert (warning.path, warning.kind) == ("/v", "fill value")
    assert warning.remedy


def test_text_that_is_missing_data_in_version_2_only_is_left_out_with_a_warning() -> None:
    hierarchy = decode_array({"_ARRAY_DIMENSIONS": ["x"]}, dtype="|S3", fill_value="Ti9B")
    assert "_FillValue b'N/A'" in hierarchy.warnings[0].message
    node = hierarchy.nodes["/v"]
    assert isinstance(node, ArrayNode)
    assert node.fill_value == "Ti9B"


@pytest.mark.parametrize(
    ("fill", "dtype"),
    [
        ("x", "<f4"),
        (1e40, "<f4"),
        ([1], "<f4"),
        (1.5, "<i4"),
        (-1, "|u1"),
        (256, "|u1"),
        (2**70, "<i8"),
        (True, "<c8"),
        ([1, 2, 3], "<c8"),
        (2, "|b1"),
        ("zzzz!", "|S3"),
        ("QUJDRA==", "|S3"),
        (0, "|S3"),
        ({}, "<i4"),
        (1.5, "<M8[s]"),
        ("now", "<M8[s]"),
    ],
)
def test_an_invalid_fill_value_is_malformed(fill: Any, dtype: str) -> None:
    with pytest.raises(MalformedFile, match="/v: the fill value does not fit the type") as caught:
        decode_array(dtype=dtype, fill_value=fill)
    assert caught.value.remedy


@pytest.mark.parametrize(
    "dtype", [[["a", ">i4"]], [["a", "<i4", [2]]], [["a", "<i4"], ["b", [["c", ">f8"]]]], "<f16", "int32", "|O", "<M8"]
)
def test_a_type_that_version_3_lacks_is_a_problem_and_the_rest_is_there(dtype: Any) -> None:
    refs = {"v/.zarray": plain_array(dtype=dtype), "v/0": "abcd", "w/.zarray": plain_array()}
    hierarchy = decode_references(json.dumps(refs).encode(), "refs.json").hierarchy
    assert list(hierarchy.nodes) == ["/", "/w"]
    (problem,) = hierarchy.problems
    assert (problem.path, problem.kind) == ("/v", "unsupported")


@pytest.mark.parametrize(
    "dtype", [None, 5, [], ["a"], [["a"]], [["", "<i4"]], [["a", "<i4"], ["a", "<i4"]], [["a", 5]], {}]
)
def test_an_invalid_type_is_malformed(dtype: Any) -> None:
    with pytest.raises(MalformedFile, match=r"^refs.json: /v: "):
        decode_array(dtype=dtype)


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": None},
        {"shape": [-1]},
        {"shape": [1.5]},
        {"shape": [True]},
        {"chunks": [2, 2]},
        {"chunks": [0]},
        {"order": "K"},
        {"filters": {}},
        {"filters": [5]},
        {"filters": [{}]},
        {"compressor": "zlib"},
        {"dimension_separator": "-"},
        {"zarr_format": 3},
    ],
    ids=str,
)
def test_metadata_that_are_wrong_are_malformed(changes: dict[str, Any]) -> None:
    with pytest.raises(MalformedFile, match=r"^refs.json: /v: "):
        decode_array(**changes)


def test_an_axis_without_elements_may_have_chunks_of_no_length() -> None:
    node = decode_array(shape=[0], chunks=[0]).nodes["/v"]
    assert isinstance(node, ArrayNode)
    assert node.chunk_shape == (1,)


def json_chunk(values: Any) -> str:
    return bytes(numcodecs.JSON().encode(np.array(values, object))).decode()


@pytest.mark.parametrize("texts", [["a", "bé", ""], [["a", "b"], ["c", ""]], "one"])
def test_text_that_kerchunk_embedded_as_json_is_text(texts: Any) -> None:
    shape = list(np.array(texts, object).shape)
    key = ".".join(["0"] * len(shape)) or "0"
    changes = {"shape": shape, "chunks": shape, "dtype": "|O", "filters": [numcodecs.JSON().get_config()]}
    hierarchy = decode_array(entries={f"v/{key}": json_chunk(texts)}, **changes)
    read = zarr.open_group(open_store(v3_text(hierarchy)), mode="r")["v"][...]
    assert np.asarray(read).tolist() == texts


@pytest.mark.parametrize(
    "chunk", [json_chunk(["a", None]), json_chunk([1, 2]), json_chunk(["a"]), "x", '[["a","b"],"|O",[2]]', ["u", 1, 2]]
)
def test_python_objects_are_a_problem(chunk: Any) -> None:
    changes = {"shape": [2], "chunks": [2], "dtype": "|O", "filters": [{"id": "json2"}]}
    hierarchy = decode_array(entries={"v/0": chunk}, **changes)
    assert [(problem.path, problem.kind) for problem in hierarchy.problems] == [("/v", "unsupported")]
    assert list(hierarchy.nodes) == ["/"]


@pytest.mark.parametrize("name", ["pickle", "msgpack2", "vlen-array"])
def test_objects_in_other_codecs_are_a_problem(name: str) -> None:
    (problem,) = decode_array(dtype="|O", filters=[{"id": name}]).problems
    assert problem.kind == "unsupported"


def test_unknown_ids_become_codecs_of_numcodecs_and_own_ids_keep_their_names() -> None:
    steps = [{"id": "h5zarr.filter", "filter": "lz4"}, {"id": "grib", "var": "t"}, {"id": "blosc", "cname": "snappy"}]
    node = decode_array(filters=steps).nodes["/v"]
    assert isinstance(node, ArrayNode)
    assert node.codecs[1:] == (
        {"name": "h5zarr.filter", "configuration": {"filter": "lz4"}},
        {"name": "numcodecs.grib", "configuration": {"var": "t"}},
        {"name": "numcodecs.blosc", "configuration": {"cname": "snappy"}},
    )
