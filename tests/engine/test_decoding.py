"""One variable that xarray cannot decode, or that cannot be read, costs itself at most: all others open as usual."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

import h5zarr
from h5zarr.errors import ProblemWarning, SourceError
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Manifest
from tests.collections_of_files import any_samples, translatable_shared
from tests.containers.hierarchies import LITTLE, with_hierarchy
from tests.engine.opening import Opened

RECORD = np.dtype([("a", "<i4"), ("b", "<f8")])
DAYS = "days since 2000-01-01"
NUMBERS = np.array([1, 2, 3], "i2")
TEXTS = np.array([b"a", b"bc", b"def"])
# By name: values, attributes, and which of these xarray cannot use. Everything else is decoded.
ODD: dict[str, tuple[Any, dict[str, Any], set[str]]] = {
    "text_scale": (NUMBERS, {"scale_factor": "0.1", "units": "m"}, {"scale_factor", "units"}),
    "vector_scale": (NUMBERS, {"scale_factor": np.array([0.1, 0.2])}, {"scale_factor"}),
    "empty_scale": (NUMBERS, {"scale_factor": np.zeros(0)}, {"scale_factor"}),
    "complex_offset": (NUMBERS, {"add_offset": np.complex64(1j)}, {"add_offset"}),
    "text_offset": (NUMBERS, {"scale_factor": 0.1, "add_offset": "x"}, {"scale_factor", "add_offset"}),
    "scaled_text": (TEXTS, {"scale_factor": 0.1}, {"scale_factor"}),
    "scaled_record": (np.zeros(3, RECORD), {"add_offset": 1.0}, {"add_offset"}),
    "packed_time": (NUMBERS, {"scale_factor": "x", "units": DAYS}, {"scale_factor", "units"}),
    "record_fill": (np.zeros(3, RECORD), {"_FillValue": np.zeros((), RECORD)}, {"_FillValue"}),
    "record_missing": (np.zeros(3, RECORD), {"missing_value": np.zeros((), RECORD)}, {"missing_value"}),
    "record_fill_of_packed": (
        np.zeros(3, RECORD),
        {"_FillValue": np.zeros((), RECORD), "scale_factor": 2.0},
        {"_FillValue", "scale_factor"},
    ),
    "unsigned": (NUMBERS, {"_Unsigned": np.array([1, 2]), "scale_factor": 0.1}, {"_Unsigned", "scale_factor"}),
    "no_date": (NUMBERS, {"units": "days since forever"}, {"units"}),
    "no_such_day": (NUMBERS, {"units": "days since 2000-13-45"}, {"units"}),
    "no_unit": (NUMBERS, {"units": "fortnights since 2000-01-01", "_FillValue": np.int16(2)}, {"units"}),
    "months": (NUMBERS, {"units": "months since 2000-01-01"}, {"units"}),
    "no_calendar": (NUMBERS, {"units": DAYS, "calendar": "moon"}, {"units", "calendar"}),
    "text_with_date": (TEXTS, {"units": DAYS}, {"units"}),
    "number_as_coordinates": (NUMBERS, {"coordinates": 5}, {"coordinates"}),
    "texts_as_coordinates": (NUMBERS, {"coordinates": ["x", "good"]}, {"coordinates"}),
    "vector_dtype": (NUMBERS, {"dtype": np.array([1, 2])}, {"dtype"}),
    "vector_bounds": (NUMBERS, {"units": DAYS, "bounds": np.array([1, 2])}, {"bounds"}),
    "encoded_number": (NUMBERS, {"_Encoding": "utf-8"}, {"_Encoding"}),
    "no_encoding": (np.array([b"a", b"b", b"c"]), {"_Encoding": "klingon"}, {"_Encoding"}),
}


def make_file(path: Path, odd: dict[str, tuple[Any, dict[str, Any], set[str]]]) -> Path:
    """Write good variables and odd ones, along one dimension."""
    with h5py.File(path, "w", track_order=True) as file:
        scale = file.create_dataset("x", data=[10.0, 20.0, 30.0])
        scale.make_scale("x")
        good = {"good": NUMBERS, "time": NUMBERS, **{name: values for name, (values, _, _) in odd.items()}}
        for name, values in good.items():
            file.create_dataset(name, data=values).dims[0].attach_scale(scale)
        file["good"].attrs["_FillValue"], file["good"].attrs["scale_factor"] = np.int16(2), 0.5
        file["time"].attrs["units"] = DAYS
        for name, (_, attributes, _) in odd.items():
            for key, value in attributes.items():
                file[name].attrs[key] = value
    return path


def check_good(opened: xr.Dataset) -> None:
    np.testing.assert_array_equal(opened.good, [0.5, np.nan, 1.5])
    assert opened.time.dtype.kind == "M"
    assert opened.x.values.tolist() == [10.0, 20.0, 30.0]


def problems_of(caught: Any) -> list[str]:
    return [str(one.message) for one in caught if one.category is ProblemWarning]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_file(tmp_path_factory.mktemp("odd") / "odd.h5", ODD)


@pytest.mark.parametrize("form", ["file", "version 3", "version 2"])
def test_all_odd_variables_together_cost_only_themselves(form: str, everything: Path, tmp_path: Path) -> None:
    source = everything
    if form != "file":
        source = tmp_path / "refs.json"
        h5zarr.translate(everything, source, zarr_format=int(form[-1]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        opened = xr.open_dataset(source, engine="h5zarr", decode_timedelta=False)
    with opened:
        check_good(opened)
        assert opened.variables.keys() == {"x", "good", "time", *ODD}
        found = problems_of(caught)
        assert all(sum(f":/{name}: xarray cannot decode it" in one for one in found) == 1 for name in ODD)
        assert len(found) == len(ODD)
        for name, (values, attributes, unused) in ODD.items():
            variable = opened[name]
            variable.load()
            assert unused <= variable.attrs.keys(), name
            for key in unused:
                np.testing.assert_array_equal(variable.attrs[key], attributes[key])
                assert np.asarray(variable.attrs[key]).dtype.kind == np.asarray(attributes[key]).dtype.kind, (name, key)
            assert not (attributes.keys() - unused) & variable.attrs.keys(), name
            if unused == attributes.keys() and values.dtype.kind != "S":
                np.testing.assert_array_equal(variable, values)


@pytest.mark.parametrize("name", ODD)
def test_the_warning_names_the_variable_and_the_attributes(name: str, tmp_path: Path) -> None:
    path = make_file(tmp_path / "odd.h5", {name: ODD[name]})
    with pytest.warns(ProblemWarning) as caught, xr.open_dataset(path, engine="h5zarr") as opened:
        check_good(opened)
    (found,) = problems_of(caught)
    assert found.startswith(f"{path}:/{name}: xarray cannot decode it (")
    assert all(f"{key} " in found.partition("it is decoded without ")[2] for key in ODD[name][2])
    assert "Decode it yourself if you need the decoded values." in found
    assert caught[0].filename == __file__


@pytest.mark.parametrize("name", sorted(ODD.keys() - {"vector_dtype"}))  # xarray always decodes `dtype`
def test_nothing_is_reported_that_is_not_decoded(name: str, tmp_path: Path) -> None:
    path = make_file(tmp_path / "odd.h5", {name: ODD[name]})
    with xr.open_dataset(path, engine="h5zarr", decode_cf=False) as opened:
        assert opened[name].attrs.keys() == ODD[name][1].keys()
    with xr.open_dataset(path, engine="h5zarr", drop_variables=[name]) as opened:
        check_good(opened)


def test_attributes_that_a_variable_gets_from_another_cost_only_itself(tmp_path: Path) -> None:
    path = make_file(tmp_path / "odd.h5", {"edges": (TEXTS, {}, set())})
    with h5py.File(path, "a") as file:
        file["time"].attrs["bounds"] = "edges"
    what = ":/edges: xarray cannot decode it as the bounds of 'time' .* decoded as an ordinary variable"
    with pytest.warns(ProblemWarning, match=what):
        opened = xr.open_dataset(path, engine="h5zarr")
    check_good(opened)
    assert opened.edges.values.tolist() == ["a", "bc", "def"]
    assert opened.time.attrs == {"bounds": "edges"}
    opened.close()


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_what_h5zarr_writes_does_not_stop_the_zarr_engine(zarr_format: int, everything: Path, tmp_path: Path) -> None:
    refs = tmp_path / "refs.json"
    h5zarr.translate(everything, refs, zarr_format=zarr_format)
    options = {"storage_options": {"fo": str(refs)}, "decode_timedelta": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opened = xr.open_dataset("reference://", engine="zarr", decode_times=False, **options)
    with opened:
        np.testing.assert_array_equal(opened.good, [0.5, np.nan, 1.5])
        assert opened.variables.keys() == {"x", "good", "time", *ODD}
    cannot_be_decoded = ["no_date", "no_such_day", "no_unit", "months", "no_calendar", "text_with_date"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opened = xr.open_dataset("reference://", engine="zarr", drop_variables=cannot_be_decoded, **options)
    with opened:
        check_good(opened)


# --- coordinates, which xarray reads when it opens a dataset


def make_coordinate(path: Path, values: Any, **attributes: Any) -> Path:
    with h5py.File(path, "w") as file:
        scale = file.create_dataset("t", data=values, chunks=(2,), compression="gzip")
        scale.make_scale("t")
        scale.attrs.update(attributes)
        file.create_dataset("v", data=np.arange(len(values))).dims[0].attach_scale(scale)
        file.create_dataset("good", data=[1.0, 2.0])
    return path


def test_a_coordinate_with_a_broken_chunk_is_left_out(tmp_path: Path) -> None:
    path = make_coordinate(tmp_path / "broken.h5", np.arange(4.0))
    with h5py.File(path) as file:
        chunk = file["t"].id.get_chunk_info(1)
    with path.open("r+b") as raw:
        raw.seek(chunk.byte_offset)
        raw.write(b"x" * chunk.size)
    h5zarr.translate(path, tmp_path / "refs.json", inline_bytes=0)
    for source in (path, tmp_path / "refs.json"):
        with pytest.warns(ProblemWarning, match=":/t: .*; the variable is left out"):
            opened = xr.open_dataset(source, engine="h5zarr")
        assert set(opened.variables) == {"v", "good"}
        assert opened.v.values.tolist() == [0, 1, 2, 3]
        opened.close()
        with xr.open_dataset(source, engine="h5zarr", drop_variables="t") as opened:  # without any warning
            assert set(opened.variables) == {"v", "good"}


def test_a_coordinate_with_impossible_times_is_not_decoded(tmp_path: Path) -> None:
    path = make_coordinate(tmp_path / "times.h5", [0.0, 1e300, 1.0, 2.0], units=DAYS)
    with pytest.warns(ProblemWarning, match=f":/t: .* without units '{DAYS}'"):
        opened = xr.open_dataset(path, engine="h5zarr")
    assert opened.t.values.tolist() == [0.0, 1e300, 1.0, 2.0]
    assert opened.t.attrs == {"units": DAYS}
    assert opened.sel(t=1e300).v == 1
    opened.close()


def test_a_source_that_is_gone_is_an_error_and_no_warning(tmp_path: Path) -> None:
    path = make_coordinate(tmp_path / "gone.h5", np.arange(4.0))
    h5zarr.translate(path, tmp_path / "refs.json", inline_bytes=0)
    path.unlink()
    with pytest.raises(SourceError, match=r"gone\.h5"):
        xr.open_dataset(tmp_path / "refs.json", engine="h5zarr")


def test_a_variable_whose_dimension_has_another_length_is_left_out(tmp_path: Path) -> None:
    path = make_coordinate(tmp_path / "sizes.h5", np.arange(4.0))
    h5zarr.translate(path, tmp_path / "refs.json", zarr_format=2)
    document = json.loads((tmp_path / "refs.json").read_text())
    document["refs"]["good/.zattrs"] = json.dumps({"_ARRAY_DIMENSIONS": ["t"]})
    (tmp_path / "refs.json").write_text(json.dumps(document))
    with pytest.warns(ProblemWarning, match=r":/(t|v|good): dimension 't' has length \d, but \d in another variable"):
        opened = xr.open_dataset(tmp_path / "refs.json", engine="h5zarr")
    assert opened.variables
    opened.close()


# --- every file


def plant(nodes: dict[str, Any]) -> Iterator[tuple[str, ArrayNode]]:
    """Return an array for each group, with attributes that xarray cannot decode."""
    none = np.empty(0, np.int64)
    attributes = {"scale_factor": "text", "_FillValue": {"a": 1}, "coordinates": 5, "units": "days since forever"}
    for path, node in nodes.items():
        if isinstance(node, GroupNode):
            yield (
                f"{path.rstrip('/')}/planted",
                ArrayNode(
                    grid=RegularGrid((1,), (1,)),
                    data_type="int16",
                    codecs=(LITTLE,),
                    fill_value=7,
                    dimension_names=("planted_dimension",),
                    attributes=attributes,
                    manifest=Manifest(index=np.empty((0, 1), np.int64), address=none, nbytes=none),
                ),
            )


def check_file(path: Path) -> None:
    """Fail unless every group opens with all of its variables, but for those that are named."""
    translation = h5zarr.translate(path)
    nodes = dict(translation.hierarchy.nodes)
    planted = dict(plant(nodes))
    opened = Opened(with_hierarchy(translation, replace(translation.hierarchy, nodes={**nodes, **planted})), str(path))
    for group in [name for name, node in nodes.items() if isinstance(node, GroupNode)]:
        prefix = group.rstrip("/") + "/"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dataset = opened.open(group, decode_timedelta=False)
        named = {one.removeprefix("references:").partition(": ")[0] for one in problems_of(caught)}
        assert f"{prefix}planted" in named
        assert dataset["planted"].values.tolist() == [7]
        arrays = [one for one, node in nodes.items() if isinstance(node, ArrayNode)]
        inside = {one for one in arrays if one.rpartition("/")[0] == group.rstrip("/")}
        assert inside - named <= {f"{prefix}{name}" for name in dataset.variables}


@pytest.mark.parametrize("path", any_samples())
def test_an_odd_variable_stops_no_sample_from_opening(path: Path) -> None:
    check_file(path)


@pytest.mark.parametrize("path", translatable_shared("corpus"))
def test_an_odd_variable_stops_no_real_file_from_opening(path: Path) -> None:
    check_file(path)


@pytest.mark.parametrize("path", translatable_shared("traps"))
def test_an_odd_variable_stops_no_trap_from_opening(path: Path) -> None:
    check_file(path)
