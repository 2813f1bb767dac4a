"""The example configuration files in the documentation are read, and index archives like those that they describe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import pytest

from h5zarr.cli import main
from h5zarr.commands.index.workers import ExecutorWorkers
from tests.collections_of_files import PROJECT
from tests.collectors import MetricsServer
from tests.commands.index.jobs import rows_of
from tests.s3 import s3_server

ARCHIVES = PROJECT / "docs" / "archives"


@pytest.fixture(autouse=True)
def _threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr("h5zarr.commands.index.index.LocalWorkers", lambda count: ExecutorWorkers(pool, count))
        yield


def place(name: str, directory: Path) -> str:
    """Copy an example to a directory, and return its path."""
    (directory / name).write_text((ARCHIVES / name).read_text())
    return str(directory / name)


def write_variable(path: Path, name: str, *, time_count: int = 3) -> None:
    """Write a file with one variable over time, latitude and longitude, with bounds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file["time"] = np.arange(time_count, dtype="f8")
        file["time"].attrs["units"] = "days since 1850-01-01"
        file["time_bnds"] = np.zeros((time_count, 2))
        file.create_dataset(name, data=np.ones((time_count, 4, 5), "f4"), chunks=(1, 4, 5))


def test_every_example_is_tested_and_documented() -> None:
    names = {path.name for path in ARCHIVES.iterdir()}
    assert names == {"cmip.toml", "swath.toml", "forecast.toml"}
    assert set(re.findall(r"\(archives/([\w.]+)\)", (PROJECT / "docs" / "operations.md").read_text())) == names


def test_the_archive_like_cmip(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "CMIP6" / "CMIP" / "INST" / "MODEL" / "historical" / "r1i1p1f1"
    for table, variable in (("Omon", "tos"), ("day", "tas"), ("day", "pr"), ("day", "hurs"), ("fx", "areacella")):
        folder = root / table / variable / "gn" / "v20260101"
        for period in ("185001-185012", "185101-185112"):
            write_variable(folder / f"{variable}_{table}_MODEL_historical_r1i1p1f1_gn_{period}.nc", variable)
    (tmp_path / "metrics").mkdir()
    path = place("cmip.toml", tmp_path)
    assert main(["index", "--config", path]) == 0
    assert main(["status", "--config", path]) == 0
    assert capfd.readouterr().out.count("0 failed") == 3
    found = {one: rows_of(tmp_path / "refs" / one) for one in ("ocean-monthly", "atmosphere-daily", "fixed")}
    assert [len(rows) for rows in found.values()] == [2, 4, 2]  # relative humidity is not asked for
    assert {row.arrays for row in found["ocean-monthly"].values()} == {2}
    assert {row.arrays for row in found["fixed"].values()} == {3}  # with bounds
    assert 'index="cmip-fixed"' in (tmp_path / "metrics" / "fixed.prom").read_text()
    assert {path.name.removesuffix("-report.json") for path in tmp_path.glob("*-report.json")} == set(found)


def test_the_archive_of_forecasts_forgets_cycles_that_are_removed(tmp_path: Path) -> None:
    for cycle in ("2026111700", "2026111712"):
        write_variable(tmp_path / "forecasts" / cycle / "surface_000.nc", "t2m")
        for member in range(2):
            write_variable(tmp_path / "forecasts" / cycle / "ensemble" / f"member_{member:02d}.nc", "t2m")
    (tmp_path / "metrics").mkdir()
    path = place("forecast.toml", tmp_path)
    assert main(["index", "--config", path, "--quiet"]) == 0
    outputs = {row.output for row in rows_of(tmp_path / "refs" / "surface").values()}
    assert outputs == {"2026111700/surface_000.json", "2026111712/surface_000.json"}
    assert len(rows_of(tmp_path / "refs" / "ensemble")) == 4
    for old in (tmp_path / "forecasts" / "2026111700").rglob("*.nc"):
        old.unlink()
    broken = tmp_path / "forecasts" / "2026111712" / "ensemble" / "member_00.nc"
    broken.write_bytes(broken.read_bytes()[:600])
    assert main(["index", "--config", path, "--quiet"]) == 1
    assert main(["index", "--config", path, "--quiet"]) == 1  # as long as a member is missing
    assert [row.output for row in rows_of(tmp_path / "refs" / "surface").values()] == ["2026111712/surface_000.json"]


def test_the_archive_of_swaths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    s3fs = pytest.importorskip("s3fs")
    for name, value in (("S3_KEY", "test"), ("S3_SECRET", "hunter2"), ("PUSH_PASSWORD", "hunter3")):
        monkeypatch.setenv(name, value)
    with h5py.File(tmp_path / "granule.nc", "w") as file:
        for name in ("chlor_a", "l2_flags", "Rrs_443"):
            file.create_dataset(f"geophysical_data/{name}", data=np.ones((8, 6), "f4"), chunks=(4, 6))
        for name in ("latitude", "longitude"):
            file[f"navigation_data/{name}"] = np.ones((8, 6), "f4")
    with s3_server() as server, MetricsServer() as gateway:
        access = {**server, "secret": "hunter2"}
        filesystem = s3fs.S3FileSystem(**access)
        for bucket in ("granules", "references"):
            filesystem.mkdir(bucket)
        for day in ("001", "002"):
            filesystem.put_file(str(tmp_path / "granule.nc"), f"granules/oc/2026/{day}/T1.L2.OC.x.nc")
        text = (ARCHIVES / "swath.toml").read_text().replace("https://s3.example.org", server["endpoint_url"])
        text = text.replace("@pushgateway.example.org", f"@{gateway.address}").replace(
            "https://h5zarr", "http://h5zarr"
        )
        (tmp_path / "swath.toml").write_text(text)
        assert main(["index", "--config", str(tmp_path / "swath.toml")]) == 0
        rows = rows_of("s3://references/oc/", access)
        assert sorted(row.output for row in rows.values()) == [
            f"2026/{day}/T1.L2.OC.x.nc.json" for day in ("001", "002")
        ]
        assert {row.arrays for row in rows.values()} == {2}
        assert len(gateway.received) == 2
        assert main(["status", "--config", str(tmp_path / "swath.toml")]) == 0
    said = "".join(capfd.readouterr())
    assert "hunter" not in said
