"""References come from anybody: what they say wrongly is a warning or an error of h5zarr, and never another value."""

from __future__ import annotations

import json
import warnings
import zlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray

from h5zarr.commands.translate.translate import translate
from h5zarr.errors import H5ZarrError, MalformedFile, ProblemWarning
from h5zarr.zarr_model.record import NZ_RECORD, RECORD

LITTLE = [{"name": "bytes", "configuration": {"endian": "little"}}]


def open_references(path: Path, refs: dict[str, Any], **options: Any) -> xarray.Dataset:
    target = path / "refs.json"
    target.write_text(json.dumps({"version": 1, "refs": refs}))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Numcodecs codecs are not in the Zarr version 3")
        warnings.filterwarnings("ignore", "The data type .* does not have a Zarr V3 specification")
        return xarray.open_dataset(target, engine="h5zarr", **options).load()


def one_array(data_type: Any, fill_value: Any, **more: Any) -> dict[str, Any]:
    """Return references of an array of three elements, none of them written unless `chunk` is given."""
    chunk = more.pop("chunk", None)
    array = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [3],
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": fill_value,
        "codecs": LITTLE,
        "dimension_names": ["x"],
        **more,
    }
    refs = {"zarr.json": json.dumps({"zarr_format": 3, "node_type": "group"}), "a/zarr.json": json.dumps(array)}
    return refs if chunk is None else refs | {"a/c/0": chunk}


def check_left_out(path: Path, refs: dict[str, Any], match: str) -> None:
    """Fail unless the only array is left out with a warning that names it."""
    with pytest.warns(ProblemWarning, match=rf":/a: .*{match}.*; the variable is left out"):
        assert not open_references(path, refs).variables


# --- what is recorded of a file


@pytest.fixture(scope="module")
def refs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("hostile") / "file.h5"
    with h5py.File(path, "w") as file:
        file["number"] = np.array([1.5, 300.5, -2.5])
        file["integer"] = np.array([1, 300, -2], "<i4")
        file["complex"] = np.array([1 + 2j, 3])
        file["record"] = np.array([(1, 2.5)], [("a", "<i4"), ("b", "<f8")])
        file["integer"].attrs["units"] = "m"
    translate(path, path.with_suffix(".json"))
    found: dict[str, Any] = json.loads(path.with_suffix(".json").read_text())["refs"]
    return found


def with_attributes(refs: dict[str, Any], **attributes: Any) -> dict[str, Any]:
    root = json.loads(refs["zarr.json"]) if isinstance(refs["zarr.json"], str) else refs["zarr.json"]
    return refs | {"zarr.json": json.dumps(root | {"attributes": attributes})}


def with_record(refs: dict[str, Any], record: Any, name: str = RECORD) -> dict[str, Any]:
    return with_attributes(refs, **{name: {"h5zarr": 1, **record} if isinstance(record, dict) else record})


def assert_the_same(opened: xarray.Dataset) -> None:
    """Check that values and attributes are those that the file has without a record."""
    assert opened.attrs == {}
    assert opened["number"].values.tolist() == [1.5, 300.5, -2.5]
    assert opened["integer"].values.tolist() == [1, 300, -2]
    assert opened["complex"].values.tolist() == [1 + 2j, 3]
    assert opened["record"].values.tolist() == [(1, 2.5)]
    assert opened["integer"].attrs == {"units": "m"}


