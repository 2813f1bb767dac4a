from __future__ import annotations

import asyncio
import gc
import json
import pickle
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

import h5zarr
from h5zarr.commands.translate.translate import translate
from h5zarr.engine.entrypoint import H5ZarrBackendEntrypoint
from h5zarr.engine.values import ZarrValues, open_values
from h5zarr.errors import H5ZarrError, ProblemWarning, SourceChanged, SourceError
from h5zarr.io.remote_ranges import RemoteRanges
from h5zarr.opening import Opened, open_hierarchy
from tests.collections_of_files import SAMPLES
from tests.servers import Faults, RangeServer, is_closed_soon

pytestmark = pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")


def make_file(path: Path, start: int = 0) -> Path:
    """A file with packed values of float32, times, text, missing data, groups, chunks and none."""
    with netCDF4.Dataset(path, "w") as file:
        file.title = "Ocean"
        file.createDimension("time", None)
        file.createDimension("x", 300)
        time = file.createVariable("time", "f8", ("time",))
        time.units = "days since 2001-01-01"
        time[:] = start + np.arange(40)
        file.createVariable("x", "i4", ("x",))[:] = np.arange(300)
        options: dict[str, Any] = {"zlib": True, "shuffle": True, "chunksizes": (1, 300)}
        temp = file.createVariable("temp", "i2", ("time", "x"), fill_value=-9, **options)
        temp.scale_factor, temp.units = np.float32(0.1), "K"
        temp.set_auto_maskandscale(False)
        temp[:] = np.arange(-9, 40 * 300 - 9).reshape(40, 300) + start
        file.createVariable("station", str, ("x",))[:] = np.array([f"étape {n}" for n in range(300)], object)
        quality = file.createGroup("quality")
        quality.level = np.int8(3)
        quality.createVariable("flag", "i1", ("time", "x"))[:] = 1
        quality.createGroup("inner").createVariable("plain", "f4", ("x",), contiguous=True)[:] = np.arange(300)
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_file(tmp_path_factory.mktemp("engine") / "file.nc")


@pytest.fixture
def references(file: Path, tmp_path: Path) -> Path:
    translate(file, tmp_path / "refs.json")
    return tmp_path / "refs.json"


@pytest.fixture
def server(file: Path) -> Iterator[RangeServer]:
    with RangeServer({"/file.nc": file.read_bytes()}) as started:
        translate(file, file.parent / "far.json", target_url=started.url("/file.nc"))
        started.files["/refs.json"] = (file.parent / "far.json").read_bytes()
        yield started


def truth(file: Path, **options: Any) -> xr.Dataset:
    with xr.open_dataset(file, engine="netcdf4", **options) as opened:
        return opened.load()


def check(found: xr.Dataset, expected: xr.Dataset) -> None:
    xr.testing.assert_identical(found.load(), expected)
    for name, variable in expected.variables.items():
        assert found[name].dtype == variable.dtype, name
        mine, their = found[name].encoding, variable.encoding
        assert {**mine, "source": ""} == {**their, "source": ""}, name
    assert found.encoding["unlimited_dims"] == expected.encoding["unlimited_dims"]


@pytest.mark.parametrize("group", [None, "/", "quality", "/quality/inner/"])
@pytest.mark.parametrize("kind", ["file", "references"])
def test_a_dataset_is_that_of_the_netcdf_engine(file: Path, references: Path, kind: str, group: str | None) -> None:
    with xr.open_dataset(file if kind == "file" else references, engine="h5zarr", group=group) as found:
        check(found, truth(file, group=group))


