"""Files without a common axis become one dataset if they have different variables, as with `xarray.merge`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import h5zarr
from h5zarr.cli import main
from h5zarr.errors import ArgumentError, NotJoinable
from tests.commands.combine.splitting import check_same


def write_fields(path: Path, *names: str, width: int = 600, unlimited: Any = (), **scalars: float) -> Path:
    """Write fields along x, whose values depend on their names, and scalars."""
    data = {name: ("x", np.arange(width, dtype="f4") + ord(name[0])) for name in names}
    dataset = xr.Dataset({**data, **scalars}, {"x": np.arange(width)})
    dataset.to_netcdf(path, unlimited_dims=unlimited)
    return path


def merged(paths: list[Path]) -> xr.Dataset:
    """Return what `xarray.open_mfdataset` makes of files by their coordinates."""
    how: dict[str, Any] = {"compat": "equals", "join": "exact", "combine_attrs": "override"}
    with xr.open_mfdataset(paths, combine="by_coords", engine="netcdf4", **how) as opened:
        return opened.load()


@pytest.mark.parametrize("names", [("ab", "c"), ("a", "b", "c"), ("ab", "bc")], ids=str)
@pytest.mark.parametrize("container", ["cube.json", "cube.parquet"])
def test_files_with_different_variables_and_no_axis_are_merged(
    tmp_path: Path, names: tuple[str, ...], container: str
) -> None:
    paths = [write_fields(tmp_path / f"{some}.nc", *some) for some in names]
    cube = h5zarr.combine(paths, tmp_path / container)
    assert repr(cube).startswith(f"<h5zarr.Cube of {len(names)} files: merged, ")
    assert str(cube).startswith("merged: no dimension is joined")
    assert cube.to_json()["axes"] == []
    assert {one.how for one in cube.outcomes} == {"constant"}
    with xr.open_dataset(tmp_path / container, engine="h5zarr") as opened:
        check_same(opened.load(), merged(paths))
    assert h5zarr.verify(tmp_path / container).is_right
    assert h5zarr.check(paths).is_virtualisable
    assert "merged" not in h5zarr.inspect(tmp_path / container).to_json()
    assert f"cube of {len(names)} files" in str(h5zarr.inspect(tmp_path / container))


def test_the_plan_shows_that_files_are_merged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [write_fields(tmp_path / f"{name}.nc", name) for name in "ab"]
    assert main(["combine", *map(str, paths), "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["merged: no dimension is joined", f"  {paths[0]}", f"  {paths[1]}"]


def test_one_file_without_an_axis_is_a_cube(tmp_path: Path) -> None:
    (path,) = [write_fields(tmp_path / "a.nc", "a")]
    h5zarr.combine(path, tmp_path / "cube.json")
    with xr.open_dataset(tmp_path / "cube.json", engine="h5zarr") as opened, xr.open_dataset(path) as expected:
        xr.testing.assert_identical(opened.load(), expected.load())


def test_files_with_the_same_variables_are_not_merged(tmp_path: Path) -> None:
    """They are probably members of an ensemble, even if their values are the same."""
    paths = [write_fields(tmp_path / f"{n}.nc", "a") for n in range(2)]
    with pytest.raises(NotJoinable, match="it is not clear along which dimension to join") as caught:
        h5zarr.combine(paths)
    assert caught.value.remedy == "Give along=[NAME]. The files have the dimensions x."
    with pytest.raises(ValueError, match="Could not find any dimension coordinates"):
        merged(paths)
    assert len(h5zarr.combine(paths, merge=True).outcomes) == 2


def test_files_that_disagree_are_not_merged(tmp_path: Path) -> None:
    paths = [write_fields(tmp_path / f"{name}.nc", name, level=number) for number, name in enumerate("ab")]
    what = r"They cannot be merged, either: /level: its values in .*b.nc differ from those in .*a.nc by up to 1"
    with pytest.raises(NotJoinable, match=what) as caught:
        h5zarr.combine(paths)
    assert "for example along='level': it differs between the files" in caught.value.remedy
    with pytest.raises(NotJoinable, match=r"/level: its values in .*b.nc differ from those in .*a.nc by up to 1"):
        h5zarr.combine(paths, merge=True)
    assert h5zarr.combine(paths, merge=True, constant="first").axes == ()
    with pytest.raises(NotJoinable, match="it differs between files, but gets an axis only if files are joined along"):
        h5zarr.combine(paths, merge=True, constant="along")


def test_other_grids_are_not_merged(tmp_path: Path) -> None:
    paths = [write_fields(tmp_path / "a.nc", "a"), write_fields(tmp_path / "b.nc", "b")]
    with xr.open_dataset(paths[1]) as other:
        moved = other.load().assign_coords(x=other.x + 0.5)
    moved.to_netcdf(paths[1])
    with pytest.raises(NotJoinable, match=r"They cannot be merged, either: /x: its values in .*b.nc differ"):
        h5zarr.combine(paths)


def test_merge_leaves_an_unlimited_dimension_alone(tmp_path: Path) -> None:
    """Without a coordinate, files would follow each other along it."""
    for name in "ab":
        data = xr.Dataset({name: ("obs", np.arange(600.0))})
        data.to_netcdf(tmp_path / f"{name}.nc", unlimited_dims=["obs"])
    paths = sorted(tmp_path.glob("*.nc"))
    assert h5zarr.combine(paths).axes[0].length == 1200
    h5zarr.combine(paths, tmp_path / "cube.json", merge=True)
    with xr.open_dataset(tmp_path / "cube.json", engine="h5zarr") as opened:
        check_same(opened.load(), merged(paths))
    assert main(["combine", *map(str, paths), str(tmp_path / "cli.json"), "--merge", "--quiet"]) == 0
    with xr.open_dataset(tmp_path / "cli.json", engine="h5zarr") as opened:
        check_same(opened.load(), merged(paths))


def test_a_merged_dataset_and_others_of_its_kind_are_joined(tmp_path: Path) -> None:
    for run in range(2):
        paths = [write_fields(tmp_path / f"{run}{name}.nc", name, run=run) for name in "ab"]
        h5zarr.combine(paths, tmp_path / f"{run}.json", merge=True)
    h5zarr.combine(str(tmp_path / "?.json"), tmp_path / "cube.json", along="run")
    with xr.open_dataset(tmp_path / "cube.json", engine="h5zarr") as opened:
        assert dict(opened.sizes) == {"run": 2, "x": 600}
        assert opened.run.values.tolist() == [0, 1]
    assert h5zarr.verify(tmp_path / "cube.json").is_right


def test_merge_and_along_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="merge=True joins no dimension, but along names one"):
        h5zarr.combine(write_fields(tmp_path / "a.nc", "a"), along="x", merge=True)
