"""Many files are joined in batches, with the same result and without keeping what is known about each of them."""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import h5zarr
from h5zarr.commands.combine import plan
from h5zarr.containers.parquet.parquet_container import ParquetContainer
from h5zarr.errors import OutputError, PackageMissing
from tests.commands.combine.files import write_days
from tests.commands.combine.splitting import FileForm, expected, file_forms, write_split
from tests.commands.combine.test_splitting import check_same
from tests.commands.index.jobs import PROJECT, environment

pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.filterwarnings("ignore:variable .* has multiple fill values")  # xarray, about missing_value


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory for temporary files."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path / "tmp"


@pytest.mark.parametrize("out", ["cube.json", "cube.parquet"])
def test_any_files_are_joined_in_batches_as_at_once(out: str) -> None:
    check_batches(out, max_examples=8, derandomize=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("out", ["cube.json", "cube.parquet"])
def test_many_sets_of_files_are_joined_in_batches_as_at_once(out: str, seed: int) -> None:
    check_batches(out, max_examples=200, derandomize=False)


def check_batches(out: str, **how: Any) -> None:
    """Join random files two at a time, in a random order, and compare the result with the whole."""

    @settings(**how, deadline=None, database=None, suppress_health_check=[*HealthCheck])
    @given(
        st.one_of(*[st.lists(file_forms(varied=varied), min_size=5, max_size=7) for varied in (True, False)]),
        st.randoms(use_true_random=False),
    )
    def check(forms: list[FileForm], random: Any) -> None:
        with tempfile.TemporaryDirectory() as name:
            paths = write_split(Path(name), forms)
            check_joined(paths, random.sample(paths, len(paths)), Path(name) / out)

    check()


def check_joined(paths: list[Path], order: list[Path], out: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "BATCH", 2)
        cube = h5zarr.combine(order, out)
    assert cube.spool is not None
    assert cube.provenance.cube is not None
    assert [piece.url for piece in cube.provenance.cube.pieces] == [str(path) for path in paths]
    with xr.open_dataset(out, engine="h5zarr") as opened:
        check_same(opened.load(), expected(paths))
    verification = h5zarr.verify(out)
    assert verification.is_right, str(verification)


def test_packed_times_that_some_files_lack(tmp_path: Path) -> None:
    """Their packing is a parameter of each file, in a part."""
    units = "days since 2000-01-05 12:00"
    lacks = FileForm(has_flag=False)
    forms = [lacks, FileForm(seen_packing=(0.001, -3.5), units=units), lacks, lacks]
    paths = write_split(tmp_path, [*forms, FileForm(seen_packing=(0.5, 100.0), units=units)])
    check_joined(paths, [paths[number] for number in (3, 4, 0, 1, 2)], tmp_path / "cube.json")


@pytest.fixture
def days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Seven files, joined in batches of two."""
    monkeypatch.setattr(plan, "BATCH", 2)
    return [write_days(tmp_path / f"{day}.nc", [day], attributes={"day": day}) for day in range(7)]


def test_what_is_told_is_the_same(days: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int]] = []
    many = h5zarr.combine(days, along="time", on_file=lambda name, count: seen.append((name, count)))
    assert seen == [(str(path), 7) for path in days]
    monkeypatch.setattr(plan, "BATCH", 500)
    once = h5zarr.combine(days, along="time")
    told, expected = (str(cube).rpartition(" · ")[0] for cube in (many, once))
    assert told == expected
    assert many.to_json() | {"seconds": 0} == once.to_json() | {"seconds": 0}
    assert repr(many) == repr(once)


def test_the_temporary_directory_is_removed_with_the_cube(days: list[Path], temporary: Path) -> None:
    cube = h5zarr.combine(days, along="time")
    assert len(list(temporary.iterdir())) == 1
    assert cube.arrays()["/v"].manifest.address.min() > 0
    del cube
    gc.collect()
    assert not list(temporary.iterdir())


def test_a_file_that_cannot_be_read_is_named(days: list[Path], temporary: Path) -> None:
    days[3].write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(h5zarr.H5ZarrError, match=r"3\.nc"):
        h5zarr.combine(days, along="time")
    cube = h5zarr.combine(days, along="time", skip_broken=True)
    assert [problem.message.partition(" is left out")[0] for problem in cube.problems] == [str(days[3])]
    assert len(cube.sources) == 6
    for path in days:
        path.write_bytes(b"")
    with pytest.raises(h5zarr.H5ZarrError, match=r"0\.nc"):
        h5zarr.combine(days, along="time", skip_broken=True)
    del cube
    gc.collect()
    assert not list(temporary.iterdir())


def test_files_of_different_batches_that_overlap_are_named(days: list[Path], tmp_path: Path) -> None:
    twice = write_days(tmp_path / "twice.nc", [3])
    with pytest.raises(h5zarr.NotJoinable, match=r"3\.nc and .*twice\.nc: both have the same part of /v"):
        h5zarr.combine([*days, twice], along="time")


@pytest.mark.parametrize("choice", [{"on_duplicate": "last"}, {"attributes": "drop-conflicts"}, {"constant": "along"}])
def test_choices_that_need_all_files_are_made_with_all_files(days: list[Path], choice: dict[str, str]) -> None:
    assert h5zarr.combine(days, along="time", **choice).spool is None  # type: ignore[arg-type]


def test_files_without_coordinates_are_joined_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [write_days(tmp_path / f"{day}.nc", [day]) for day in range(5)]
    for path in paths:
        with xr.open_dataset(path, decode_times=False) as opened:
            whole = opened.load().drop_vars("time")
        whole.to_netcdf(path)
    monkeypatch.setattr(plan, "BATCH", 2)
    cube = h5zarr.combine(paths, along="member")
    assert (cube.spool, cube.axes[0].length) == (None, 5)


@pytest.mark.parametrize("what", ["no directory", "no room", "no package"])
def test_batches_that_cannot_be_written_stay_in_memory(
    what: str, days: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any, **how: Any) -> None:
        raise OutputError("cube.parquet", "no space left") if what == "no room" else PackageMissing("no pyarrow")

    if what == "no directory":
        monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    else:
        monkeypatch.setattr(ParquetContainer, "write", fail)
    cube = h5zarr.combine(days, along="time")
    assert cube.provenance.cube is not None
    assert len(cube.provenance.cube.pieces) == 7


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_files(tmp_path: Path) -> None:
    """More than four times as many files take little more memory, which their names and states need."""
    program = """
import resource, sys
from dataclasses import replace
import numpy as np
import h5zarr
made = h5zarr.translate(sys.argv[1])
def at(day):
    nodes = dict(made.hierarchy.nodes)
    own = replace(nodes["/time"].manifest, inline={(0,): np.array([float(day)]).tobytes()})
    nodes["/time"] = replace(nodes["/time"], manifest=own)
    url = f"/data/{day:06}.nc"
    fitted = replace(made.fitted, hierarchy=replace(made.hierarchy, nodes=nodes, urls=(url,)))
    state = replace(made.provenance.sources[0], url=url)
    return replace(made, fitted=fitted, provenance=replace(made.provenance, sources=(state,)))
h5zarr.combine([at(day) for day in range(int(sys.argv[2]))], sys.argv[3], along="time")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
    write_days(tmp_path / "a.nc", [0], chunksizes=(1, 1))
    used = []
    for count in (2_000, 10_000):
        command = [
            sys.executable,
            "-c",
            program,
            str(tmp_path / "a.nc"),
            str(count),
            str(tmp_path / f"{count}.parquet"),
        ]
        done = subprocess.run(command, env=environment(), cwd=PROJECT, capture_output=True, text=True, check=True)
        used.append(float(done.stdout))
    assert used[1] < used[0] + 80, used
