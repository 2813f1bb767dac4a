"""References that kerchunk and VirtualiZarr wrote give the values that they give with their own readers."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr
import zarr

from h5zarr.containers.json.json_reading import decode_references
from h5zarr.zarr_model.hierarchy import ArrayNode, Hierarchy
from tests.containers.hierarchies import open_store, v3_text


@pytest.fixture(autouse=True)
def collector_at_rest() -> Iterator[None]:
    """Keep the collector from closing h5py's objects in another thread while kerchunk visits a file: it would hang."""
    gc.disable()
    yield
    gc.enable()


def make_dataset(number: int = 0) -> xr.Dataset:
    """Return a dataset like those that people combine, one of several along time."""
    times = np.arange(4.0) + 4 * number
    temperature = np.arange(4 * 6, dtype="f4").reshape(4, 6) + 100 * number
    temperature[1, 2] = np.nan
    packed = np.linspace(0, 1, 24).reshape(4, 6)
    return xr.Dataset(
        {
            "temp": (("time", "x"), temperature, {"units": "K", "valid_range": [0.0, 1000.0]}),
            "packed": (("time", "x"), packed, {"long_name": "packed numbers"}),
            "flag": (("x",), np.arange(6, dtype="i1")),
            "crs": ((), np.int32(5), {"grid_mapping_name": "latitude_longitude"}),
        },
        coords={"time": ("time", times, {"units": "days since 2000-01-01"}), "x": np.arange(6)},
        attrs={"title": "made for a test"},
    )


def write_netcdf(path: Path, number: int = 0) -> Path:
    packing = {"dtype": "i2", "scale_factor": 0.001, "add_offset": 1.0, "_FillValue": -999}
    filters = {"zlib": True, "shuffle": True, "chunksizes": (2, 3)}
    encoding = {"temp": {"_FillValue": -9.0, **filters}, "packed": packing, "time": {"dtype": "f8"}}
    make_dataset(number).to_netcdf(path, engine="netcdf4", encoding=encoding)
    return path


def decode(document: Any) -> Hierarchy:
    read = decode_references(json.dumps(document).encode(), "refs.json")
    assert read.provenance is None
    return read.hierarchy


def open_v2(document: Any) -> xr.Dataset:
    store = open_store(json.dumps(document).encode())
    return xr.open_dataset(store, engine="zarr", zarr_format=2, consolidated=False, chunks=None)


def open_v3(hierarchy: Hierarchy) -> xr.Dataset:
    return xr.open_dataset(open_store(v3_text(hierarchy)), engine="zarr", chunks=None)


def check_same_dataset(document: Any) -> Hierarchy:
    hierarchy = decode(document)
    assert hierarchy.problems == hierarchy.warnings == ()
    with open_v2(document) as expected, open_v3(hierarchy) as read:
        xr.testing.assert_identical(read.load(), expected.load())
        assert {name: read[name].dtype for name in read} == {name: expected[name].dtype for name in expected}
    return hierarchy


@pytest.mark.parametrize("inline", [0, 10_000])
def test_a_file_that_kerchunk_translated(tmp_path: Path, inline: int) -> None:
    hdf = pytest.importorskip("kerchunk.hdf")
    path = write_netcdf(tmp_path / "one.nc")
    document = hdf.SingleHdf5ToZarr(str(path), inline_threshold=inline).translate()
    hierarchy = check_same_dataset(document)
    check_same_dataset(document["refs"])
    assert hierarchy.urls == (() if inline else (str(path),))
    node = hierarchy.nodes["/temp"]
    assert isinstance(node, ArrayNode)
    assert node.manifest.count + len(node.manifest.inline) == 4
    assert [codec["name"] for codec in node.codecs] == ["bytes", "numcodecs.shuffle", "numcodecs.zlib"]


def test_files_that_kerchunk_combined(tmp_path: Path) -> None:
    hdf, combine = pytest.importorskip("kerchunk.hdf"), pytest.importorskip("kerchunk.combine")
    paths = [str(write_netcdf(tmp_path / f"{number}.nc", number)) for number in range(3)]
    singles = [hdf.SingleHdf5ToZarr(path, inline_threshold=0).translate() for path in paths]
    options = {"concat_dims": ["time"], "identical_dims": ["x", "flag", "crs"], "inline_threshold": 0}
    document = combine.MultiZarrToZarr(singles, **options).translate()
    hierarchy = check_same_dataset(document)
    node = hierarchy.nodes["/temp"]
    assert isinstance(node, ArrayNode)
    assert node.shape == (12, 6)
    assert isinstance(node.manifest.source, np.ndarray)
    assert [hierarchy.urls[source] for source in node.manifest.source[::4]] == paths


def test_a_classic_file_that_kerchunk_translated(tmp_path: Path) -> None:
    pytest.importorskip("scipy", reason="kerchunk needs scipy for netCDF-3")
    from kerchunk.netCDF3 import NetCDF3ToZarr

    path = tmp_path / "classic.nc"
    make_dataset().drop_vars("x").to_netcdf(path, format="NETCDF3_64BIT", unlimited_dims=["time"])
    check_same_dataset(NetCDF3ToZarr(str(path), inline_threshold=0).translate())


