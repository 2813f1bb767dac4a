from __future__ import annotations

import bz2
import json
import zlib
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import xarray as xr
import zarr

from h5zarr.containers.output import open_output
from h5zarr.io.location import Location
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import GroupNode, Hierarchy
from h5zarr.zarr_model.v2_nodes import encode_v2
from tests.containers.hierarchies import (
    LITTLE,
    PROVENANCE,
    UTF8,
    RawFile,
    encode_text,
    make_array,
    make_hierarchy,
    open_store,
    v2_text,
    v3_text,
    write_json_v2,
)
from tests.containers.json.test_json_v3 import ODD_NAMES, SMALL, nested, small

GOLDEN = Path(__file__).parent / "golden_v2.json"


def read_back(hierarchy: Hierarchy) -> Any:
    return zarr.open_group(open_store(v2_text(hierarchy)), mode="r", zarr_format=2)


def open_dataset(hierarchy: Hierarchy) -> Any:
    return xr.open_dataset(open_store(v2_text(hierarchy)), engine="zarr", zarr_format=2, chunks=None)


@pytest.mark.parametrize(
    "values",
    [
        np.array(7, "i4"),
        np.arange(10, dtype="u1"),
        np.arange(10, dtype=">i2"),
        np.arange(10, dtype=">f8"),
        np.linspace(0, 1, 7, dtype="f2"),
        np.array([True, False, True]),
        np.array([1 + 2j, -3j], "c8"),
        np.array([1 + 2j, -3j], ">c16"),
        np.arange(2**62, 2**62 + 4, dtype="u8"),
        np.arange(5 * 7 * 11, dtype="i4").reshape(5, 7, 11),
    ],
    ids=lambda values: f"{values.dtype.str}{values.shape}",
)
@pytest.mark.parametrize("inline", [False, True])
def test_values_read_back(raw_file: RawFile, values: Any, inline: bool) -> None:
    indices = list(np.ndindex(*[-(-n // 3) for n in values.shape])) if inline else []
    fill_value = [0, 0] if values.dtype.kind == "c" else False if values.dtype.kind == "b" else 0
    array = make_array(raw_file, values, tuple(3 for _ in values.shape), inline=indices, fill_value=fill_value)
    hierarchy = make_hierarchy(raw_file, {"/v": array})
    read = read_back(hierarchy)["v"]
    assert read.dtype == values.dtype
    np.testing.assert_array_equal(read[...], values)
    with open_dataset(hierarchy) as dataset:
        assert dataset["v"].dtype == values.dtype.newbyteorder("=")
        np.testing.assert_array_equal(dataset["v"].variable, values)


def test_text_records_opaque_bytes_and_times_read_back(raw_file: RawFile) -> None:
    def named(name: str, **configuration: Any) -> Any:
        return {"name": name, "configuration": configuration}

    texts = np.array(["", "é", "long " * 10], object)
    fixed = np.array([b"ab", b"c", b""], "S3")
    opaque = np.array([b"ab\0", b"\0\0c"], "V3")
    records = np.array([(1, 2.5), (3, 4.5)], [("a", "<i4"), ("b", "<f8")])
    big = np.array([(1, b"xy"), (3, b"z")], [("a", ">i4"), ("b", "S2")])
    times = np.array(["2001-02-03", "NaT"], "<M8[s]")
    big_type = named("structured", fields=[["a", "int32"], ["b", named("null_terminated_bytes", length_bytes=2)]])
    arrays = {
        "texts": (texts, "string", "", (UTF8,), encode_text),
        "fixed": (fixed, named("null_terminated_bytes", length_bytes=3), "", None, None),
        "opaque": (opaque, named("raw_bytes", length_bytes=3), "AAAA", None, None),
        "records": (records, named("structured", fields=[["a", "int32"], ["b", "float64"]]), "", (LITTLE,), None),
        "big": (big, big_type, "", ({"name": "bytes", "configuration": {"endian": "big"}},), None),
        "times": (times, named("numpy.datetime64", unit="s", scale_factor=1), 0, None, None),
    }
    nodes = {
        f"/{name}": make_array(raw_file, values, data_type=kind, fill_value=fill, codecs=codecs, encode=encode)
        for name, (values, kind, fill, codecs, encode) in arrays.items()
    }
    group = read_back(make_hierarchy(raw_file, nodes))
    for name, (values, *_) in arrays.items():
        assert group[name][...].tobytes() == values.tobytes() if name != "texts" else True
        assert group[name][...].tolist() == values.tolist()


def shuffle(chunk: Any) -> bytes:
    return bytes(numcodecs.Shuffle(chunk.itemsize).encode(chunk))


def checked(content: bytes) -> bytes:
    return bytes(numcodecs.Fletcher32().encode(content))


def named_codec(name: str, **configuration: Any) -> Any:
    return {"name": name, "configuration": configuration}


ZLIB = named_codec("numcodecs.zlib", level=4)
SHUFFLE = named_codec("numcodecs.shuffle", elementsize=4)
FLETCHER32 = {"name": "numcodecs.fletcher32"}
BLOSC = named_codec("blosc", typesize=4, cname="lz4", clevel=5, shuffle="bitshuffle", blocksize=0)
PIPELINES = {
    "zlib": ((ZLIB,), lambda chunk: zlib.compress(chunk.tobytes())),
    "shuffle": ((SHUFFLE,), shuffle),
    "shuffle and zlib": ((SHUFFLE, ZLIB), lambda chunk: zlib.compress(shuffle(chunk))),
    "checksum last": ((SHUFFLE, ZLIB, FLETCHER32), lambda chunk: checked(zlib.compress(shuffle(chunk)))),
    "checksum first": ((FLETCHER32, ZLIB), lambda chunk: zlib.compress(checked(chunk.tobytes()))),
    "checksum only": ((FLETCHER32,), lambda chunk: checked(chunk.tobytes())),
    "bz2": ((named_codec("numcodecs.bz2", level=9),), lambda chunk: bz2.compress(chunk.tobytes())),
    "zstd": ((named_codec("zstd", level=3, checksum=False),), lambda chunk: numcodecs.Zstd().encode(chunk)),
    "blosc": ((BLOSC,), lambda chunk: numcodecs.Blosc("lz4", shuffle=2).encode(chunk)),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_codecs_read_back_and_unwritten_chunks_are_written_out_with_them(raw_file: RawFile, name: str) -> None:
    codecs, encode = PIPELINES[name]
    values = np.arange(100, 130, dtype="i4").reshape(5, 6)
    array = make_array(
        raw_file, values, (2, 4), codecs=(LITTLE, *codecs), encode=encode, fill_value=-7, missing=[(0, 1), (2, 1)]
    )
    expected = values.copy()
    expected[:2, 4:] = expected[4:, 4:] = -7
    hierarchy = make_hierarchy(raw_file, {"/v": array})
    np.testing.assert_array_equal(read_back(hierarchy)["v"][...], expected)
    with open_dataset(hierarchy) as dataset:
        assert dataset["v"].dtype == np.int32
        np.testing.assert_array_equal(dataset["v"], expected)


def test_codecs_of_our_own_keep_their_names(raw_file: RawFile) -> None:
    from h5zarr.filters import lz4

    array = make_array(
        raw_file,
        np.arange(8, dtype="i4"),
        (4,),
        codecs=(LITTLE, named_codec("h5zarr.filter", filter="lz4", block_nbytes=1 << 20)),
        encode=lambda chunk: lz4.encode(chunk.tobytes(), (1 << 20,)),
        fill_value=-7,
        missing=[(1,)],
    )
    hierarchy = make_hierarchy(raw_file, {"/v": array})
    filters = json.loads(json.loads(v2_text(hierarchy))["refs"]["v/.zarray"])["filters"]
    assert filters == [{"id": "h5zarr.filter", "filter": "lz4", "block_nbytes": 1 << 20}]
    assert read_back(hierarchy)["v"][...].tolist() == [0, 1, 2, 3, -7, -7, -7, -7]


def test_a_damaged_chunk_is_reported(raw_file: RawFile) -> None:
    array = make_array(
        raw_file, np.arange(4, dtype="i4"), codecs=(LITTLE, FLETCHER32), encode=lambda chunk: b"x" + checked(chunk)[1:]
    )
    with pytest.raises(RuntimeError, match="fletcher32"):
        read_back(make_hierarchy(raw_file, {"/v": array}))["v"][...]


def double(value: float) -> str:
    return b64encode(np.array(value, "<f8").tobytes()).decode()


NAN = float("nan")
SINGLE = float(np.float32(1e20))
FILLS = [
    # dtype, what unwritten chunks read as, _FillValue, values, fill_value of version 2, the attribute in version 2
    ("i2", 0, None, [0, 5], None, None),
    ("i2", 0, -999, [0, -999], None, -999),
    ("i2", -999, -999, [0, -999], -999, None),
    ("i2", -1, None, [0, -1], None, None),
    ("i2", -1, -999, [-1, -999], -999, None),
    (">i2", -1, -999, [-1, -999], -999, None),
    ("u8", 0, 2**64 - 1, [0, 2**64 - 1], None, 2**64 - 1),
    ("f4", 0.0, None, [0, NAN], None, None),
    ("f4", SINGLE, double(SINGLE), [0, SINGLE], SINGLE, None),
    ("f4", 0.0, double(SINGLE), [0, SINGLE], None, SINGLE),
    ("f4", "NaN", double(NAN), [0, NAN], "NaN", None),
    ("f4", "NaN", None, [0, 1], None, None),
    ("f4", "-Infinity", None, [0, 1], None, None),
    (">f8", "0x7ff8000000000001", None, [0, 1], None, None),
    ("f8", 3.5, double(-1), [3.5, -1], -1.0, None),
    ("?", False, None, [False, True], None, None),
    ("?", True, None, [False, True], None, None),
    ("c8", [0, 0], [double(1), double(2)], [0, 1 + 2j], [1.0, 2.0], None),
    (">c16", [1, "NaN"], None, [0, 1 + 2j], None, None),
]


@pytest.mark.parametrize(("dtype", "unwritten", "missing", "values", "fill_value", "attribute"), FILLS)
@pytest.mark.parametrize("is_whole", [False, True], ids=["with unwritten chunks", "whole"])
def test_missing_data_is_masked_and_nothing_else(
    raw_file: RawFile,
    dtype: str,
    unwritten: Any,
    missing: Any,
    values: list[Any],
    fill_value: Any,
    attribute: Any,
    is_whole: bool,
) -> None:
    array = make_array(
        raw_file,
        np.array(values * 2, dtype),
        (2,),
        fill_value=unwritten,
        missing=[] if is_whole else [(1,)],
        attributes={"units": "K"} if missing is None else {"_FillValue": missing, "units": "K"},
        dimension_names=("x",),
    )
    hierarchy = make_hierarchy(raw_file, {"/v": array})
    references = json.loads(v2_text(hierarchy))["refs"]
    if not is_whole:
        assert json.loads(references["v/.zarray"])["fill_value"] == fill_value
        assert json.loads(references["v/.zattrs"]).get("_FillValue") == attribute
    with xr.open_dataset(open_store(v3_text(hierarchy)), engine="zarr", chunks=None) as dataset:
        expected = dataset["v"].load()
    with open_dataset(hierarchy) as dataset:
        read = dataset["v"].load()
    assert read.dtype == expected.dtype
    np.testing.assert_array_equal(read, expected)
    assert read.attrs == expected.attrs
    as_stored = zarr.open_group(open_store(v3_text(hierarchy)), mode="r")["v"][...]
    np.testing.assert_array_equal(read_back(hierarchy)["v"][...], as_stored)


@pytest.mark.parametrize("unwritten", [0, -1, -999])
def test_a_joinable_fill_value_does_not_depend_on_what_is_written(raw_file: RawFile, unwritten: int) -> None:
    nodes = {
        name: make_array(
            raw_file,
            np.arange(4, dtype="i2"),
            (2,),
            fill_value=unwritten,
            missing=missing,
            attributes={"_FillValue": -999},
        )
        for name, missing in (("/whole", []), ("/half", [(1,)]))
    }
    encoded, problems = encode_v2(make_hierarchy(raw_file, nodes), joinable=True)
    assert not problems
    assert encoded["/whole"].documents == encoded["/half"].documents
    assert encoded["/whole"].documents[".zarray"]["fill_value"] == -999
    written_out = {} if unwritten == -999 else {(1,): np.full(2, unwritten, "<i2").tobytes()}
    assert encoded["/half"].manifest is not None
    assert encoded["/half"].manifest.inline == written_out


def test_unwritten_text_and_times_read_as_in_the_file(raw_file: RawFile) -> None:
    time_type = named_codec("numpy.datetime64", unit="D", scale_factor=1)
    texts = np.array(["a", "b", "c", "d"], object)
    text = {"data_type": "string", "codecs": (UTF8,), "encode": encode_text}
    times = np.arange(4).astype("<M8[D]")
    nodes = {
        "/empty": make_array(raw_file, texts, (2,), fill_value="", missing=[(1,)], **text),
        "/none": make_array(raw_file, texts, (2,), fill_value="none", missing=[(1,)], **text),
        "/epoch": make_array(raw_file, times, (2,), data_type=time_type, fill_value=0, missing=[(0,)]),
        "/nat": make_array(raw_file, times, (2,), data_type=time_type, fill_value=-(2**63), missing=[(0,)]),
    }
    group = read_back(make_hierarchy(raw_file, nodes))
    assert group["empty"][...].tolist() == ["a", "b", "", ""]
    assert group["none"][...].tolist() == ["a", "b", "none", "none"]
    assert group["epoch"][...].astype("i8").tolist() == [0, 0, 2, 3]
    assert np.isnat(group["nat"][...]).tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("shape", "chunk_shape", "codecs", "why"),
    [
        ((10**6, 10**6), (1, 1), (LITTLE,), "too many"),
        ((10**9, 8), (10**9, 8), (LITTLE,), "cannot be written explicitly"),
        ((4, 4), (2, 2), (LITTLE, named_codec("numcodecs.lzma")), "cannot be written explicitly"),
    ],
)
def test_unwritten_chunks_that_cannot_be_written_out_leave_the_array_out_with_a_problem(
    raw_file: RawFile, shape: Any, chunk_shape: Any, codecs: Any, why: str
) -> None:
    array = make_array(raw_file, np.zeros((0, 0), "f4"), (1, 1), codecs=codecs, fill_value=9.5)
    nodes = {"/v": replace(array, grid=RegularGrid(shape, chunk_shape)), "/w": make_array(raw_file, np.arange(3))}
    with open_output(Location.parse("/dev/null")) as out:
        (problem,) = write_json_v2(make_hierarchy(raw_file, nodes), PROVENANCE, out)
    assert problem.path == "/v"
    assert "9.5" in problem.message
    assert why in problem.message
    assert problem.remedy


@pytest.mark.parametrize(
    ("data_type", "codecs", "what"),
    [
        ("bfloat16", (LITTLE,), "does not read the data type bfloat16"),
        (named_codec("struct", fields=[]), (LITTLE,), "does not read the data type struct"),
        ("int64", (LITTLE, named_codec("sharding_indexed")), "codec sharding_indexed"),
    ],
)
def test_what_version_2_does_not_have_is_a_problem(raw_file: RawFile, data_type: Any, codecs: Any, what: str) -> None:
    array = make_array(raw_file, np.arange(3), data_type=data_type, codecs=codecs)
    with open_output(Location.parse("/dev/null")) as out:
        (problem,) = write_json_v2(make_hierarchy(raw_file, {"/v": array}), PROVENANCE, out)
    assert (problem.path, problem.kind) == ("/v", "unrepresentable")
    assert what in problem.message


def test_chunks_behind_the_edge_do_not_hide_that_others_are_missing(raw_file: RawFile) -> None:
    array = make_array(raw_file, np.arange(6, dtype="i2"), (2,), fill_value=-1, missing=[(0,)])
    shorter = replace(array, grid=RegularGrid((4,), (2,)))
    assert read_back(make_hierarchy(raw_file, {"/v": shorter}))["v"][...].tolist() == [-1, -1, 2, 3]


def test_a_scalar_that_was_never_written_is_written_out(raw_file: RawFile) -> None:
    array = make_array(raw_file, np.float32(1), fill_value=2.5, missing=[()])
    assert read_back(make_hierarchy(raw_file, {"/v": array}))["v"][...] == 2.5


def test_groups_inside_groups_are_there(raw_file: RawFile) -> None:
    group = read_back(nested(raw_file))
    assert sorted(path for path, _ in group.members(max_depth=None)) == [
        "forecast", "forecast/deep", "forecast/deep/temp", "forecast/empty", "scalar", "time",
    ]  # fmt: skip
    assert group["forecast"].attrs["title"] == "é"
    assert group["scalar"][...] == 1.5


def test_xarray_reads_groups_and_trees(raw_file: RawFile) -> None:
    store = open_store(v2_text(nested(raw_file)))
    with xr.open_dataset(store, engine="zarr", zarr_format=2, group="forecast/deep", chunks=None) as dataset:
        assert dataset["temp"].dims == ("y", "x")
        np.testing.assert_array_equal(dataset["temp"], [[0, 1, 2], [3, 4, 5]])
    with xr.open_datatree(store, engine="zarr", zarr_format=2, chunks=None) as tree:
        assert {node.path for node in tree.subtree} == {"/", "/forecast", "/forecast/empty", "/forecast/deep"}
        assert tree["/scalar"].item() == 1.5


def test_xarray_and_kerchunk_open_the_file_that_was_written(raw_file: RawFile, tmp_path: Path) -> None:
    pytest.importorskip("kerchunk")
    target = tmp_path / "refs.json"
    with open_output(Location.parse(target)) as out:
        assert write_json_v2(nested(raw_file), PROVENANCE, out) == ()
    with xr.open_dataset("reference://", engine="zarr", storage_options={"fo": str(target)}, chunks=None) as dataset:
        np.testing.assert_array_equal(dataset["time"], [0, 1, 2, 3])
    with xr.open_dataset(str(target), engine="kerchunk", chunks=None) as dataset:
        np.testing.assert_array_equal(dataset["time"], [0, 1, 2, 3])
        assert dataset["scalar"].item() == 1.5


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_read_right(tmp_path: Path, name: str) -> None:
    raw_file = RawFile(tmp_path / f"U{name}")
    values = np.arange(12, dtype="i4").reshape(3, 4)
    array = make_array(raw_file, values, (2, 2), dimension_names=("y", name))
    nodes = {f"/{name}": array, f"/G{name}": GroupNode(attributes={name: name}), f"/G{name}/{name}": array}
    hierarchy = make_hierarchy(raw_file, nodes)
    group = read_back(hierarchy)
    assert list(group.array_keys()) == [name]
    np.testing.assert_array_equal(group[f"G{name}/{name}"][...], values)
    with open_dataset(hierarchy) as dataset:
        np.testing.assert_array_equal(dataset[name].variable, values)


def test_the_whole_text_is_as_it_was(tmp_path: Path) -> None:
    with open_output(Location.parse(tmp_path / "refs.json")) as out:
        write_json_v2(small(), SMALL, out)
    assert (tmp_path / "refs.json").read_text() == GOLDEN.read_text()


def test_consolidated_metadata_is_that_of_the_nodes() -> None:
    references = json.loads(v2_text(small()))["refs"]
    consolidated = json.loads(references.pop(".zmetadata"))
    assert consolidated["zarr_consolidated_format"] == 1
    assert consolidated["metadata"] == {
        key: json.loads(text) for key, text in references.items() if key.rpartition("/")[2].startswith(".z")
    }
