"""Inspecting cubes: axes, pieces, parts, parameters, and chunks of different lengths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import h5zarr
from h5zarr.commands.combine.combine import combine
from h5zarr.containers.cube_layout import CubeLayout
from h5zarr.containers.layout_text import axis_lines, piece_lines
from h5zarr.containers.piece_columns import CubePieceState
from tests.commands.combine.files import write_days

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
PLAIN = """\
{folder}/cube.json
  references in a JSON file, written by h5zarr {version}
  cube of 2 files:
    dimension time: 6 in 2 parts
      {folder}/a.nc: time 0 to 2
      {folder}/b.nc: time 3 to 5
  dimensions:
    time = 6 (UNLIMITED)
    x    = 600
  variables:
    time  float64  (time=6)         inlined 48 bytes
        units    = "days since 2000-01-01"
        calendar = "standard"
    x     float64  (x=600)          inlined 4.80 kB · fill 9.96921e+36
    v     float32  (time=6, x=600)  chunks (1, 600) · 6 of 6 · 14.4 kB · fill 9.96921e+36

3 variables in 1 group, 6 chunks referenced, 2 inlined, 0 missing"""


def shown(paths: list[Path], out: Path, **options: Any) -> list[str]:
    """Return what `h5zarr inspect` says about the cube of some files."""
    combine(paths, out, along=options.pop("along", "time"))
    return str(h5zarr.inspect(out, **options)).splitlines()


def test_a_cube_shows_its_axes_and_its_files(tmp_path: Path) -> None:
    how = {"chunksizes": (1, 600)}
    paths = [write_days(tmp_path / "b.nc", [3, 4, 5], **how), write_days(tmp_path / "a.nc", [0, 1, 2], **how)]
    lines = shown(paths, tmp_path / "cube.json")
    assert "\n".join(lines).partition(" · a file of")[0] == PLAIN.format(folder=tmp_path, version=h5zarr.__version__)
    found = h5zarr.inspect(tmp_path / "cube.json")
    assert repr(found).endswith("cube.json: cube of 2 files, 3 variables, 0 problems>")


@pytest.mark.parametrize("name", ["cube.json.gz", "cube.parquet", "icechunk+file://cube"])
def test_a_cube_in_any_container(name: str, tmp_path: Path) -> None:
    how = {"chunksizes": (1, 600)}
    paths = [write_days(tmp_path / f"{day}.nc", [day], **how) for day in range(3)]
    out = name.replace("//", f"//{tmp_path}/") if "//" in name else tmp_path / name
    lines = str(h5zarr.inspect(_combined(paths, out))).splitlines()
    assert lines[2:5] == ["  cube of 3 files:", "    dimension time: 3 in 3 parts", f"      {tmp_path}/0.nc: time 0"]


def _combined(paths: list[Path], out: Any) -> Any:
    combine(paths, out, along="time")
    return out


def test_a_variable_of_parts_is_one_variable(tmp_path: Path) -> None:
    how = {"chunksizes": (2, 600)}
    paths = [
        write_days(tmp_path / "a.nc", [0, 1], **how, attributes={"units": "K"}),
        write_days(tmp_path / "b.nc", [2, 3], dtype="i4", **how, attributes={"units": "K", "scale_factor": 2.0}),
        write_days(tmp_path / "c.nc", [4, 5], **how, attributes={"units": "K"}),
    ]
    lines = shown(paths, tmp_path / "cube.json")
    start = next(number for number, line in enumerate(lines) if line.startswith("    v "))
    expected = '    v     float32, int32  (time=6, x=600)  2 parts, which engine="h5zarr" joins'
    assert lines[start] == expected
    assert lines[start + 1 : start + 7] == [
        "        part 0, float32: time 0 to 1, 4 to 5",
        "            chunks (2, 600) · 2 of 2 · 9.60 kB · fill 9.96921e+36",
        "        part 1, int32: time 2 to 3",
        "            chunks (2, 600) · 1 of 1 · 4.80 kB · fill -2147483647",
        "            scale_factor = 2.0",
        '        units = "K"',
    ]
    assert not any("_h5zarr_parts" in line for line in lines)
    assert lines[-1].startswith("3 variables in 1 group, 3 chunks referenced")
    everything = h5zarr.inspect(tmp_path / "cube.json").lines(all=True)
    assert "        part 1, int32: time 2 to 3, in _h5zarr_parts/v/1/v" in everything
    assert "part 0" in str(h5zarr.inspect(tmp_path / "cube.json", path="v"))
    with pytest.raises(h5zarr.H5ZarrError, match="nothing matches /_h5zarr_parts"):
        h5zarr.inspect(tmp_path / "cube.json", path="/_h5zarr_parts").lines()


def test_many_parts_are_shortened(tmp_path: Path) -> None:
    types = ("i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8")
    paths = [
        write_days(tmp_path / f"{day}.nc", [day], dtype=dtype, chunksizes=(1, 300)) for day, dtype in enumerate(types)
    ]
    lines = shown(paths, tmp_path / "cube.json")
    assert any("int8, uint8, int16, …" in line for line in lines)
    assert "        … 2 more parts (use all=True)" in lines
    assert sum(line.startswith("        part ") for line in lines) == 6


def test_parts_of_tiles_say_where_they_are(tmp_path: Path) -> None:
    names = []
    for number, (y, x) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        names.append(tmp_path / f"{number}.h5")
        with h5py.File(names[-1], "w") as file:
            for name, at in (("y", y), ("x", x)):
                file[name] = np.arange(40.0) + 40 * at
                file[name].make_scale(name)
            values = file.create_dataset("v", data=np.ones((40, 40), "f4" if number < 3 else "f8"), chunks=(20, 20))
            for axis, name in enumerate(("y", "x")):
                values.dims[axis].attach_scale(file[name])
    lines = shown(names, tmp_path / "cube.json", along=["y", "x"])
    assert lines[3:6] == [
        "    dimension y: 80 in 2 parts",
        "    dimension x: 80 in 2 parts",
        f"      {tmp_path}/0.h5: y 0 to 39, x 0 to 39",
    ]
    assert "        part 0, float32: y 0 to 39, x 0 to 39 and 2 more" in lines
    assert "        part 1, float64: y 40 to 79, x 40 to 79" in lines


def test_parameters_are_shown_with_their_variable(tmp_path: Path) -> None:
    paths = [
        write_days(
            tmp_path / f"{day}.nc", [day], dtype="i2", chunksizes=(1, 600), attributes={"scale_factor": 1.0 + day}
        )
        for day in range(2)
    ]
    lines = shown(paths, tmp_path / "cube.json")
    assert "        one per file: scale_factor in v_scale_factor" in lines
    assert not any(line.startswith("    v_scale_factor") for line in lines)
    assert lines[-1].startswith("3 variables and 1 parameter in 1 group")
    everything = h5zarr.inspect(tmp_path / "cube.json").lines(all=True)
    assert any(line.startswith("    v_scale_factor  float64") for line in everything)
    assert "v_scale_factor  float64" in str(h5zarr.inspect(tmp_path / "cube.json", path="v_scale_factor"))
    described = h5zarr.inspect(tmp_path / "cube.json").to_json()["datasets"]
    assert described["/v"]["parameters"] == {"scale_factor": "/v_scale_factor"}
    assert "/v_scale_factor" in described


def test_chunks_of_different_lengths(tmp_path: Path) -> None:
    paths = [
        write_days(tmp_path / "a.nc", list(range(5)), chunksizes=(2, 600), zlib=True),
        write_days(tmp_path / "b.nc", list(range(5, 8)), chunksizes=(2, 600), zlib=True),
    ]
    lines = shown(paths, tmp_path / "cube.json")
    (line,) = [line for line in lines if "chunks (" in line]
    assert "chunks (1 to 2, 600), stored as (2, 600) · 5 of 5 · " in line
    layout = h5zarr.inspect(tmp_path / "cube.json").to_json()["datasets"]["/v"]["layout"]
    assert layout["chunk_shape"] is None
    assert layout["chunk_grid"]["configuration"]["chunk_shapes"] == [[[2, 2], 1, [2, 2]], [[600, 1]]]


def test_only_the_first_and_last_of_many_files_are_shown(tmp_path: Path) -> None:
    paths = [write_days(tmp_path / f"{day:02}.nc", [day]) for day in range(13)]
    lines = shown(paths, tmp_path / "cube.json")
    assert lines[2:4] == ["  cube of 13 files:", "    dimension time: 13 in 13 parts"]
    assert lines[8:11] == [
        f"      {tmp_path}/04.nc: time 4",
        "      … 3 more",
        f"      {tmp_path}/08.nc: time 8",
    ]
    assert sum(".nc: time" in line for line in lines) == 10
    everything = h5zarr.inspect(tmp_path / "cube.json").lines(all=True)
    assert sum(".nc: time" in line for line in everything) == 13


def test_groups_of_a_cube_have_their_own_axes(tmp_path: Path) -> None:
    for number in range(2):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            for place, length in (("/", 2), ("/g", 3)):
                time = file.create_dataset(
                    f"{place}/time", data=np.arange(length) + number * length, maxshape=(None,), chunks=(1,)
                )
                time.make_scale("time")
                values = file.create_dataset(
                    f"{place}/v", data=np.ones((length, 200)), maxshape=(None, 200), chunks=(1, 200)
                )
                values.dims[0].attach_scale(time)
    lines = shown([tmp_path / "0.h5", tmp_path / "1.h5"], tmp_path / "cube.json")
    assert lines[3:6] == [
        "    dimension time: 4 in 2 parts",
        "    dimension g/time: 6 in 2 parts",
        f"      {tmp_path}/0.h5: time 0 to 1, g/time 0 to 2",
    ]
    assert "group: /g" in lines
    assert "    time        = 6 (UNLIMITED)" in lines


def test_the_layout_of_a_cube_in_words() -> None:
    url = "https://user:hunter2@host/a.nc?token=secret"
    ranges = tuple((2 * number, number, 1) for number in range(7))
    layout = CubeLayout(
        axes={"/time": 14},
        pieces=(CubePieceState(url=url, at={"/time": ranges}), CubePieceState(url="b.nc", at={})),
    )
    assert list(axis_lines(layout)) == ["dimension time: 14 in 7 parts"]
    assert list(piece_lines(layout, 1)) == [
        "https://host/a.nc: time 0, 2, 4, 6, 8 and 2 more",
        "b.nc: no part of an axis",
    ]


def test_secrets_in_the_urls_of_a_cube_are_not_shown(tmp_path: Path) -> None:
    write_days(tmp_path / "a.nc", [0], chunksizes=(1, 600))
    cube = _combined([tmp_path / "a.nc"], tmp_path / "cube.json")
    secret = f"https://user:hunter2@host{tmp_path}/a.nc?X-Amz-Signature=zebra"
    cube.write_text(cube.read_text().replace(str(tmp_path / "a.nc"), secret))
    found = h5zarr.inspect(cube)
    for text in (str(found), repr(found), repr(found.file), json.dumps(found.to_json())):
        assert "hunter2" not in text
        assert "zebra" not in text
    assert f"https://host{tmp_path}/a.nc: time 0" in str(found)