@pytest.mark.parametrize(
    "options",
    [
        {"mask_and_scale": False},
        {"decode_times": False},
        {"decode_cf": False},
        {"drop_variables": ["station", "x"]},
        {"decode_coords": "all"},
        {"decode_times": xr.coders.CFDatetimeCoder(use_cftime=False, time_unit="s")},
        {"concat_characters": False},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_mean_what_they_mean_elsewhere(file: Path, references: Path, options: dict[str, Any]) -> None:
    with xr.open_dataset(references, engine="h5zarr", **options) as found:
        xr.testing.assert_identical(found.load(), truth(file, **options))


def test_a_tree_has_all_groups_or_those_below_one(file: Path, references: Path) -> None:
    with xr.open_datatree(references, engine="h5zarr") as found, xr.open_datatree(file, engine="netcdf4") as expected:
        assert found.groups == ("/", "/quality", "/quality/inner")
        xr.testing.assert_identical(found, expected)
    with xr.open_datatree(references, engine="h5zarr", group="quality") as found:
        assert found.groups == ("/", "/inner")
    assert set(xr.open_groups(references, engine="h5zarr")) == {"/", "/quality", "/quality/inner"}


def test_a_group_that_is_not_there_is_named(references: Path) -> None:
    for open_it in (xr.open_dataset, xr.open_datatree):
        with pytest.raises(
            OSError, match=r"file\.nc: group not found: /nowhere; the groups are /, /quality, /quality/in"
        ):
            open_it(references, engine="h5zarr", group="nowhere")
        with pytest.raises(OSError, match=r"group not found: /temp; this is a variable$"):
            open_it(references, engine="h5zarr", group="temp")


def test_one_group_of_a_file_is_read_without_the_others(tmp_path: Path) -> None:
    path = make_file(tmp_path / "file.nc")
    with xr.open_dataset(path, engine="h5zarr") as opened:
        assert "temp" in opened
    with h5py.File(path, "r+") as file:
        address = h5py.h5o.get_info(file["quality/inner"].id).addr
    with path.open("r+b") as stream:
        stream.seek(address)
        stream.write(b"\xff" * 16)  # a broken object elsewhere costs nothing
    with warnings.catch_warnings():
        warnings.simplefilter("error", h5zarr.ProblemWarning)
        with xr.open_dataset(path, engine="h5zarr") as opened:
            assert "temp" in opened.load()
    with pytest.warns(h5zarr.ProblemWarning, match="/quality/inner"), xr.open_datatree(path, engine="h5zarr") as tree:
        assert tree.groups == ("/", "/quality")


@pytest.mark.parametrize("open_it", [xr.open_dataset, xr.open_datatree, xr.open_groups])
def test_nothing_stays_open(open_it: Any, tmp_path: Path) -> None:
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        pytest.skip("this system does not list the open files of a process")
    path = make_file(tmp_path / "file.nc")
    kept = []

    def open_one() -> None:
        found = open_it(path, engine="h5zarr")
        kept.append(found)
        for one in found.values() if isinstance(found, dict) else [found]:
            one.load()
            one.close()

    open_one()
    before = len(list(descriptors.iterdir()))
    for _ in range(5):
        open_one()
    assert len(list(descriptors.iterdir())) <= before


@pytest.mark.filterwarnings("ignore::h5zarr.ProblemWarning")
def test_a_tree_that_xarray_refuses_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Opened] = []
    monkeypatch.setattr(Opened, "close", lambda self: closed.append(self))
    with pytest.raises(ValueError, match="not aligned"):
        xr.open_datatree(SAMPLES / "netcdf4_groups.nc", engine="h5zarr")
    assert closed


def test_many_files_open_as_one(tmp_path: Path) -> None:
    files = [make_file(tmp_path / f"{number}.nc", start=40 * number) for number in range(3)]
    references = [path.with_suffix(".json") for path in files]
    for path, out in zip(files, references, strict=True):
        translate(path, out)
    options: dict[str, Any] = {"data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "override"}
    with (
        xr.open_mfdataset(references, engine="h5zarr", **options) as found,
        xr.open_mfdataset(files, engine="netcdf4", **options) as expected,
    ):
        xr.testing.assert_identical(found.load(), expected.load())


# --- dask, threads, processes


@pytest.mark.parametrize("chunks", ["auto", {}, {"time": 7}])
def test_dask_reads_the_same(file: Path, references: Path, chunks: Any) -> None:
    with xr.open_dataset(references, engine="h5zarr", chunks=chunks) as found:
        if chunks == {}:
            assert found.temp.chunks == ((1,) * 40, (300,))
        xr.testing.assert_identical(found.compute(), truth(file))
        xr.testing.assert_identical(found.compute(scheduler="synchronous"), truth(file))


@pytest.mark.slow
def test_a_cluster_of_processes_reads_the_same(server: RangeServer, file: Path) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        xr.open_dataset(server.url("/refs.json"), engine="h5zarr", chunks={}) as found,
    ):
        xr.testing.assert_identical(found.compute(), truth(file))


def test_a_dataset_can_be_sent_to_another_process(file: Path, references: Path, server: RangeServer) -> None:
    for place in (str(file), str(references), server.url("/refs.json"), server.url("/file.nc")):
        sent = pickle.dumps(xr.open_dataset(place, engine="h5zarr"))
        check(pickle.loads(sent), truth(file))


def test_many_threads_may_read_one_dataset(server: RangeServer, file: Path) -> None:
    expected = truth(file)
    with xr.open_dataset(server.url("/refs.json"), engine="h5zarr") as found, ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda n: found.temp[n].values, range(40)))
    np.testing.assert_array_equal(rows, expected.temp.values)