def test_records_as_kerchunk_has_those_of_classic_files(tmp_path: Path) -> None:
    """kerchunk needs scipy to write it; this is what comes of it: texts with indents, a reference for each record."""
    values = np.arange(12, dtype=">i2").reshape(4, 3)
    (tmp_path / "classic.nc").write_bytes(b"CDF\x02" + values.tobytes())
    array = {"shape": [4, 3], "chunks": [1, 3], "dtype": ">i2", "fill_value": 5, "order": "C", "filters": None}
    refs: dict[str, Any] = {
        ".zgroup": '{\n  "zarr_format": 2\n}',
        "v/.zarray": json.dumps({**array, "dimension_separator": ".", "compressor": None, "zarr_format": 2}, indent=2),
        "v/.zattrs": json.dumps({"scale_factor": 0.5, "units": "K", "_ARRAY_DIMENSIONS": ["time", "x"]}, indent=2),
        **{f"v/{record}.0": [str(tmp_path / "classic.nc"), 4 + 6 * record, 6] for record in range(4)},
    }
    hierarchy = check_same_dataset({"version": 1, "refs": refs})
    with open_v3(hierarchy) as dataset:
        expected = np.where(values == 5, np.nan, values * 0.5)
        np.testing.assert_array_equal(dataset["v"], expected)


def check_same_arrays(document: Any) -> Hierarchy:
    hierarchy = decode(document)
    expected = zarr.open_group(open_store(json.dumps(document).encode()), mode="r", zarr_format=2)
    read = zarr.open_group(open_store(v3_text(hierarchy)), mode="r")
    for path, node in hierarchy.nodes.items():
        if isinstance(node, ArrayNode):
            assert np.asarray(read[path[1:]][...]).tolist() == np.asarray(expected[path[1:]][...]).tolist()
    return hierarchy


def test_text_and_groups_that_kerchunk_translated(tmp_path: Path) -> None:
    hdf = pytest.importorskip("kerchunk.hdf")
    path = tmp_path / "types.h5"
    with h5py.File(path, "w") as file:
        file["texts"] = np.array(["a", "bé", ""], object)
        file["fixed"] = np.array([b"ab", b"c"], "S3")
        file["group/complex"] = np.array([1 + 2j, 3j])
        file["group/flags"] = np.array([True, False])
        file.create_dataset("empty", shape=(0, 3), maxshape=(None, 3), chunks=(2, 3), dtype="i2")
        file.create_dataset("group/unwritten", shape=(4, 4), chunks=(2, 2), dtype="f4", fillvalue=7)
    hierarchy = check_same_arrays(hdf.SingleHdf5ToZarr(str(path), inline_threshold=0).translate())
    assert hierarchy.problems == ()
    assert list(hierarchy.nodes) == [
        *("/", "/empty", "/fixed", "/group", "/group/complex", "/group/flags", "/group/unwritten", "/texts"),
    ]


def test_records_that_kerchunk_translated_are_there_unless_readers_would_get_them_wrong(tmp_path: Path) -> None:
    hdf = pytest.importorskip("kerchunk.hdf")
    path = tmp_path / "records.h5"
    records = np.array([(1, 2.5), (3, 4.5)], [("a", "<i4"), ("b", "<f8")])
    with h5py.File(path, "w") as file:
        file["little"] = records
        file["big"] = records.astype([("a", ">i4"), ("b", ">f8")])
    hierarchy = check_same_arrays(hdf.SingleHdf5ToZarr(str(path), inline_threshold=0, vlen_encode="leave").translate())
    assert list(hierarchy.nodes) == ["/", "/little"]
    assert [(problem.path, problem.kind) for problem in hierarchy.problems] == [("/big", "unsupported")]


@pytest.mark.parametrize("loaded", [[], ["time", "x", "crs"]])
def test_a_file_that_virtualizarr_translated(tmp_path: Path, loaded: list[str]) -> None:
    virtualizarr = pytest.importorskip("virtualizarr")
    from obstore.store import LocalStore
    from virtualizarr.parsers import HDFParser

    registry = pytest.importorskip("obspec_utils.registry").ObjectStoreRegistry({"file://": LocalStore()})
    path = write_netcdf(tmp_path / "one.nc")
    with virtualizarr.open_virtual_dataset(
        f"file://{path}", registry=registry, parser=HDFParser(), loadable_variables=loaded, decode_times=False
    ) as dataset:
        dataset.vz.to_kerchunk(str(tmp_path / "refs.json"), format="json")
    document = json.loads((tmp_path / "refs.json").read_text())
    with open_v3(decode(document)) as read:
        # Its own reader does not find a scalar's chunk, which has another key than Zarr asks for.
        assert read["crs"].load() == 5
    for name in ("crs/", "crs/.zarray", "crs/.zattrs"):
        del document["refs"][name]
    check_same_dataset(document)
