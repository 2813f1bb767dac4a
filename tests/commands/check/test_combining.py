"""What keeps files from being combined is named once, with the files and both values; what does not is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from h5zarr.commands.check.check import CheckReport, check
from h5zarr.commands.check.check_text import difference_text
from h5zarr.commands.check.combining import Combining, Difference, compare_files
from h5zarr.commands.check.variables import Verdict
from h5zarr.commands.combine.facts import ArrayFacts, FileFacts

SCALED = {"scale_factor": 0.5, "add_offset": 10.0, "units": "K", "_FillValue": np.int16(-1)}


def write(path: Path, *, steps: int = 4, width: int = 600, **changes: Any) -> Path:
    """Write a file with a packed variable over time and x; `changes` replace what is usual."""
    told = {
        "dtype": "<i2",
        "chunks": (2, width),
        "fillvalue": -1,
        "compression": 4,
        "shuffle": True,
        "since": "2000-01-01",
        "calendar": "standard",
        "first_x": 0.0,
        "names": ("time", "x"),
        "attributes": {},
        "without": (),
        **changes,
    }
    with h5py.File(path, "w") as file:
        time = file.create_dataset("time", data=np.arange(float(steps)), maxshape=(None,), chunks=(512,))
        time.attrs["units"] = f"days since {told['since']}"
        time.attrs["calendar"] = told["calendar"]
        x = file.create_dataset("x", data=told["first_x"] + np.arange(float(width)))
        for name, scale in (("time", time), ("x", x)):
            scale.make_scale(name)
        storage = {name: told[name] for name in ("dtype", "chunks", "fillvalue", "compression", "shuffle")}
        for name in {"v", "w"} - set(told["without"]):
            dataset = file.create_dataset(name, (steps, width), maxshape=(None, width), **storage)
            dataset[...] = 7
            for attribute, value in {**SCALED, **told["attributes"]}.items():
                if value is not None:
                    dataset.attrs[attribute] = value
            for axis, scale in enumerate(told["names"]):
                dataset.dims[axis].attach_scale(file[scale])
    return path


def combine(paths: list[Path], **choices: Any) -> Combining:
    found = check(paths, **choices).combining
    assert found is not None
    return found


def differences(tmp_path: Path, **changes: Any) -> dict[str, Difference]:
    """Return in what five files of a kind and one that is changed differ; the changed one is in their midst."""
    paths = [write(tmp_path / f"{number}.nc", **(changes if number == 2 else {})) for number in range(6)]
    found = combine(paths)
    assert found.axis.name == "time"
    for one in found.differences:
        assert one.remedy
        *_, odd = one.values
        assert odd.files == (str(paths[2]),)
    assert len({one.rule for one in found.differences}) == len(found.differences)
    return {one.rule: one for one in found.differences}


def test_files_of_a_kind_can_be_combined(tmp_path: Path) -> None:
    assert not differences(tmp_path)


def test_they_may_differ_in_length_along_the_axis(tmp_path: Path) -> None:
    assert not differences(tmp_path, steps=8)


@pytest.mark.parametrize(
    ("changes", "rule", "expected", "odd"),
    [
        ({"dtype": "<i4", "attributes": {"_FillValue": np.int32(-1)}}, "data type", "int16", "int32"),
        ({"chunks": (1, 600)}, "chunk shape", "(2, 600)", "(1, 600)"),
        ({"fillvalue": -2}, "fill value", "-1", "-2"),
        ({"attributes": {"_FillValue": np.int16(-9)}}, "_FillValue", "-1", "-9"),
        ({"attributes": {"scale_factor": 0.25}}, "scale_factor", "0.5", "0.25"),
        ({"attributes": {"scale_factor": None}}, "scale_factor", "0.5", "none"),
        ({"attributes": {"add_offset": 0.0}}, "add_offset", "10.0", "0.0"),
        ({"attributes": {"units": "degC"}}, "units", '"K"', '"degC"'),
        ({"since": "2001-01-01"}, "units", '"days since 2000-01-01"', '"days since 2001-01-01"'),
        ({"calendar": "noleap"}, "calendar", '"standard"', '"noleap"'),
        ({"without": ("w",)}, "presence", "present", "missing"),
        ({"first_x": 1.0}, "coordinate values", "0.0 to 599.0", "1.0 to 600.0"),
    ],
)
def test_each_rule(tmp_path: Path, changes: dict[str, Any], rule: str, expected: str, odd: str) -> None:
    found = differences(tmp_path, **changes)
    assert rule in found
    common, other = found[rule].values
    assert common.text.startswith(expected)
    assert other.text.startswith(odd)
    assert len(common.files) == 5
    # Integers of another width are shuffled in another way; nothing else brings company.
    assert set(found) - {rule} == ({"codecs"} if rule == "data type" else set())


def test_codecs(tmp_path: Path) -> None:
    found = differences(tmp_path, compression=9)
    assert set(found) == {"codecs"}
    common, odd = found["codecs"].values
    assert "level=4" in common.text
    assert "level=9" in odd.text
    assert "h5repack" in found["codecs"].remedy


def test_names_of_dimensions(tmp_path: Path) -> None:
    found = differences(tmp_path, steps=600, names=("x", "time"))
    assert [value.text for value in found["dimensions"].values] == ["(time, x)", "(x, time)"]


def test_lengths_of_other_dimensions(tmp_path: Path) -> None:
    found = differences(tmp_path, width=601, chunks=(2, 600))
    length = found["length of x"]
    assert [value.text for value in length.values] == ["600", "601"]
    assert set(length.paths) == {"/v", "/w", "/x"}


def test_a_last_chunk_that_is_not_full(tmp_path: Path) -> None:
    found = differences(tmp_path, steps=5)
    assert set(found) == {"last chunk"}
    (value,) = found["last chunk"].values
    assert value.text == "5 in chunks of 2"
    assert "the last chunk is partial: 5 in chunks of 2 in" in difference_text(found["last chunk"])


def test_the_last_chunk_of_the_last_file_need_not_be_full(tmp_path: Path) -> None:
    paths = [write(tmp_path / "a.nc"), write(tmp_path / "b.nc", steps=5)]
    assert combine(paths).is_possible
    assert not combine(paths[::-1]).is_possible


def test_what_is_not_joined_may_be_stored_otherwise(tmp_path: Path) -> None:
    def write_static(path: Path, chunk: int) -> Path:
        with h5py.File(write(path), "a") as file:
            file.create_dataset("mask", data=np.zeros(60_000), chunks=(chunk,), compression="gzip")
        return path

    assert combine([write_static(tmp_path / "a.nc", 10_000), write_static(tmp_path / "b.nc", 20_000)]).is_possible


def test_the_same_difference_of_several_variables_is_one(tmp_path: Path) -> None:
    found = differences(tmp_path, chunks=(1, 600))
    assert found["chunk shape"].paths == ("/v", "/w")


def test_one_odd_file_of_a_thousand_is_one_line(tmp_path: Path) -> None:
    (usual,) = check(write(tmp_path / "usual.nc")).files
    (odd,) = check(write(tmp_path / "odd.nc", attributes={"scale_factor": 0.25})).files
    files = [(f"{number:03}.nc", usual.facts) for number in range(999)]
    files.insert(500, ("odd.nc", odd.facts))
    (difference,) = compare_files(files).differences
    assert difference_text(difference) == "/v, /w: scale_factor 0.5 in 999 files, but 0.25 in odd.nc"


def test_many_values_are_cut_short(tmp_path: Path) -> None:
    names = [write(tmp_path / f"{number}.nc", since=f"200{number}-01-01") for number in range(6)]
    (difference,) = combine(names).differences
    assert len(difference.values) == 6
    assert difference_text(difference).endswith("and 2 other values in 2 files")


def test_a_variable_that_is_refused_in_one_file_is_reported(tmp_path: Path) -> None:
    paths = [write(tmp_path / "a.nc"), write(tmp_path / "b.nc", without=("w",))]
    with h5py.File(paths[1], "a") as file:
        file["w"] = np.array([np.arange(2), np.arange(3)], h5py.vlen_dtype(np.dtype("i4")))
    report = check(paths)
    assert report.combining is not None
    (difference,) = report.combining.differences
    assert [value.text for value in difference.values] == ["present", "refused"]
    assert report.files[1].count(Verdict.REFUSED) == 1


# --- the axis


def facts(unlimited: tuple[str, ...] = (), units: str = "none", **lengths: int) -> FileFacts:
    """Return a file with one variable over all dimensions, and a coordinate for each."""

    def array(names: tuple[str, ...]) -> ArrayFacts:
        shape = tuple(lengths[name] for name in names)
        meaning = dict.fromkeys(("scale_factor", "add_offset", "calendar", "_FillValue"), "none")
        return ArrayFacts(
            data_type="int8",
            shape=shape,
            dimension_names=names,
            chunk_shape=(1,) * len(shape),
            codecs="bytes",
            fill_value="0",
            meaning={**meaning, "units": units if names == ("t",) else "none"},
            is_referenced=True,
        )

    arrays = {f"/{name}": array((name,)) for name in lengths} | {"/v": array(tuple(lengths))}
    return FileFacts(arrays=arrays, unlimited=frozenset(unlimited))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([facts(("t",), t=4, x=3), facts(("t",), t=4, x=2)], "t"),
        ([facts(t=4, x=3, units='"days since 2000-01-01"'), facts(t=4, x=2, units='"days since 2000-01-01"')], "t"),
        ([facts(t=4, x=3), facts(t=4, x=2)], "x"),
        ([facts(t=4, x=3), facts(t=4, x=3)], None),
        ([facts(t=4, x=3), facts(t=5, x=2)], None),
        ([facts(("t", "x"), t=4, x=3), facts(("t", "x"), t=4, x=2)], "x"),
    ],
)
def test_the_axis_is_found(files: list[FileFacts], expected: str | None) -> None:
    found = compare_files([(str(number), one) for number, one in enumerate(files)])
    assert found.axis.name == expected
    assert found.axis.is_new is (expected is None)
    assert found.axis.reason


def test_the_axis_can_be_chosen() -> None:
    files = [("a", facts(("t",), t=4, x=3)), ("b", facts(("t",), t=4, x=2))]
    assert compare_files(files, along="x").is_possible
    assert not compare_files(files, along="t").is_possible


def test_along_a_new_axis_all_lengths_are_the_same() -> None:
    files = [("a", facts(t=4, x=3)), ("b", facts(t=5, x=3))]
    assert {one.rule for one in compare_files(files, along="member").differences} == {"length of t"}
    assert compare_files(files[:1] * 2, along="member").is_possible


# --- files that are as they are


def make_contiguous(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["v"] = np.zeros((4, 9000))


def make_oversized(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=np.zeros((4, 900)), maxshape=(None, 900), chunks=(512, 900))


@pytest.mark.parametrize("make", [make_contiguous, make_oversized])
def test_what_can_be_made_to_fit_is_no_difference(tmp_path: Path, make: Callable[[Path], None]) -> None:
    paths = [tmp_path / f"{number}.h5" for number in range(3)]
    for path in paths:
        make(path)
    report: CheckReport = check(paths)
    assert report.is_virtualisable
    assert report.files[0].variables[0].verdict is Verdict.REFERENCED
