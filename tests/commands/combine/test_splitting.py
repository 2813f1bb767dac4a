"""A random dataset, split at random into files that store it in many ways, and joined again, equals the whole.

The whole is what xarray makes of the files: each decoded by the netCDF library, and then concatenated.
"""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import h5zarr
from tests.commands.combine.splitting import FileForm, check_same, expected, file_forms, write_split

CONTAINERS = ("cube.json", "cube.json.gz", "cube.parquet", "icechunk")
SPLITS = (
    st.lists(file_forms(varied=True), min_size=1, max_size=5),
    st.randoms(use_true_random=False),
    st.sampled_from(CONTAINERS),
    st.sampled_from([None, 0, 3000]),
    st.sampled_from(["standard", "noleap"]),
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:variable .* has multiple fill values"),  # xarray, about missing_value
    pytest.mark.filterwarnings("ignore:.*/label. the values must be converted"),  # if nothing may be inlined
]

_settings = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow], max_examples=40
)


@settings(_settings)
@given(*SPLITS)
def test_a_dataset_that_is_split_into_files_and_joined_is_the_same(
    forms: list[FileForm], random: Any, container: str, most: int | None, calendar: str
) -> None:
    check_joined(forms, random, container, most, calendar)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_many_datasets_that_are_split_and_joined_are_the_same(seed: int) -> None:
    @settings(_settings, max_examples=500, derandomize=False)
    @given(*SPLITS)
    def run(forms: list[FileForm], random: Any, container: str, most: int | None, calendar: str) -> None:
        check_joined(forms, random, container, most, calendar)

    run()


def check_joined(forms: list[FileForm], random: Any, container: str, most: int | None, calendar: str) -> None:
    """Write a dataset as files, join them in a random order, and compare what the engine shows with the whole."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = write_split(folder, forms, calendar)
        out = f"icechunk+file://{folder}/repository" if container == "icechunk" else str(folder / container)
        sources = random.sample(paths, len(paths))
        try:
            cube = h5zarr.combine(sources, out, max_inline_bytes=most)
        except h5zarr.NotJoinable as error:
            assert "converting them takes" in str(error)  # noqa: PT017  # times, if nothing may be inlined
            assert most is not None
            return
        except h5zarr.OutputError as error:
            assert "which takes Icechunk 2 or later" in str(error)  # noqa: PT017  # no array has equal chunks
            assert _icechunk_version() < 2
            return
        if container == "icechunk" and any("which takes Icechunk 2 or later" in one.message for one in cube.problems):
            assert _icechunk_version() < 2  # it lacks chunks of different lengths
            return
        lost = [problem.path.lstrip("/") for problem in cube.problems]
        assert set(lost) <= ({"label"} if most is not None else set())
        with xr.open_dataset(out, engine="h5zarr") as opened:
            check_same(opened.load(), expected(paths).drop_vars(lost))
        if container == "cube.json":
            assert h5zarr.verify(out).is_right


@settings(_settings, max_examples=60)
@given(
    st.one_of(*[st.lists(file_forms(varied=varied), min_size=2, max_size=5) for varied in (True, False)]),
    st.integers(0, 3),
    st.integers(1, 4),
)
def test_a_cube_of_some_files_and_the_others_are_the_whole(forms: list[FileForm], first: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = write_split(folder, forms)
        some, others = paths[first : first + count], [*paths[:first], *paths[first + count :]]
        if not some:
            return
        h5zarr.combine(some, folder / "some.json")
        cube = h5zarr.combine([*others, folder / "some.json"], folder / "cube.json")
        assert cube.provenance.cube is not None
        assert [piece.url for piece in cube.provenance.cube.pieces] == [str(path) for path in paths]
        with xr.open_dataset(folder / "cube.json", engine="h5zarr") as opened:
            check_same(opened.load(), expected(paths))
        assert h5zarr.verify(folder / "cube.json").is_right


def _icechunk_version() -> int:
    icechunk = pytest.importorskip("icechunk")
    return int(icechunk.__version__.partition(".")[0])


@settings(_settings, max_examples=25)
@given(st.lists(file_forms(varied=False), min_size=1, max_size=5))
def test_zarr_and_icechunk_read_what_was_split(tmp_path_factory: Any, forms: list[FileForm]) -> None:
    """With chunks of different lengths, through zarr itself and through Icechunk, where these versions know them."""
    import zarr

    folder = tmp_path_factory.mktemp("zarr")
    paths = write_split(folder, forms)
    cube = h5zarr.combine(paths, folder / "cube.json")
    if cube.uneven and zarr.config.get("array.rectilinear_chunks", None) is None:
        return
    whole = expected(paths)
    with zarr.config.set({"array.rectilinear_chunks": True}):
        opened = xr.open_zarr(h5zarr.open_store(folder / "cube.json"), consolidated=False)
        np.testing.assert_array_equal(opened["v"].values, whole["v"].values)
        if cube.uneven and _icechunk_version() < 2:
            return
        h5zarr.convert(folder / "cube.json", f"icechunk+file://{folder}/repository")
        from tests.containers.icechunk.repositories import open_repository

        session = open_repository(folder / "repository").readonly_session("main")
        there = xr.open_zarr(session.store, consolidated=False)
        np.testing.assert_array_equal(there["v"].values, whole["v"].values)


@settings(_settings, max_examples=30)
@given(st.data())
def test_tiles_of_a_dataset_are_the_same(tmp_path_factory: Any, data: st.DataObject) -> None:
    """Rows of tiles may be divided at different places, like bricks."""
    folder = tmp_path_factory.mktemp("tiles")
    times = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    edges = np.cumsum([0, *times]).tolist()
    width = 30
    values = np.arange(sum(times) * width, dtype="f4").reshape(sum(times), width) + 1
    present = []
    for row in range(len(times)):
        cuts = data.draw(st.sets(st.sampled_from([4, 8, 11, 12, 20]), max_size=2))
        for begin, end in pairwise([0, *sorted(cuts), width]):
            here = slice(*edges[row : row + 2]), slice(begin, end)
            if data.draw(st.integers(0, 5)) or not present:
                present.append(here)
                how = {
                    "chunksizes": (
                        data.draw(st.sampled_from([1, 2])),
                        min(end - begin, data.draw(st.sampled_from([4, 30]))),
                    ),
                    "zlib": data.draw(st.booleans()),
                }
                write_tile(folder / f"{row}-{begin}.nc", here, values, how)
    paths = sorted(folder.glob("*.nc"))
    inlined = data.draw(st.sampled_from([None, 0]))
    h5zarr.combine(paths, folder / "cube.json", along=["time", "x"], max_inline_bytes=inlined)
    whole = np.full(values.shape, np.nan, "f4")
    for here in present:
        whole[here] = values[here]
    with xr.open_dataset(folder / "cube.json", engine="h5zarr") as opened:
        kept = np.isin(np.arange(len(values)), opened["time"].values.astype(int))
        columns = np.isin(np.arange(values.shape[1]), opened["x"].values.astype(int))
        np.testing.assert_array_equal(opened["v"].values, whole[kept][:, columns])
    assert h5zarr.verify(folder / "cube.json").is_right


def write_tile(path: Path, here: tuple[slice, slice], values: Any, how: dict[str, Any]) -> None:
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", here[1].stop - here[1].start)
        file.createVariable("time", "f8", ("time",))[:] = np.arange(len(values))[here[0]]
        file.createVariable("x", "f8", ("x",))[:] = np.arange(values.shape[1])[here[1]]
        file.createVariable("v", "f4", ("time", "x"), **how)[:] = values[here]
