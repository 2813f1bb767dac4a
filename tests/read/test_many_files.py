"""A selection from a cube that touches many files."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import netCDF4
import numpy as np
import numpy.typing as npt
import pytest
import xarray as xr

import h5zarr
from h5zarr.containers.icechunk import stored_files, virtual_refs
from h5zarr.io import many_files
from tests.servers import Faults, RangeServer

COUNT, SHAPE = 150, (20, 30)
OPTIONS: dict[str, Any] = {"decode_times": False}


def values(number: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(number).random(SHAPE).astype(np.float32)


def write(path: Path, number: int) -> bytes:
    with netCDF4.Dataset(path, "w") as file:
        for name, extent in zip(("time", "y", "x"), (None, *SHAPE), strict=True):
            file.createDimension(name, extent)
        file.createVariable("time", "i4", ("time",))[:] = [number]
        how: dict[str, Any] = {"chunksizes": (1, 10, 30), "zlib": True}
        file.createVariable("v", "f4", ("time", "y", "x"), **how)[:] = values(number)[None]
    return path.read_bytes()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("many")
    return {f"/f{number:03}.nc": write(folder / f"f{number:03}.nc", number) for number in range(COUNT)}


@pytest.fixture
def server(files: dict[str, bytes]) -> Iterator[RangeServer]:
    with RangeServer(files) as started:
        yield started


@pytest.fixture
def cube(server: RangeServer, files: dict[str, bytes], tmp_path: Path) -> Path:
    h5zarr.combine([server.url(name) for name in files], tmp_path / "cube.json", along="time")
    server.set_faults(Faults())
    server.counts.heads = 0
    return tmp_path / "cube.json"


def test_a_point_takes_one_request_of_each_file(cube: Path, server: RangeServer) -> None:
    with xr.open_dataset(cube, engine="h5zarr", **OPTIONS) as opened:
        server.counts.gets.clear()
        found = opened.v[:, 4, 5].values
    np.testing.assert_array_equal(found, [values(number)[4, 5] for number in range(COUNT)])
    assert (len(server.counts.gets), server.counts.heads) == (COUNT, 0)
    assert server.counts.max_in_flight > 32


@pytest.mark.parametrize(
    "key",
    [
        (slice(None), slice(None), slice(3, 20, 4)),
        (slice(140, 20, -7), 19, slice(None)),
        (np.array([3, 149, 3, 70]), slice(9, 11), np.array([29, 0])),
    ],
)
def test_any_selection_has_the_values_of_the_files(cube: Path, key: Any) -> None:
    whole = xr.DataArray(np.stack([values(number) for number in range(COUNT)]), dims=("time", "y", "x"))
    with xr.open_dataset(cube, engine="h5zarr", **OPTIONS) as opened:
        np.testing.assert_array_equal(opened.v[key].values, whole[key].values)


def test_a_file_that_has_vanished_is_named_with_its_part(cube: Path, server: RangeServer) -> None:
    del server.files["/f017.nc"]
    with (
        xr.open_dataset(cube, engine="h5zarr", **OPTIONS) as opened,
        pytest.raises(
            FileNotFoundError, match=r"f017\.nc: there is no such file \(HTTP 404\); it has /v\[17:18, 0:10, 0:30\]"
        ) as caught,
    ):
        opened.v[:, 4, 5].load()
    assert "it has been moved or removed since" in caught.value.remedy
    with xr.open_dataset(cube, engine="h5zarr", **OPTIONS) as opened:
        np.testing.assert_array_equal(opened.v[18:, 4, 5], [values(number)[4, 5] for number in range(18, COUNT)])


def test_only_the_files_that_are_read_must_be_unchanged(cube: Path, server: RangeServer, tmp_path: Path) -> None:
    server.files["/f017.nc"] = write(tmp_path / "other.nc", 1017) + b"more"
    with xr.open_dataset(cube, engine="h5zarr", **OPTIONS) as opened:
        np.testing.assert_array_equal(opened.v[18:, 4, 5], [values(number)[4, 5] for number in range(18, COUNT)])
        with pytest.raises(h5zarr.SourceChanged, match=r"f017\.nc.*it has /v\[17:18, 0:10, 0:30\]"):
            opened.v[10:20, 4, 5].load()


@pytest.mark.parametrize("form", ["parquet", "icechunk"])
def test_a_pickle_of_a_cube_has_no_references(
    form: str, files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_files, "_MOST_IN_METADATA", 5)  # as if the cube were large
    monkeypatch.setattr(virtual_refs, "_MANIFEST", 20)
    for name, content in files.items():
        (tmp_path / name[1:]).write_bytes(content)
    out = f"icechunk+file://{tmp_path}/repository" if form == "icechunk" else str(tmp_path / "cube.parquet")
    sizes = []
    for count in (COUNT // 10, COUNT):
        h5zarr.combine([str(tmp_path / name[1:]) for name in list(files)[:count]], out, along="time")
        with xr.open_dataset(out, engine="h5zarr", **OPTIONS) as opened:
            opened.v[3, 4, 5].load()  # what was read for that is not sent
            sent = pickle.dumps(opened.v.variable._data)
            sizes.append(len(sent))
            for _ in range(2):
                found = pickle.loads(sent)
                np.testing.assert_array_equal(
                    np.asarray(found)[:, 4, 5], [values(number)[4, 5] for number in range(count)]
                )
    assert sizes[1] < 2 * sizes[0]


def test_failures_that_pass_are_tried_again(cube: Path, server: RangeServer) -> None:
    with xr.open_dataset(cube, engine="h5zarr", **OPTIONS) as opened:
        server.set_faults(Faults(statuses={1: 503, 40: 500, 90: 503}))
        found = opened.v[:, 4, 5].values
    np.testing.assert_array_equal(found, [values(number)[4, 5] for number in range(COUNT)])


def test_the_user_limits_the_requests(cube: Path, server: RangeServer) -> None:
    server.latency = 0.01
    with xr.open_dataset(cube, engine="h5zarr", network={"concurrency": 3}, **OPTIONS) as opened:
        server.counts.max_in_flight = 0
        found = opened.v[:, 4, 5].values
    np.testing.assert_array_equal(found, [values(number)[4, 5] for number in range(COUNT)])
    assert server.counts.max_in_flight == 3


def test_memory_has_a_limit(cube: Path, server: RangeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_files, "IN_FLIGHT_NBYTES", 1)
    server.latency = 0.01
    with xr.open_dataset(cube, engine="h5zarr", **OPTIONS) as opened:
        server.counts.max_in_flight = 0
        found = opened.v[:, 4, 5].values
    np.testing.assert_array_equal(found, [values(number)[4, 5] for number in range(COUNT)])
    assert server.counts.max_in_flight <= many_files.LEAST_WORKERS


def test_a_local_file_that_has_vanished_is_named_with_its_part(files: dict[str, bytes], tmp_path: Path) -> None:
    for name, content in files.items():
        (tmp_path / name[1:]).write_bytes(content)
    h5zarr.combine([str(tmp_path / name[1:]) for name in files], tmp_path / "cube.json", along="time")
    (tmp_path / "f017.nc").unlink()
    with (
        xr.open_dataset(tmp_path / "cube.json", engine="h5zarr", **OPTIONS) as opened,
        pytest.raises(FileNotFoundError, match=r"f017\.nc: there is no such file; it has /v\[17:18, 0:10, 0:30\]"),
    ):
        opened.v[:, 4, 5].load()


def test_files_that_have_no_event_loop_are_read_in_threads(files: dict[str, bytes], tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    for name, content in files.items():
        memory.pipe(f"/many{name}", content)
    urls = [f"memory://many{name}" for name in files]
    h5zarr.combine(urls, tmp_path / "cube.json", along="time")
    with xr.open_dataset(tmp_path / "cube.json", engine="h5zarr", allow=["memory://many/"], **OPTIONS) as opened:
        np.testing.assert_array_equal(opened.v[:, 4, 5], [values(number)[4, 5] for number in range(COUNT)])
    memory.rm("/many/f017.nc")
    with (
        xr.open_dataset(tmp_path / "cube.json", engine="h5zarr", allow=["memory://many/"], **OPTIONS) as opened,
        pytest.raises(h5zarr.H5ZarrError, match=r"f017\.nc.*; it has /v\[17:18, 0:10, 0:30\]"),
    ):
        opened.v[:, 4, 5].load()


def test_files_of_both_kinds_are_read_together(files: dict[str, bytes], server: RangeServer, tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    urls = []
    for number, (name, content) in enumerate(files.items()):
        memory.pipe(f"/both{name}", content)
        urls.append(server.url(name) if number % 3 else f"memory://both{name}")
    for order in (urls, [*urls[1:], urls[0]]):  # the first one decides how most are read
        h5zarr.combine(order, tmp_path / "cube.json", along="time", overwrite=True)
        with xr.open_dataset(tmp_path / "cube.json", engine="h5zarr", allow=["memory://both/"], **OPTIONS) as opened:
            np.testing.assert_array_equal(opened.v[:, 4, 5], [values(number)[4, 5] for number in range(COUNT)])
            np.testing.assert_array_equal(opened.v[1:, 4, 5], [values(number)[4, 5] for number in range(1, COUNT)])