@pytest.mark.parametrize(
    "record",
    [
        {"h5zarr": 2},
        {"h5zarr": "1"},
        {"variables": []},
        {"variables": 5},
        {"variables": {"integer": 5}},
        {"variables": {"integer": {"chunks": [0]}}},
        {"variables": {"integer": {"chunks": "x"}}},
        {"variables": {"integer": {"chunks": [2.5]}}},
        {"variables": {"integer": {"filters": [1]}}},
        {"variables": {"integer": {"filters": [[1, [{}]]]}}},
        {"variables": {"integer": {"enumeration": {}}}},
        {"variables": {"integer": {"enumeration": {"name": 3, "members": {}}}}},
        {"variables": {"integer": {"number": 5}}},
        {"variables": {"integer": {"foreign": [{}]}}},
        {"variables": {"integer": {"types": {"units": 5}}}},
        {"variables": {"integer": {"types": {"units": "M8[s]"}}}},
        {"variables": {"integer": {"types": {"units": [["a"]]}}}},
        {"variables": {"integer": {"types": 5}}},
        {"variables": {"integer": {"fill_value": {"type": "int8"}}}},
        {"variables": {"integer": {"fill_value": {"value": "x", "type": "int8"}}}},
        {"variables": {"integer": {"fill_value": {"value": {}, "type": "int8"}}}},
        {"variables": {"integer": {"fill_value": 5}}},
        {"variables": {"record": {"members": [["a"]]}}},
        {"types": 5},
        {"types": {"": 3}},
        {"types": []},
        {"padded": {"a": "x"}},
        {"padded": {"a": -1}},
        {"unlimited": 3},
        {"unlimited": [3]},
        {"unlimited": "time"},
        {"classic": "yes"},
        {"attributes": []},
        {"attributes": {"units": "invented"}},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", [RECORD, NZ_RECORD])
def test_a_malformed_record_is_ignored_with_a_warning(
    refs: dict[str, Any], name: str, record: Any, tmp_path: Path
) -> None:
    with pytest.warns(ProblemWarning, match=f"/: the record {name} is ignored"):
        opened = open_references(tmp_path, with_record(refs, record, name), decode_cf=False)
    assert_the_same(opened)


@pytest.mark.parametrize(
    "variables",
    [
        {"number": {"number": "int8"}},
        {"number": {"number": "M8[s]"}},
        {"number": {"enumeration": {"name": "e", "members": {}}, "number": "int16"}},
        {"integer": {"number": "nonsense"}},
        {"integer": {"chunks": [1, 1, 1]}},
        {"record": {"members": ["c"]}},
        {"integer": {"fill_value": {"value": 300, "type": "int8"}}},
        {"record": {"fill_value": {"value": [[1], [2, 3]], "type": "int8"}}},
    ],
    ids=str,
)
def test_a_record_that_does_not_fit_is_ignored_with_a_warning(
    refs: dict[str, Any], variables: Any, tmp_path: Path
) -> None:
    (name,) = variables
    with pytest.warns(ProblemWarning, match=f"/{name}: the record does not fit the node and is ignored"):
        opened = open_references(tmp_path, with_record(refs, {"variables": variables}), decode_cf=False)
    assert_the_same(opened)


@pytest.mark.parametrize("kind", ["int8", "uint32"])
def test_a_recorded_type_that_is_too_small_for_the_values_is_an_error(
    refs: dict[str, Any], kind: str, tmp_path: Path
) -> None:
    record = {"variables": {"integer": {"number": kind}}}
    with pytest.raises(H5ZarrError, match="too small for the values"):
        open_references(tmp_path, with_record(refs, record), decode_cf=False)


@pytest.mark.parametrize("value", [5, [], "text", "{", "[" * 5000, {"variables": 5}, {}, None, '{"a": 1}'], ids=repr)
@pytest.mark.parametrize("name", [RECORD, NZ_RECORD])
def test_what_only_has_the_name_of_a_record_is_an_attribute_like_others(
    refs: dict[str, Any], name: str, value: Any, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    opened = open_references(tmp_path, with_attributes(refs, **{name: value}), decode_cf=False)
    assert list(opened.attrs) == [name]
    assert not [one for one in recwarn if issubclass(one.category, ProblemWarning)]
    del opened.attrs[name]
    assert_the_same(opened)


def test_a_record_of_types_that_attributes_do_not_have_is_without_effect(refs: dict[str, Any], tmp_path: Path) -> None:
    record = {"types": {"lost": "int8"}, "variables": {"integer": {"types": {"units": "int8"}}, "lost": {}}}
    assert_the_same(open_references(tmp_path, with_record(refs, record), decode_cf=False))


def test_a_pair_of_names_is_needed_for_a_complex_number(refs: dict[str, Any], tmp_path: Path) -> None:
    record = {"variables": {"complex": {"members": ["a", "b", "c"]}}}
    opened = open_references(tmp_path, with_record(refs, record), decode_cf=False)
    assert opened["complex"].values.tolist() == [1 + 2j, 3]


# --- what metadata say


@pytest.mark.parametrize(
    ("data_type", "fill_value"),
    [
        ("bool", "false"),
        ("bool", 3),
        ("int32", 1.5),
        ("int32", "12"),
        ("int32", 1 << 40),
        ("int32", [1, 2, 3]),
        ("float32", "word"),
        ("float32", "0x7f"),
        ("float32", "0x7fc0000011223344"),
        ("float64", [1.0]),
        ("complex64", 1.0),
        ("complex64", [1.0]),
        ({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}, "2020"),
        ({"name": "raw_bytes", "configuration": {"length_bytes": 4}}, "!!"),
        ({"name": "raw_bytes", "configuration": {"length_bytes": 4}}, "AAAAAAAAAAAA"),
        ({"name": "fixed_length_utf32", "configuration": {"length_bytes": 4}}, "too long"),
    ],
    ids=str,
)
def test_an_array_with_a_fill_value_of_another_type_is_left_out(
    data_type: Any, fill_value: Any, tmp_path: Path
) -> None:
    check_left_out(tmp_path, one_array(data_type, fill_value), "the fill value does not fit the type")


@pytest.mark.parametrize(
    "data_type",
    ["bfloat16", "float", {"name": "null_terminated_bytes"}, {"name": "structured", "configuration": {"fields": [1]}}],
    ids=str,
)
def test_an_array_of_an_unknown_type_is_left_out(data_type: Any, tmp_path: Path) -> None:
    check_left_out(tmp_path, one_array(data_type, 0), "")


def test_an_array_with_an_unknown_codec_is_left_out(tmp_path: Path) -> None:
    check_left_out(tmp_path, one_array("int32", 0, codecs=[*LITTLE, {"name": "numcodecs.grib"}]), "grib")


def test_a_chunk_that_zarr_cannot_decode_is_an_error_that_names_the_array(tmp_path: Path) -> None:
    codecs = [*LITTLE, {"name": "gzip", "configuration": {"level": 1}}]
    with pytest.raises(H5ZarrError, match=r"^/a: "):
        open_references(tmp_path, one_array("int32", 0, codecs=codecs, chunk="this was never compressed"))


@pytest.mark.parametrize(
    ("codec", "chunk_shape"),
    [
        ({"name": "numcodecs.shuffle", "configuration": {"elementsize": {}}}, 3),
        ({"name": "numcodecs.shuffle", "configuration": {"elementsize": 1.5}}, 3),
        ({"name": "numcodecs.zlib", "configuration": {"level": 1}}, 1 << 62),
    ],
    ids=str,
)
def test_settings_of_codecs_that_make_no_sense_are_an_error(codec: Any, chunk_shape: int, tmp_path: Path) -> None:
    grid = {"name": "regular", "configuration": {"chunk_shape": [chunk_shape]}}
    content = "base64:" + b64encode(zlib.compress(bytes(12))).decode()
    with pytest.raises(H5ZarrError, match=r"^/a: "):
        open_references(tmp_path, one_array("int32", 0, codecs=[*LITTLE, codec], chunk_grid=grid, chunk=content))


def test_an_array_whose_codec_has_settings_that_make_no_sense_is_left_out(tmp_path: Path) -> None:
    codec = {"name": "h5zarr.elements", "configuration": {"datatype": "AAAA"}}
    check_left_out(tmp_path, one_array("int32", 0, codecs=[*LITTLE, codec]), "")


@pytest.mark.parametrize("value", ["N/A", [4, 5, 6], None, 1 << 70], ids=str)
def test_a_missing_value_that_is_not_a_number_masks_nothing(value: Any, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", xarray.SerializationWarning)
        opened = open_references(tmp_path, one_array("int32", 0, attributes={"_FillValue": value}))
    assert opened["a"].values.tolist() == [0, 0, 0]


def test_a_missing_value_that_xarray_cannot_use_is_ignored_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(ProblemWarning, match=r":/a: xarray cannot decode it .*; it is decoded without _FillValue"):
        opened = open_references(tmp_path, one_array("int32", 0, attributes={"_FillValue": {"a": 1}}))
    assert opened["a"].values.tolist() == [0, 0, 0]
    assert opened["a"].attrs == {"_FillValue": {"a": 1}}


def test_the_missing_value_of_text_is_text(tmp_path: Path) -> None:
    array = one_array("string", "", codecs=[{"name": "vlen-utf8"}], attributes={"_FillValue": "N/A"})
    assert open_references(tmp_path, array, decode_cf=False)["a"].attrs["_FillValue"] == "N/A"


# --- what others write


@pytest.mark.parametrize("written", [0, 1, 2])
def test_references_that_carry_everything_need_no_file(written: int, tmp_path: Path) -> None:
    array = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "|S1", "filters": None, "compressor": None}
    array |= {"fill_value": "eA==", "order": "C"}
    chunks = {"a/0": "ab", "a/1": "cd"}
    refs = {".zgroup": '{"zarr_format":2}', "a/.zarray": json.dumps(array), **dict(list(chunks.items())[:written])}
    opened = open_references(tmp_path, refs, decode_cf=False)
    assert b"".join(opened["a"].values.tolist()) == b"abcd"[: 2 * written] + b"xx" * (2 - written)


@pytest.mark.parametrize(
    ("dtype", "filters", "expected"),
    [("<U1", None, ["a", "b", "c"]), ("|O", [{"id": "vlen-bytes"}], [b"a", b"bc", b""])],
    ids=["U", "bytes"],
)
def test_types_of_version_2_that_h5zarr_never_writes_are_shown(
    dtype: str, filters: Any, expected: list[Any], tmp_path: Path
) -> None:
    array = {"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": dtype, "filters": filters}
    array |= {"compressor": None, "fill_value": "", "order": "C"}
    parts = [
        len(expected).to_bytes(4, "little"),
        *(len(one).to_bytes(4, "little") + one for one in expected if filters),
    ]
    content = b"".join(parts) if filters else np.array(expected, dtype).tobytes()
    chunk = content.decode()
    opened = open_references(tmp_path, {".zgroup": '{"zarr_format":2}', "a/.zarray": json.dumps(array), "a/0": chunk})
    assert opened["a"].values.tolist() == expected


def test_a_chunk_that_zarr_cannot_read_is_an_error_that_names_the_array(tmp_path: Path) -> None:
    """h5zarr leaves arrays with the codec `gzip` to zarr."""
    codecs = [*LITTLE, {"name": "gzip", "configuration": {"level": 1}}]
    refs = one_array("int32", 0, codecs=codecs, chunk="no gzip")
    with pytest.raises(MalformedFile, match="/a: zarr cannot read it: "):
        open_references(tmp_path, refs)