@pytest.mark.skipif(not hasattr(xr.Dataset, "load_async"), reason="this xarray does not load asynchronously")
def test_variables_are_loaded_asynchronously(server: RangeServer, file: Path) -> None:
    server.latency = 0.05
    with xr.open_dataset(server.url("/refs.json"), engine="h5zarr") as found:

        async def load() -> None:
            await asyncio.gather(found.temp.load_async(), found.station[3:7].load_async())

        asyncio.run(load())
        check(found, truth(file))


def test_what_is_read_lazily_is_what_is_indexed(file: Path, references: Path) -> None:
    expected = truth(file)
    with xr.open_dataset(references, engine="h5zarr") as found:
        for key in (
            {"time": 3},
            {"time": slice(5, 30, 4), "x": [4, 2, 200]},
            {"time": slice(None, None, -3)},
            {"time": xr.DataArray([1, 2], dims="p"), "x": xr.DataArray([7, 8], dims="p")},
            {"x": []},
        ):
            xr.testing.assert_identical(found.isel(key), expected.isel(key))


# --- far away


def test_remote_references_open_with_one_request_and_no_options(server: RangeServer, file: Path) -> None:
    with xr.open_dataset(server.url("/refs.json"), engine="h5zarr") as found:
        assert (server.counts.heads, len(server.counts.gets)) == (0, 1)
        found.temp.load()
        assert (server.counts.heads, len(server.counts.gets)) == (0, 2)
        check(found, truth(file))


def test_connections_are_closed_with_the_dataset(server: RangeServer) -> None:
    with xr.open_dataset(server.url("/refs.json"), engine="h5zarr") as found:
        found.temp[3:5].load()
        readers = [one for one in gc.get_objects() if isinstance(one, RemoteRanges) and server.url("") in one.url]
        sessions = {one._opened.filesystem._session for one in readers if one._opened is not None}
        (session,) = sessions  # one for the references and for the chunks
        assert not session.closed
        del readers
    assert is_closed_soon(session)


def test_a_fault_that_stays_is_raised_with_url_and_range(server: RangeServer) -> None:
    network = {"attempts": 2, "timeout_seconds": 1}
    with xr.open_dataset(server.url("/refs.json"), engine="h5zarr", network=network) as found:
        server.faults = Faults(statuses=dict.fromkeys(range(1, 99), 503))
        with pytest.raises(SourceError, match=r"/file.nc: bytes \d+-\d+: the server answered HTTP 503"):
            found.temp.load()
        server.faults = Faults()
        found.temp.load()


def test_a_changed_source_is_raised_unless_told_not_to(server: RangeServer, file: Path) -> None:
    translate(server.url("/file.nc"), file.parent / "recorded.json")
    server.etag = '"other"'
    with (
        xr.open_dataset(file.parent / "recorded.json", engine="h5zarr") as found,
        pytest.raises(SourceChanged, match="ETag"),
    ):
        found.temp.load()
    with xr.open_dataset(file.parent / "recorded.json", engine="h5zarr", verify=False) as found:
        check(found, truth(file))


# --- what is claimed, and what is not opened


@pytest.mark.filterwarnings("ignore:.* fails while guessing:RuntimeWarning")  # of other engines that are installed
def test_only_references_that_h5zarr_wrote_are_claimed(file: Path, references: Path, tmp_path: Path) -> None:
    engine = H5ZarrBackendEntrypoint()
    for name in ("refs.json.gz", "refs.json.zst", "named.json"):
        translate(file, tmp_path / name)
        assert engine.guess_can_open(tmp_path / name)
    assert engine.guess_can_open((tmp_path / "named.json").rename(tmp_path / "anything"))
    assert engine.guess_can_open(references)
    assert engine.guess_can_open(str(references))
    (tmp_path / "kerchunk.json").write_text(json.dumps({"version": 1, "refs": {}}))
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "short.gz").write_bytes(b"\x1f\x8b")
    for other in (file, tmp_path / "kerchunk.json", tmp_path / "other.json", tmp_path / "short.gz", tmp_path, b"x"):
        assert not engine.guess_can_open(other)
    assert not engine.guess_can_open(tmp_path / "missing.json")
    assert not engine.guess_can_open("https://example.org/refs.json")
    with xr.open_dataset(references) as found:
        check(found, truth(file))


