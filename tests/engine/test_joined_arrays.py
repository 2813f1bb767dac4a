"""Variables of several arrays: what is read, what is pickled, and records that do not fit the arrays."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import h5zarr
from h5zarr.engine.joined_arrays import decode_with_parameters
from h5zarr.errors import MalformedFile, ProblemWarning
from tests.commands.combine.files import concatenated, write_days


def make_parts(folder: Path, **odd: Any) -> tuple[Path, xr.Dataset]:
    """Write a cube of three files, of which the second is stored differently; return it, and what xarray shows."""
    how: dict[str, Any] = {"chunksizes": (1, 600), "zlib": True}
    paths = [
        write_days(folder / f"{n}.nc", range(3 * n, 3 * n + 3), **(how | (odd if n == 1 else {}))) for n in range(3)
    ]
    h5zarr.combine(paths, folder / "cube.json", max_inline_bytes=0)
    return folder / "cube.json", concatenated(paths)


@pytest.fixture(scope="module")
def cube(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, xr.Dataset]:
    return make_parts(tmp_path_factory.mktemp("cube"), dtype="f8", chunksizes=(2, 100))


KEYS = st.one_of(
    st.integers(0, 8),
    st.slices(9).filter(lambda one: one.step is None or one.step > 0),
    st.lists(st.integers(0, 8), max_size=6),
)


@settings(max_examples=100, deadline=None)
@given(time=KEYS, x=st.one_of(st.integers(0, 599), st.just(slice(None)), st.just([5, 3, 599])))
def test_any_selection_is_that_of_the_whole(cube: tuple[Path, xr.Dataset], time: Any, x: Any) -> None:
    path, expected = cube
    with xr.open_dataset(path, engine="h5zarr") as opened:
        found = opened["v"].isel(time=time, x=x)
        np.testing.assert_array_equal(found.values, expected["v"].isel(time=time, x=x).values)


def test_a_joined_variable_pickles_and_has_the_chunks_of_its_parts(cube: tuple[Path, xr.Dataset]) -> None:
    path, expected = cube
    with xr.open_dataset(path, engine="h5zarr", chunks={}) as opened:
        assert opened["v"].chunks is not None
        assert opened["v"].chunks[0] == (1,) * 9
        xr.testing.assert_equal(opened.compute(scheduler="sync"), expected)
        again = pickle.loads(pickle.dumps(opened["v"]))
        np.testing.assert_array_equal(again.values, expected["v"].values)


def test_a_joined_variable_is_written_with_all_of_its_values(cube: tuple[Path, xr.Dataset], tmp_path: Path) -> None:
    path, expected = cube
    with xr.open_dataset(path, engine="h5zarr") as opened:
        opened.to_netcdf(tmp_path / "copy.nc")
    with xr.open_dataset(tmp_path / "copy.nc") as copy:
        np.testing.assert_array_equal(copy["v"].values, expected["v"].values)


def change_record(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the record of the root's joined variables."""
    document = json.loads(path.read_text())
    root = json.loads(document["refs"]["zarr.json"])
    change(root["attributes"]["_nc_record"]["joined"]["v"])
    document["refs"]["zarr.json"] = json.dumps(root)
    path.write_text(json.dumps(document))


def lose_part(record: dict[str, Any]) -> None:
    record["parts"][1]["path"] = "_h5zarr_parts/v/9/v"


def lengthen_part(record: dict[str, Any]) -> None:
    record["parts"][1]["boxes"] = [[[3, 2, 3]]]


def take_coordinate(record: dict[str, Any]) -> None:
    record["parts"][1]["path"] = "x"


def lose_all(record: dict[str, Any]) -> None:
    record["parts"] = []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lose_part, "a part of it, /_h5zarr_parts/v/9/v, is missing"),
        (lengthen_part, "a part of a joined variable is shorter than the record says"),
        (take_coordinate, "the parts of a joined variable have different dimensions"),
        (lose_all, "it has no parts"),
    ],
)
def test_a_record_that_does_not_fit_costs_one_variable(
    change: Callable[[dict[str, Any]], None], what: str, tmp_path: Path
) -> None:
    path, expected = make_parts(tmp_path, shuffle=False)
    change_record(path, change)
    with pytest.warns(ProblemWarning, match=what):
        opened = xr.open_dataset(path, engine="h5zarr")
    assert set(opened.variables) == {"time", "x"}
    np.testing.assert_array_equal(opened["time"].values, expected["time"].values)


def test_parts_of_different_shapes_are_refused(tmp_path: Path) -> None:
    path, _ = make_parts(tmp_path, shuffle=False)
    document = json.loads(path.read_text())
    for key in ("_h5zarr_parts/v/1/v/zarr.json", "zarr.json"):
        node = json.loads(document["refs"][key])
        one = node if "shape" in node else node["consolidated_metadata"]["metadata"]["_h5zarr_parts/v/1/v"]
        one["shape"] = [3, 599]
        document["refs"][key] = json.dumps(node)
    path.write_text(json.dumps(document))
    said = "the parts of a joined variable have different shapes"
    with pytest.warns(ProblemWarning, match=said), xr.open_dataset(path, engine="h5zarr") as opened:
        assert "v" not in opened


def test_parameters_that_are_missing_cost_one_variable(tmp_path: Path) -> None:
    scales = [{"attributes": {"scale_factor": 0.5 + n}} for n in range(2)]
    paths = [write_days(tmp_path / f"{n}.nc", [n], dtype="i2", **scales[n]) for n in range(2)]
    h5zarr.combine(paths, tmp_path / "cube.json")
    document = json.loads((tmp_path / "cube.json").read_text())
    root = json.loads(document["refs"]["zarr.json"])
    parameters = root["attributes"]["_nc_record"]["variables"]["v"]["parameters"]
    assert parameters == {"scale_factor": "v_scale_factor"}
    parameters["scale_factor"] = "none"
    document["refs"]["zarr.json"] = json.dumps(root)
    (tmp_path / "cube.json").write_text(json.dumps(document))
    with pytest.warns(ProblemWarning, match="the values of scale_factor, which should be in none, are missing"):
        xr.open_dataset(tmp_path / "cube.json", engine="h5zarr").close()


def test_parameters_of_another_length_are_refused() -> None:
    stored = xr.Variable(("time",), np.arange(3))
    with pytest.raises(MalformedFile, match="the values of scale_factor are not one for each element of the axis"):
        decode_with_parameters(stored, 0, {"scale_factor": np.ones(2)}, lambda variable: variable)
