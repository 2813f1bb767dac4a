"""From a classic file to references: what it costs, what is said of a file that is cut off, and the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import h5zarr
from h5zarr.cli import main
from h5zarr.formats import scan_any
from h5zarr.io.source import open_source
from h5zarr.netcdf3.classic_file import ClassicFile
from h5zarr.zarr_model.hierarchy import ArrayNode
from tests.collections_of_files import SAMPLES, classic_samples, sample_files
from tests.netcdf3.classic import Var, read_back, write

ROUNDS = {"classic_header_padding.nc": 1, "classic_large_header.nc": 2, "classic_types_cdf5.nc": 2}


@pytest.mark.parametrize("path", classic_samples(), ids=lambda path: path.name)
def test_samples_take_exactly_the_expected_rounds(path: Path) -> None:
    with open_source(str(path)) as source:
        assert isinstance(scan_any(source), ClassicFile)
        assert source.log.rounds == ROUNDS.get(path.name, 1)


def test_finding_the_format_costs_hdf5_nothing() -> None:
    expected = json.loads((Path(__file__).parents[1] / "hdf5" / "rounds.json").read_text())
    for path in sample_files()[::5]:
        with open_source(str(path)) as source:
            scan_any(source)
            assert source.log.rounds == expected[path.name]


def test_a_remote_file_takes_one_round_and_one_request() -> None:
    import fsspec

    fsspec.filesystem("memory").pipe("/records.nc", (SAMPLES / "classic_several_records.nc").read_bytes())
    log = h5zarr.translate("memory://records.nc").log
    assert (log.rounds, log.requests) == (1, 1)


def test_what_is_inlined_is_read_in_one_more_round() -> None:
    path = SAMPLES / "classic_several_records.nc"
    assert h5zarr.translate(path).log.rounds == 2
    assert h5zarr.translate(path, inline_bytes=0).log.rounds == 1


def test_records_are_one_chunk_each_in_order(tmp_path: Path) -> None:
    count = 5000
    variables = [
        Var(name="a", code="f4", dimensions=("t", "x"), values=np.zeros((count, 30))),
        Var(name="b", code="i1", dimensions=("t",), values=np.zeros(count)),
    ]
    path = write(tmp_path, 2, {"t": None, "x": 30}, variables)
    translation = h5zarr.translate(path, inline_bytes=0)
    a, b = translation.arrays()["/a"], translation.arrays()["/b"]
    assert (a.chunk_shape, b.chunk_shape) == ((1, 30), (1,))
    assert np.array_equal(a.manifest.index[:, 0], np.arange(count))
    assert np.array_equal(np.diff(a.manifest.address), np.full(count - 1, 124))
    assert np.array_equal(b.manifest.address - a.manifest.address, np.full(count, 120))
    keys = [key for key in json.loads(_text(translation, tmp_path))["refs"] if key.startswith("b/c/")]
    assert keys == [f"b/c/{number}" for number in range(count)]


def _text(translation: h5zarr.commands.translate.translate.Translation, folder: Path) -> str:
    translation.write(folder / "refs.json")
    return (folder / "refs.json").read_text()


def test_a_tiny_coordinate_along_the_records_is_one_inlined_chunk() -> None:
    time = h5zarr.translate(SAMPLES / "classic_several_records.nc").arrays()["/time"]
    assert (time.chunk_shape, time.manifest.count, list(time.manifest.inline)) == ((40,), 0, [(0,)])


@pytest.mark.parametrize("inline_nbytes", [0, 1000, 100_000])
@pytest.mark.parametrize("chunk_nbytes", [10, 100, 8 << 20])
@pytest.mark.parametrize("cut", [1, 7, 100, 113, 999, 1500])
def test_of_a_cut_file_all_values_that_are_there_are_shown(
    tmp_path: Path, cut: int, chunk_nbytes: int, inline_nbytes: int
) -> None:
    variables = [
        Var(name="fixed", code="i2", dimensions=("y", "x"), values=1 + np.arange(240).reshape(8, 30)),
        Var(name="a", code="i2", dimensions=("t", "x"), values=1 + np.arange(600).reshape(20, 30)),
        Var(name="b", code="i1", dimensions=("t",), values=1 + np.arange(20)),
    ]
    path = write(tmp_path, 1, {"t": None, "x": 30, "y": 8}, variables)
    whole = path.read_bytes()
    names = {"a", "b", "fixed"}
    begins = {one.name: one.begin for one in _scan(path).header.variables}
    path.write_bytes(whole[:-cut])
    options = {"inline_bytes": inline_nbytes, "chunk_bytes": chunk_nbytes}
    translation = h5zarr.translate(path, **options)
    values = read_back(translation.hierarchy)
    assert set(values) == names
    for variable in variables:
        expected = np.asarray(variable.values).astype(variable.code)
        step = expected.itemsize * 30 if variable.name == "fixed" else 64
        rest = int(np.prod(expected.shape[1:]))
        fill = -127 if variable.code == "i1" else -32767
        missing = 0
        for number in range(expected.size):
            row, column = divmod(number, rest)
            if begins[variable.name] + row * step + (column + 1) * expected.itemsize > len(whole) - cut:
                expected.reshape(-1)[number] = fill
                missing += 1
        assert np.array_equal(values[variable.name], expected)
        named = [problem for problem in translation.problems if problem.path == f"/{variable.name}"]
        assert len(named) == (1 if missing else 0)
        assert all("missing" in problem.message for problem in named)


def _scan(path: Path) -> ClassicFile:
    with open_source(str(path)) as source:
        found = scan_any(source)
    assert isinstance(found, ClassicFile)
    return found


def test_scan_reads_netcdf_3() -> None:
    found = h5zarr.scan(SAMPLES / "classic_lone_byte.nc")
    assert isinstance(found, ClassicFile)
    expected = _scan(SAMPLES / "classic_lone_byte.nc")
    assert [one.name for one in found.header.variables] == [one.name for one in expected.header.variables] != []


def test_the_size_of_chunks_can_be_chosen(tmp_path: Path) -> None:
    values = np.arange(1000, dtype="f8").reshape(100, 10)
    path = write(tmp_path, 1, {"y": 100, "x": 10}, [Var(name="v", code="f8", dimensions=("y", "x"), values=values)])
    out = tmp_path / "refs.json"
    assert main(["translate", str(path), str(out), "--chunk-bytes", "800", "--quiet"]) == 0
    references = json.loads(out.read_text())["refs"]
    assert json.loads(references["v/zarr.json"])["chunk_grid"]["configuration"]["chunk_shape"] == [10, 10]
    assert [references[f"v/c/{number}/0"][2] for number in range(10)] == [800] * 10
    assert main(["translate", str(path), str(out), "--chunk-bytes", "0"]) == 2


def test_contiguous_hdf5_datasets_are_cut_too(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "file.h5"
    values = np.arange(67 * 12, dtype="f4").reshape(67, 12)
    with h5py.File(path, "w") as file:
        file["v"] = values
        file["behind"] = np.zeros(1000)
        file["last"] = values[::-1]
    translation = h5zarr.translate(path, chunk_bytes=960)
    array = translation.hierarchy.nodes["/v"]
    assert isinstance(array, ArrayNode)
    assert (array.chunk_shape, array.manifest.count) == ((17, 12), 4)
    back = read_back(translation.hierarchy)
    assert np.array_equal(back["v"], values)
    assert np.array_equal(back["last"], values[::-1])


def test_a_version_2_output_reads_the_same(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    out = tmp_path / "refs.json"
    path = SAMPLES / "classic_by_netcdf.nc"
    h5zarr.translate(path, out, zarr_format=2)
    with (
        xr.open_dataset(
            "reference://", engine="zarr", storage_options={"fo": str(out), "remote_protocol": "file"}, chunks=None
        ) as ours,
        xr.open_dataset(path, engine="netcdf4") as theirs,
    ):
        for name in theirs.variables:
            assert ours[name].equals(theirs[name])
