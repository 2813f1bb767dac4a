"""What new users stumbled over: mistakes that must be named, and archives that are not perfect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray as xr

import h5zarr
from h5zarr.cli import main
from h5zarr.commands.combine.combine import combine
from h5zarr.errors import NotJoinable, OutputError, Truncated
from h5zarr.zarr_model.grid import RegularGrid
from tests.commands.combine.files import concatenated, open_combined, write_days


def write_forecast(path: Path, run: int, **how: Any) -> Path:
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 400)
        file.createVariable("time", "f8", ("time",))[:] = run + np.arange(5)
        file.createVariable("x", "f8", ("x",))[:] = np.arange(400)
        file.createVariable("v", "f4", ("time", "x"), **how)[:] = 100 * run + np.arange(2000).reshape(5, 400)
    return path


@pytest.mark.parametrize("chunk", [1, 2, 5])
def test_forecasts_overlap_in_time(chunk: int, tmp_path: Path) -> None:
    paths = [write_forecast(tmp_path / f"fc_{n}.nc", n, chunksizes=(chunk, 400), zlib=True) for n in range(4)]
    found = open_combined(paths, tmp_path / "cube.json", along=[r"run=name:fc_(\d)", "time"])
    whole = xr.concat([xr.open_dataset(path).load() for path in paths], "run", join="outer", compat="equals")
    assert found["v"].dims == ("run", "time", "x")
    np.testing.assert_array_equal(found["v"].values, whole["v"].values)
    assert h5zarr.verify(tmp_path / "cube.json").is_right


def write_tile(path: Path, y: tuple[int, int], x: tuple[int, int]) -> Path:
    with netCDF4.Dataset(path, "w") as file:
        for name, (begin, end) in (("y", y), ("x", x)):
            file.createDimension(name, end - begin)
            file.createVariable(name, "f8", (name,))[:] = np.arange(begin, end)
        values = 1000.0 * np.arange(*y)[:, None] + np.arange(*x)
        file.createVariable("v", "f4", ("y", "x"), chunksizes=(4, 10), zlib=True)[:] = values
    return path


def test_tiles_with_a_halo_overlap(tmp_path: Path) -> None:
    paths = [
        write_tile(tmp_path / f"{n}.nc", y, x)
        for n, (y, x) in enumerate((y, x) for y in ((0, 44), (36, 80)) for x in ((0, 54), (46, 100)))
    ]
    with pytest.raises(NotJoinable, match="both have the same part of /v, at y 0 to 35, x 46 to 53"):
        combine(paths, along=["y", "x"])
    for choice in ("first", "last"):
        found = open_combined(paths, tmp_path / f"{choice}.json", along=["y", "x"], on_duplicate=choice)
        np.testing.assert_array_equal(found["v"].values, 1000.0 * np.arange(80)[:, None] + np.arange(100))


def test_coordinates_that_differ_are_another_grid(tmp_path: Path) -> None:
    paths = [write_days(tmp_path / f"{n}.nc", [n], x0=3 * n) for n in range(2)]
    with pytest.raises(NotJoinable, match=r"/x: its values in .*1.nc differ from those in .*0.nc by up to 3") as caught:
        combine(paths)
    assert caught.value.remedy.startswith("These files are on another grid: leave them out.")


def test_a_file_without_elements_may_have_its_own_packing(tmp_path: Path) -> None:
    """Along a dimension without a coordinate."""
    paths = []
    for number, length in enumerate((3, 0, 4, 2)):
        paths.append(tmp_path / f"{number}.nc")
        with netCDF4.Dataset(paths[-1], "w") as file:
            file.createDimension("event", None)
            energy = file.createVariable("energy", "i2", ("event",), chunksizes=(4,), zlib=True)
            energy.scale_factor = 0.5 / (number + 1)
            energy[:] = np.arange(length) / (number + 1)
    found = open_combined(paths, tmp_path / "cube.json", along="event", max_inline_bytes=0)
    np.testing.assert_array_equal(found["energy"].values, concatenated(paths, "event")["energy"].values)


@pytest.mark.filterwarnings("ignore:.*1.nc is left out")
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.98])
def test_truncated_files_are_broken(share: float, tmp_path: Path) -> None:
    paths = [write_days(tmp_path / f"{n}.nc", [n], chunksizes=(1, 600), zlib=True) for n in range(3)]
    content = paths[1].read_bytes()
    paths[1].write_bytes(content[: int(share * len(content))])
    with pytest.raises(Truncated, match=r"1.nc: .*truncated"):
        combine(paths)
    found = open_combined(paths, tmp_path / "cube.json", skip_broken=True)
    xr.testing.assert_identical(found, concatenated([paths[0], paths[2]]))
    assert "1.nc is left out" in combine(paths, skip_broken=True).problems[0].message


def test_plain_values_are_not_cut_into_tiny_chunks(tmp_path: Path) -> None:
    paths = []
    for number, length in enumerate((5003, 5009, 5011)):
        paths.append(tmp_path / f"{number}.nc")
        with netCDF4.Dataset(paths[-1], "w", format="NETCDF3_CLASSIC") as file:
            file.createDimension("event", length)
            file.createVariable("energy", "f8", ("event",))[:] = np.arange(length)
    cube = combine(paths, tmp_path / "cube.json", along="event", max_inline_bytes=0)
    assert cube.arrays()["/energy"].grid.chunk_count == 3
    assert not isinstance(cube.arrays()["/energy"].grid, RegularGrid)


@pytest.mark.parametrize(
    ("along", "remedy"), [("Time", "Did you mean"), ("tiem", "Did you mean"), ("y,x", "by itself")]
)
def test_a_typing_error_is_not_a_new_dimension(along: str, remedy: str, tmp_path: Path) -> None:
    paths = [write_days(tmp_path / f"{n}.nc", [n]) for n in range(2)]
    with pytest.raises(NotJoinable, match=f"no file has the dimension {along}") as caught:
        combine(paths, along=along)
    assert remedy in caught.value.remedy


def test_a_dimension_with_the_name_time_needs_no_units(tmp_path: Path) -> None:
    for number in range(2):
        with netCDF4.Dataset(tmp_path / f"{number}.nc", "w") as file:
            file.createDimension("time", 2)
            file.createVariable("time", "f8", ("time",))[:] = [2 * number, 2 * number + 1]
    assert [axis.name for axis in combine(sorted(tmp_path.glob("*.nc"))).axes] == ["time"]


def test_duplicates_are_named_by_their_dates(tmp_path: Path) -> None:
    paths = [write_days(tmp_path / f"{n}.nc", [n, 5, 6]) for n in range(2)]
    with pytest.raises(NotJoinable, match="both have the same part of /v, at time 2000-01-06 to 2000-01-07"):
        combine(paths)


def test_check_takes_the_axes_of_tiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for n, (y, x) in enumerate((y, x) for y in ((0, 40), (40, 80)) for x in ((0, 50), (50, 100))):
        write_tile(tmp_path / f"{n}.nc", y, x)
    assert main(["check", str(tmp_path), "--along", "y", "--along", "x"]) == 0
    said = capsys.readouterr().out
    assert "h5zarr combine joins them:" in said
    assert "dimension y: 80 in 2 parts" in said


def test_a_forgotten_output_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(write_days(tmp_path / f"{n}.nc", [n])) for n in range(2)]
    assert main(["combine", *paths]) == 2
    assert "1.nc: this is a file, but the last argument is OUT, such as cube.json" in capsys.readouterr().err


def test_a_container_that_holds_none_of_the_data_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("icechunk")
    monkeypatch.setattr("h5zarr.containers.icechunk.icechunk_container._is_version_1", lambda: True)
    starts = (0, 31, 59)
    paths = [
        write_days(tmp_path / f"{n}.nc", range(*starts[n : n + 2]), chunksizes=(10, 600), zlib=True) for n in range(2)
    ]
    with pytest.raises(OutputError, match="none of the data fits into this container: /v: its chunks have different"):
        combine(paths, f"icechunk+file://{tmp_path}/repository")
    assert not (tmp_path / "repository").exists()


def test_refusals_with_the_same_remedy_share_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(2):
        with netCDF4.Dataset(tmp_path / f"{number}.nc", "w") as file:
            file.createDimension("time", None)
            file.createVariable("time", "f8", ("time",))[:] = [number]
            for name in ("a", "b", "c"):
                file.createVariable(name, "f8", ())[...] = number
    assert main(["combine", str(tmp_path / "*.nc"), str(tmp_path / "cube.json")]) == 2
    said = capsys.readouterr().err
    assert said.count(" refused: its values in ") == 3
    assert said.count("Keep all with --constant along") == 1
