"""Inspecting references as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

import h5zarr
from h5zarr.cli import main
from h5zarr.commands.combine.combine import combine
from h5zarr.commands.inspect import json as hdf5_json
from h5zarr.commands.inspect.references_json import SCHEMA
from tests.commands.combine.files import write_days


def test_one_dataset_whole(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        how = {"chunks": (2, 600), "compression": 4, "shuffle": True, "fillvalue": np.nan}
        values = file.create_dataset("v", shape=(5, 600), dtype="f4", maxshape=(None, 600), **how)
        values[:2] = 1
        values.attrs["scale"] = np.float32(0.5)
    h5zarr.translate(tmp_path / "a.h5", tmp_path / "refs.json", inline_bytes=0)
    found = h5zarr.inspect(tmp_path / "refs.json").to_json()
    assert found["datasets"]["/v"] == {
        "type": "float32",
        "shape": [5, 600],
        "max_shape": [None, 600],
        "dimensions": ["phony_dim_0", "phony_dim_1"],
        "layout": {
            "kind": "chunked",
            "chunk_shape": [2, 600],
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": (2, 600)}},
            "chunks_referenced": 1,
            "chunks_inlined": 0,
            "chunks_missing": 2,
            "chunks_total": 3,
            "nbytes": found["datasets"]["/v"]["layout"]["nbytes"],
            "inlined_nbytes": 0,
        },
        "filters": [
            {"number": 2, "name": "numcodecs.shuffle", "label": "shuffle", "values": [4]},
            {"number": 1, "name": "numcodecs.zlib", "label": "deflate(4)", "values": [4]},
        ],
        "codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}},
            {"name": "numcodecs.zlib", "configuration": {"level": 4}},
        ],
        "fill": {"kind": "user", "value": "NaN"},
        "parameters": {},
        "attributes": {"scale": {"type": "float32", "shape": [], "value": 0.5}},
    }
    assert found["cube"] is None
    assert found["sources"] == [{"url": str(tmp_path / "a.h5"), "nbytes": (tmp_path / "a.h5").stat().st_size}]
    assert found["format"] == {"name": "references", "container": "a JSON file", "version": h5zarr.__version__}
    assert found["counts"] == {
        "groups": 1,
        "datasets": 1,
        "chunks": 1,
        "chunks_referenced": 1,
        "chunks_inlined": 0,
        "chunks_missing": 2,
    }


def test_the_types_and_filters_are_those_of_the_file(tmp_path: Path) -> None:
    write_days(tmp_path / "a.nc", [1, 2], zlib=True, complevel=3, attributes={"note": "x", "n": np.int8(3)})
    h5zarr.translate(tmp_path / "a.nc", tmp_path / "refs.json")
    refs, file = (h5zarr.inspect(tmp_path / name).to_json()["datasets"]["/v"] for name in ("refs.json", "a.nc"))
    for key in ("type", "shape", "max_shape", "dimensions"):
        assert refs[key] == file[key]
    assert [one["label"] for one in refs["filters"]] == [one["label"] for one in file["filters"]]
    assert refs["attributes"]["n"] == {"type": "int8", "shape": [], "value": 3}


def test_a_cube_has_axes_and_pieces(tmp_path: Path) -> None:
    paths = [write_days(tmp_path / "a.nc", [0, 1]), write_days(tmp_path / "b.nc", [2, 3], dtype="f8")]
    combine(paths, tmp_path / "cube.json")
    found = h5zarr.inspect(tmp_path / "cube.json", no_attributes=True).to_json()
    assert found["cube"] == {
        "axes": [{"name": "time", "group": "/", "length": 4}],
        "pieces": [
            {"source": str(paths[0]), "at": {"/time": [[0, 0, 2]]}},
            {"source": str(paths[1]), "at": {"/time": [[2, 0, 2]]}},
        ],
        "misfits": [],
    }
    variable = found["datasets"]["/v"]
    assert (variable["type"], variable["shape"]) == ("float32, float64", [4, 600])
    assert variable["layout"]["kind"] == "parts"
    assert [(one["path"], one["boxes"], one["dataset"]["type"]) for one in variable["layout"]["parts"]] == [
        ("/_h5zarr_parts/v/0/v", [[[0, 0, 2]]], "float32"),
        ("/_h5zarr_parts/v/1/v", [[[2, 0, 2]]], "float64"),
    ]
    assert sorted(found["datasets"]) == ["/time", "/v", "/x"]
    assert list(found["groups"]) == ["/"]
    assert found["groups"]["/"]["dimensions"]["time"] == {"length": 4, "unlimited": True}


def test_the_command_prints_strict_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    combine([write_days(tmp_path / "a.nc", [0, 1])], tmp_path / "cube.parquet", along="time")
    assert main(["inspect", str(tmp_path / "cube.parquet"), "--json", "--path", "v"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told["datasets"]) == ["/v"]
    assert told["nbytes"] is None
    assert len(told["cube"]["pieces"]) == 1


def test_every_top_level_key_is_in_the_schema(tmp_path: Path) -> None:
    h5zarr.translate(write_days(tmp_path / "a.nc", [0]), tmp_path / "refs.json")
    schemas = (SCHEMA.partition("\n")[2], hdf5_json.SCHEMA)
    keys = {line.split()[0] for text in schemas for line in text.splitlines() if not line.startswith(" ")}
    assert set(h5zarr.inspect(tmp_path / "refs.json").to_json()) == keys - {"attributes"}
