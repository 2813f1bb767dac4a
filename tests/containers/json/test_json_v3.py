from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

from h5zarr.containers.output import open_output
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.source_state import SourceState
from h5zarr.io.location import Location
from h5zarr.io.source import Identity
from h5zarr.zarr_model.hierarchy import GroupNode, Hierarchy
from tests.containers.hierarchies import (
    LITTLE,
    PROVENANCE,
    UTF8,
    RawFile,
    encode_text,
    make_array,
    make_hierarchy,
    open_store,
    v3_text,
    write_json_v3,
)

GOLDEN = Path(__file__).parent / "golden_v3.json"
ODD_NAMES = (
    "a b", " lead", "trail ", "50%", "%20", "a#b", "a?b", "{{x}}", "{{", "}}", "{% x %}", "é", "e\u0301", "日本", "😀",
    'q"q', "it's", "a:b", "a::b", "reference:", "tab\tx", "line\nx", "\x01", "*", "[a]", "~", "$HOME", "a,b", "<a>",
    "...", "c", "0", "__x", "A&B", "a|b", "-",
)  # fmt: skip


def read_back(hierarchy: Hierarchy) -> Any:
    return zarr.open_group(open_store(v3_text(hierarchy)), mode="r")


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
    chunk_shape = tuple(3 for _ in values.shape)
    indices = list(np.ndindex(*[-(-n // 3) for n in values.shape])) if inline else []
    fill_value = [0, 0] if values.dtype.kind == "c" else bool(values.dtype.kind != "b") and 0
    array = make_array(raw_file, values, chunk_shape, inline=indices, fill_value=fill_value)
    read = read_back(make_hierarchy(raw_file, {"/v": array}))["v"][...]
    np.testing.assert_array_equal(read, values)


def test_missing_chunks_read_as_fill_and_the_others_as_they_are(raw_file: RawFile) -> None:
    values = np.arange(30, dtype="i4").reshape(5, 6)
    array = make_array(raw_file, values, (2, 2), missing=[(0, 1), (2, 2)], inline=[(1, 1)], fill_value=-9)
    expected = values.copy()
    expected[0:2, 2:4] = expected[4:, 4:] = -9
    np.testing.assert_array_equal(read_back(make_hierarchy(raw_file, {"/v": array}))["v"][...], expected)


def test_chunks_may_be_in_several_files(tmp_path: Path) -> None:
    files = [RawFile(tmp_path / name) for name in ("one.bin", "second file.bin", "3")]
    values = np.arange(100, dtype="i8").reshape(10, 10)
    hierarchy = make_hierarchy(files, {"/v": make_array(files, values, (3, 4))})
    np.testing.assert_array_equal(read_back(hierarchy)["v"][...], values)


def test_text_and_records_read_back(raw_file: RawFile) -> None:
    texts = np.array(["", "é", "long " * 10], object)
    fixed = np.array([b"ab", b"c", b""], "S3")
    records = np.array([(1, 2.5), (3, 4.5)], [("a", "<i4"), ("b", "<f8")])
    record_type = {"name": "structured", "configuration": {"fields": [["a", "int32"], ["b", "float64"]]}}
    fixed_type = {"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}
    nodes = {
        "/t": make_array(raw_file, texts, data_type="string", codecs=(UTF8,), encode=encode_text, fill_value=""),
        "/f": make_array(raw_file, fixed, data_type=fixed_type, fill_value=""),
        "/r": make_array(raw_file, records, data_type=record_type, codecs=(LITTLE,), fill_value="AAAAAAAAAAAAAAAA"),
    }
    group = read_back(make_hierarchy(raw_file, nodes))
    for name, values in (("t", texts), ("f", fixed), ("r", records)):
        assert group[name][...].tolist() == values.tolist()


def nested(raw_file: RawFile) -> Hierarchy:
    temperature = make_array(raw_file, np.arange(6, dtype="f4").reshape(2, 3), (1, 3), dimension_names=("y", "x"))
    nodes = {
        "/time": make_array(raw_file, np.arange(4, dtype="i8"), (2,), dimension_names=("time",)),
        "/forecast": GroupNode(attributes={"title": "é", "level": float("nan")}),
        "/forecast/empty": GroupNode(attributes={}),
        "/forecast/deep": GroupNode(attributes={}),
        "/forecast/deep/temp": temperature,
        "/scalar": make_array(raw_file, np.float64(1.5), dimension_names=()),
    }
    return make_hierarchy(raw_file, nodes)


def test_groups_inside_groups_are_there(raw_file: RawFile) -> None:
    group = read_back(nested(raw_file))
    assert sorted(path for path, _ in group.members(max_depth=None)) == [
        "forecast", "forecast/deep", "forecast/deep/temp", "forecast/empty", "scalar", "time",
    ]  # fmt: skip
    assert group["forecast"].attrs["title"] == "é"
    assert np.isnan(group["forecast"].attrs["level"])
    assert group["scalar"][...] == 1.5


def test_xarray_reads_groups_and_trees(raw_file: RawFile) -> None:
    store = open_store(v3_text(nested(raw_file)))
    with xr.open_dataset(store, engine="zarr", group="forecast/deep", chunks=None) as dataset:
        assert dataset["temp"].dims == ("y", "x")
        np.testing.assert_array_equal(dataset["temp"], [[0, 1, 2], [3, 4, 5]])
    with xr.open_datatree(store, engine="zarr", chunks=None) as tree:
        assert [node.path for node in tree.subtree] == ["/", "/forecast", "/forecast/empty", "/forecast/deep"]
        assert tree["/scalar"].item() == 1.5


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_xarray_opens_the_file_that_was_written(raw_file: RawFile, tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("zstandard")
    target = tmp_path / f"refs.json{suffix}"
    with open_output(Location.parse(target)) as out:
        assert write_json_v3(nested(raw_file), PROVENANCE, out) == ()
    compression = {"target_options": {"compression": "infer"}} if suffix else {}
    options = {"fo": str(target), **compression}
    with xr.open_dataset("reference://", engine="zarr", storage_options=options, chunks=None) as dataset:
        np.testing.assert_array_equal(dataset["time"], [0, 1, 2, 3])


def test_a_plain_path_is_as_good_as_a_file_url(raw_file: RawFile, tmp_path: Path) -> None:
    target = tmp_path / "refs.json"
    with open_output(Location.parse(target)) as out:
        write_json_v3(replace(nested(raw_file), urls=(str(raw_file.path),)), PROVENANCE, out)
    options = {"fo": str(target)}
    with xr.open_dataset("reference://", engine="zarr", storage_options=options, chunks=None) as dataset:
        np.testing.assert_array_equal(dataset["time"], [0, 1, 2, 3])


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_read_right_as_arrays_groups_attributes_and_files(tmp_path: Path, name: str) -> None:
    raw_file = RawFile(tmp_path / f"U{name}")
    values = np.arange(12, dtype="i4").reshape(3, 4)
    array = make_array(raw_file, values, (2, 2), dimension_names=("y", name))
    nodes = {f"/{name}": array, f"/G{name}": GroupNode(attributes={name: name}), f"/G{name}/{name}": array}
    store = open_store(v3_text(make_hierarchy(raw_file, nodes)))
    group = zarr.open_group(store, mode="r")
    assert list(group.array_keys()) == [name]
    assert group[f"G{name}"].attrs[name] == name
    np.testing.assert_array_equal(group[f"G{name}/{name}"][...], values)
    with xr.open_dataset(store, engine="zarr", chunks=None) as dataset:
        assert dataset[name].dims == ("y", name)
        np.testing.assert_array_equal(dataset[name].variable, values)


@pytest.mark.parametrize("name", ["a\\b", ".", "..", "zarr.json"])
def test_a_name_that_breaks_readers_is_left_out_with_what_is_below_it(raw_file: RawFile, name: str) -> None:
    array = make_array(raw_file, np.arange(3))
    nodes = {f"/{name}": GroupNode(attributes={}), f"/{name}/v": array, "/w": array}
    hierarchy = make_hierarchy(raw_file, nodes)
    with open_output(Location.parse("/dev/null")) as out:
        (problem,) = write_json_v3(hierarchy, PROVENANCE, out)
    assert problem.path == f"/{name}"
    assert "name" in problem.message
    assert [path for path, _ in read_back(hierarchy).members(max_depth=None)] == ["w"]


def small() -> Hierarchy:
    """Return a hierarchy that needs no file to be written."""
    file = RawFile.__new__(RawFile)
    file.url = "s3://bucket/ocean.nc"
    addresses = iter(range(4096, 8192, 100))
    file.append = lambda chunk: next(addresses)  # type: ignore[method-assign]
    temp = make_array(
        file,
        np.arange(12, dtype=">i2").reshape(3, 4),
        (2, 2),
        missing=[(1, 0)],
        inline=[(1, 1)],
        fill_value=-1,
        dimension_names=("y", "x"),
        attributes={"units": "°C", "_FillValue": -1},
    )
    nodes = {"/g": GroupNode(attributes={}), "/g/temp": temp, "/v": make_array(file, np.int32(5))}
    return replace(make_hierarchy(file, nodes), nodes={"/": GroupNode(attributes={"title": 'a "test"'}), **nodes})


SMALL = Provenance("0.1", (SourceState("s3://bucket/ocean.nc", Identity(nbytes=9000, etag='"e"')),))


def test_the_whole_text_is_as_it_was(tmp_path: Path) -> None:
    with open_output(Location.parse(tmp_path / "refs.json")) as out:
        write_json_v3(small(), SMALL, out)
    assert (tmp_path / "refs.json").read_text() == GOLDEN.read_text()


def test_the_same_input_gives_the_same_bytes_and_valid_json() -> None:
    text = v3_text(small())
    assert text == v3_text(small())
    assert text.isascii()
    references = json.loads(text)
    assert list(references) == ["version", "h5zarr", "refs"]
    assert list(references["refs"]) == [
        "zarr.json", "g/zarr.json", "g/temp/zarr.json", "g/temp/c/0/0", "g/temp/c/0/1", "g/temp/c/1/1", "v/zarr.json",
        "v/c",
    ]  # fmt: skip


def test_consolidated_metadata_is_that_of_the_nodes() -> None:
    references = json.loads(v3_text(small()))["refs"]
    consolidated = json.loads(references["zarr.json"])["consolidated_metadata"]
    assert consolidated["kind"] == "inline"
    assert consolidated["must_understand"] is False
    assert consolidated["metadata"] == {
        path: json.loads(references[f"{path}/zarr.json"]) for path in ("g", "g/temp", "v")
    }