def test_references_of_kerchunk_open(file: Path, tmp_path: Path) -> None:
    kerchunk = pytest.importorskip("kerchunk.hdf")
    made = kerchunk.SingleHdf5ToZarr(str(file), inline_threshold=0).translate()
    (tmp_path / "kerchunk.json").write_text(json.dumps(made))
    with xr.open_dataset(tmp_path / "kerchunk.json", engine="h5zarr") as found:
        expected = truth(file)
        np.testing.assert_allclose(found.temp.values, expected.temp.values, rtol=1e-6)
        assert found.time.values.tolist() == expected.time.values.tolist()


@pytest.mark.parametrize("opening", [xr.open_dataset, xr.open_datatree, xr.open_groups])
def test_variables_that_cannot_be_shown_are_named_in_warnings(opening: Any, tmp_path: Path) -> None:
    cut = tmp_path / "cut.nc"
    cut.write_bytes((SAMPLES / "ocean.nc").read_bytes()[:60_000])
    with pytest.warns(ProblemWarning) as caught:
        opened = opening(cut, engine="h5zarr")
    assert "sst" not in (opened["/"] if isinstance(opened, dict) else opened)
    told = [str(one.message) for one in caught]
    assert any(text.startswith(f"{cut}:/: the file is truncated") for text in told)
    assert any(text.startswith(f"{cut}:/sst: ") and text.endswith("with the original.") for text in told)
    assert {one.filename for one in caught} == {__file__}


@pytest.mark.parametrize("wrong", [b"bytes", 5, None, open])
def test_other_values_than_paths_are_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="opens paths and URLs"):
        H5ZarrBackendEntrypoint().open_dataset(wrong)


def test_files_of_unknown_formats_are_named(tmp_path: Path) -> None:
    (tmp_path / "text.nc").write_text("hello")
    with pytest.raises(H5ZarrError, match=r"text.nc: not an HDF5 or netCDF file"):
        xr.open_dataset(tmp_path / "text.nc", engine="h5zarr")


def test_a_filter_whose_package_is_missing_is_named_with_file_and_array(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "blosc2", None)
    with xr.open_dataset(SAMPLES / "filters_plugins.h5", engine="h5zarr") as found:
        with pytest.raises(
            H5ZarrError, match=r"filters_plugins\.h5:/blosc2: filter blosc2 needs the package"
        ) as caught:
            found.blosc2.load()
        assert caught.value.__notes__ == ["Install it: pip install blosc2"]
        assert caught.value.__cause__ is None
        assert found.zstd.load().shape


def test_codecs_that_h5zarr_does_not_know_are_left_to_zarr(tmp_path: Path) -> None:
    import zarr

    group = zarr.create_group(tmp_path / "store.zarr")
    values = np.arange(24, dtype="i4").reshape(4, 6)
    array = group.create_array(
        "x", shape=(4, 6), chunks=(2, 6), dtype="i4", dimension_names=("a", "b"), compressors=zarr.codecs.GzipCodec()
    )
    array[...] = values
    refs: dict[str, Any] = {}
    for path in (tmp_path / "store.zarr").rglob("*"):
        key = str(path.relative_to(tmp_path / "store.zarr"))
        if path.name == "zarr.json":
            refs[key] = path.read_text()
        elif path.is_file():
            refs[key] = [str(path), 0, path.stat().st_size]
    (tmp_path / "refs.json").write_text(json.dumps({"version": 1, "refs": refs}))
    assert isinstance(open_values(open_hierarchy(tmp_path / "refs.json"), "/x"), ZarrValues)
    with xr.open_dataset(tmp_path / "refs.json", engine="h5zarr") as found:
        assert np.array_equal(found.x[::2, [1, 5]].values, values[::2, [1, 5]])
        assert np.array_equal(pickle.loads(pickle.dumps(found)).x.values, values)


def test_what_references_had_to_leave_out_is_said_when_they_are_opened(tmp_path: Path) -> None:
    for zarr_format in (2, 3):
        out = tmp_path / f"v{zarr_format}.json"
        translate(SAMPLES / "types_sequences_latest.h5", out, zarr_format=zarr_format)
        with pytest.warns(ProblemWarning, match=r"v\d.json:/.*: Zarr has no type for variable-length sequences"):
            xr.open_dataset(out, engine="h5zarr")


def test_no_warning_for_a_fill_value_that_is_in_the_record(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "text.nc", "w") as file:
        file.createDimension("x", 2)
        file.createVariable("names", str, ("x",), fill_value="none")[:] = np.array(["a", "none"], object)
    assert translate(tmp_path / "text.nc", tmp_path / "refs.json").warnings
    with xr.open_dataset(tmp_path / "refs.json", engine="h5zarr") as found:
        check(found, truth(tmp_path / "text.nc"))
