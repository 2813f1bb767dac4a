"""Faults that are planted in cubes. Each must be found."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import h5zarr
from tests.commands.combine.test_alignment import write_grid, write_text
from tests.commands.verify import test_cubes as cubes

Refs = dict[str, Any]


def swap_files(refs: Refs) -> None:
    """Exchange the files of the first and the last chunk."""
    keys = sorted(key for key, value in refs.items() if key.startswith("v/c/") and isinstance(value, list))
    first, last = keys[0], keys[-1]
    refs[first], refs[last] = refs[last], refs[first]


def shift_positions(refs: Refs) -> None:
    """Move every chunk by one position."""
    keys = sorted(
        (key for key, value in refs.items() if key.startswith("v/c/") and isinstance(value, list)),
        key=lambda key: int(key.split("/")[2]),
    )
    values = [refs[key] for key in keys]
    for key, value in zip(keys, [*values[1:], values[0]], strict=True):
        refs[key] = value


def change_root(refs: Refs, change: Callable[[dict[str, Any]], None]) -> None:
    root = json.loads(refs["zarr.json"])
    change(root["attributes"]["_nc_record"])
    refs["zarr.json"] = json.dumps(root)


def exchange_regimes(refs: Refs) -> None:
    """Exchange the places of the two parts of a variable."""

    def change(record: dict[str, Any]) -> None:
        parts = record["joined"]["v"]["parts"]
        parts[0]["boxes"], parts[1]["boxes"] = parts[1]["boxes"], parts[0]["boxes"]

    change_root(refs, change)


def move_box(refs: Refs) -> None:
    """Exchange the places of two files in one part."""

    def change(record: dict[str, Any]) -> None:
        boxes = record["joined"]["v"]["parts"][0]["boxes"]
        boxes[0][0][1], boxes[1][0][1] = boxes[1][0][1], boxes[0][0][1]

    change_root(refs, change)


def change_scale(refs: Refs) -> None:
    """Change the scale of one file."""
    content = base64.b64decode(refs["v_scale_factor/c/0"].removeprefix("base64:"))
    scales = np.frombuffer(content, "<f4").copy()
    scales[1] *= 2
    refs["v_scale_factor/c/0"] = "base64:" + base64.b64encode(scales.tobytes()).decode()


def change_units(refs: Refs) -> None:
    """Let the times count from another day."""
    for key in ("zarr.json", "time/zarr.json"):
        refs[key] = refs[key].replace("since 2000-01-01", "since 2000-01-02")


def turn_back(refs: Refs) -> None:
    """Let square chunks of a transposed part be read as if they were not."""
    path = "_h5zarr_parts/v/1/v/zarr.json"
    array = json.loads(refs[path])
    assert array["codecs"][0]["name"] == "transpose"
    array["codecs"][0]["configuration"]["order"] = [0, 1, 2]
    refs[path] = json.dumps(array)


def change_letter(refs: Refs) -> None:
    """Change a letter of text that was padded."""
    content = base64.b64decode(refs["code/c/0/0"].removeprefix("base64:")).replace(b"00001", b"0000x")
    refs["code/c/0/0"] = "base64:" + base64.b64encode(content).decode()


def turned(directory: Path) -> tuple[list[Path], dict[str, Any]]:
    orders = [("time", "lat", "lon"), ("time", "lon", "lat")]
    how: dict[str, Any] = {"chunksizes": (1, 10, 10), "zlib": True}
    paths = [write_grid(directory / f"{n}.nc", 6 * n, orders[n], **how) for n in range(2)]
    return paths, {"max_inline_bytes": 0}


def texts(directory: Path) -> tuple[list[Path], dict[str, Any]]:
    return [write_text(directory / f"{n}.nc", 5 * n, letters) for n, letters in enumerate((6, 9))], {}


def plain(directory: Path) -> tuple[list[Path], dict[str, Any]]:
    return cubes.plain(directory), {}


FAULTS: list[tuple[cubes.Make, Callable[[Refs], None]]] = [
    (plain, swap_files),
    (plain, shift_positions),
    (cubes.parts, exchange_regimes),
    (cubes.parts, move_box),
    (cubes.packed, change_scale),
    (cubes.times, change_units),
    (turned, turn_back),
    (texts, change_letter),
]


@pytest.mark.parametrize(("make", "fault"), FAULTS, ids=[fault.__name__ for _, fault in FAULTS])
def test_a_planted_fault_is_found(make: cubes.Make, fault: Callable[[Refs], None], tmp_path: Path) -> None:
    paths, options = make(tmp_path)
    out = tmp_path / "cube.json"
    h5zarr.combine(paths, out, **options)
    assert h5zarr.verify(out).is_right
    document = json.loads(out.read_text())
    before = json.dumps(document)
    fault(document["refs"])
    assert json.dumps(document) != before
    out.write_text(json.dumps(document))
    found = h5zarr.verify(out)
    assert not found.is_right
    assert ".nc" in str(found)


def test_processes_find_the_same(tmp_path: Path) -> None:
    out = tmp_path / "cube.json"
    h5zarr.combine(cubes.plain(tmp_path), out)
    document = json.loads(out.read_text())
    swap_files(document["refs"])
    out.write_text(json.dumps(document))
    here, there = (h5zarr.verify(out, workers=count) for count in (1, 2))
    assert not here.is_right
    assert [one.to_json() for one in here.arrays] == [one.to_json() for one in there.arrays]


def test_a_file_that_is_too_short_for_its_range_is_found(tmp_path: Path) -> None:
    """netCDF extends variables to the length of an unlimited dimension, but not beyond it."""
    paths, _ = plain(tmp_path)
    h5zarr.combine(paths, tmp_path / "cube.json")
    document = json.loads((tmp_path / "cube.json").read_text())
    pieces = document["h5zarr"]["cube"]["pieces"]
    del pieces[1]
    pieces[0]["at"]["/time"] = [[0, 0, 6]]
    (tmp_path / "cube.json").write_text(json.dumps(document))
    done = h5zarr.verify(tmp_path / "cube.json")
    assert not done.is_right
    assert "length of time is 6, expected 3" in str([one.differences for one in done.arrays])
