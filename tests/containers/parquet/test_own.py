"""Local and remote Parquet references of h5zarr open without options and with few reads."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr
import zarr

from h5zarr.commands.convert.convert import convert
from h5zarr.commands.translate.translate import translate
from h5zarr.commands.translate.translation import ProblemsFound
from h5zarr.engine.entrypoint import H5ZarrBackendEntrypoint
from h5zarr.errors import OutputError, ProblemWarning, SourceChanged
from h5zarr.opening import open_hierarchy
from h5zarr.store import open_store
from tests.collections_of_files import SAMPLES
from tests.servers import RangeServer

pytest.importorskip("pyarrow.parquet")
OCEAN = SAMPLES / "ocean.nc"
pytestmark = pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")


def served(directory: Path, name: str = "/refs.parquet") -> dict[str, bytes]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {f"{name}/{path.relative_to(directory)}": path.read_bytes() for path in files}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    translate(OCEAN, tmp_path / "refs.parquet")
    return tmp_path / "refs.parquet"


@pytest.mark.parametrize("version", [3, 2])
def test_the_engine_shows_the_file_without_options(tmp_path: Path, version: int) -> None:
    out = tmp_path / "refs.parquet"
    translate(OCEAN, out, zarr_format=version)
    with xr.open_dataset(OCEAN, engine="netcdf4") as expected, RangeServer(served(out)) as server:
        for place in (out, f"{out}/", server.url("/refs.parquet")):
            with xr.open_dataset(place, engine="h5zarr", allow=[str(OCEAN.parent)]) as found:
                xr.testing.assert_identical(found.load(), expected.load())


def test_xarray_finds_the_engine_itself(out: Path, tmp_path: Path) -> None:
    engine = H5ZarrBackendEntrypoint()
    assert engine.guess_can_open(out)
    (out / ".zmetadata").write_text('{"metadata": {}, "record_size": 1}')
    assert not engine.guess_can_open(out)
    assert not engine.guess_can_open(tmp_path)


def test_a_store_has_all_keys_and_values(out: Path) -> None:
    store = open_store(out)
    group = zarr.open_group(store, mode="r")
    with h5py.File(OCEAN) as file:
        assert np.array_equal(group["sst"][...], file["sst"][...])  # type: ignore[index]


def test_opening_remote_references_reads_the_metadata_and_the_coordinates(out: Path) -> None:
    """In two rounds; what has more chunks than one is asked for when it is read."""
    with RangeServer(served(out)) as server:
        opened = open_hierarchy(server.url("/refs.parquet"))
        first, *others = [url.removeprefix("/refs.parquet/") for url in server.counts.urls]
        assert first == ".zmetadata"
        assert sorted(others) == ["lat/refs.0.parq", "lon/refs.0.parq", "time/refs.0.parq"]
        opened.close()


def test_datasets_are_sent_to_other_processes_unread(out: Path) -> None:
    opened = pickle.loads(pickle.dumps(open_hierarchy(out)))
    assert "not read yet" in repr(opened.hierarchy.nodes["/sst"].manifest)
    with xr.open_dataset(out, engine="h5zarr") as dataset, xr.open_dataset(OCEAN, engine="netcdf4") as expected:
        found = pickle.loads(pickle.dumps(dataset))
        xr.testing.assert_identical(found.load(), expected.load())


def test_a_relative_path_means_where_the_process_was(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(out.parent)
    opened = open_hierarchy("refs.parquet")
    monkeypatch.chdir("/")
    assert opened.hierarchy.nodes["/sst"].manifest.count == 20  # type: ignore[union-attr]


def test_odd_names_are_found_on_a_web_server(tmp_path: Path) -> None:
    names = ["a b", "50% of %41", "why?", "#1", "é&+;=@:", "g/{x}"]
    with h5py.File(tmp_path / "odd.h5", "w") as file:
        for number, name in enumerate(names):
            file.create_dataset(name, data=np.full(3000, number + 1), chunks=(1000,))
    out = tmp_path / "refs.parquet"
    translate(tmp_path / "odd.h5", out)
    with RangeServer(served(out)) as server:
        group = zarr.open_group(open_store(server.url("/refs.parquet"), allow=[str(tmp_path)]), mode="r")
        for number, name in enumerate(names):
            assert (group[name][...] == number + 1).all(), name  # type: ignore[index, operator]


def test_a_source_that_has_changed_is_noticed(tmp_path: Path) -> None:
    source = tmp_path / "source.nc"
    source.write_bytes(OCEAN.read_bytes())
    translate(source, tmp_path / "refs.parquet")
    source.write_bytes(OCEAN.read_bytes() + b"more")
    with xr.open_dataset(tmp_path / "refs.parquet", engine="h5zarr") as found, pytest.raises(SourceChanged):
        found.sst.load()


def test_problems_are_reported_again(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "odd.h5", "w") as file:
        file.create_dataset("sequences", (2,), h5py.vlen_dtype("i4"))
    done = translate(tmp_path / "odd.h5", tmp_path / "refs.parquet")
    assert done.problems
    with pytest.warns(ProblemWarning, match=done.problems[0].path):
        open_store(tmp_path / "refs.parquet")


def test_the_source_is_not_replaced(tmp_path: Path) -> None:
    source = tmp_path / "source.parquet"
    source.write_bytes(OCEAN.read_bytes())
    with pytest.raises(OutputError, match="the output would replace the input file"):
        translate(source, source)
    assert os.path.getsize(source) == os.path.getsize(OCEAN)


def test_arrays_whose_names_no_directory_can_have_are_named(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "odd.h5", "w") as file:
        for name in ("fine", "é" * 128, "group/.zarray of mine", ".z/inside"):
            file[name] = np.arange(3000)
    done = translate(tmp_path / "odd.h5", tmp_path / "refs.parquet")
    assert sorted(done.arrays()) == ["/fine"]
    assert sorted(problem.path for problem in done.problems) == [
        "/.z/inside",
        "/group/.zarray of mine",
        "/" + "é" * 128,
    ]
    with pytest.warns(ProblemWarning) as told:
        translate(tmp_path / "odd.h5").write(tmp_path / "again.parquet")
    assert len(told) == 3
    for place in ("refs.parquet", "again.parquet"):
        assert open_hierarchy(tmp_path / place).hierarchy.problems == done.problems
    with pytest.raises(ProblemsFound):
        translate(tmp_path / "odd.h5", tmp_path / "refs.parquet", strict=True)


def test_unwritten_chunks_are_written_out_when_parquet_becomes_version_2(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "gaps.h5", "w") as file:
        file.create_dataset("v", (40,), "i4", chunks=(10,), fillvalue=7)[:10] = 1
    translate(tmp_path / "gaps.h5", tmp_path / "refs.parquet")
    convert(tmp_path / "refs.parquet", tmp_path / "refs.json", zarr_format=2)
    with xr.open_dataset(tmp_path / "refs.json", engine="h5zarr") as dataset:
        assert dataset["v"].values.tolist() == [1] * 10 + [7] * 30
