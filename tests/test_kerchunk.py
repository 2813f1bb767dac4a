"""The classes for those who use kerchunk: the references do in kerchunk what its own do, with the right values."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped, unused-ignore]
import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

from h5zarr.commands.translate.translation import ProblemsFound
from h5zarr.errors import H5ZarrError, ProblemWarning
from h5zarr.kerchunk import NetCDF3ToZarr, SingleHdf5ToZarr
from tests.collections_of_files import SAMPLES
from tests.made_files import make_ocean

kerchunk = pytest.importorskip("kerchunk")

MONTHS = (31, 28, 31)


def opened(references: Any, **options: Any) -> xr.Dataset:
    """Return a dataset through the engine "kerchunk", loaded."""
    with xr.open_dataset(references, engine="kerchunk", open_dataset_options=options or None) as dataset:
        return dataset.load()


def make_month(path: Path, first: int, count: int, *, skipped: int | None = None, **options: Any) -> Path:
    """Write days of packed values; one of them may be unwritten."""
    rng = np.random.default_rng(first)
    with netCDF4.Dataset(path, "w", **options) as file:
        file.title = "months"
        for name, size in (("time", None), ("lat", 4), ("lon", 6), ("bnds", 2)):
            file.createDimension(name, size)
        days = np.arange(first, first + count, dtype="f8")
        time = file.createVariable("time", "f8", ("time",))
        time.units = "days since 2001-01-01"
        time[:] = days
        file.createVariable("lat", "f4", ("lat",))[:] = np.linspace(-60, 60, 4)
        file.createVariable("lon", "f4", ("lon",))[:] = np.arange(6) * 60
        packing: dict[str, Any] = {} if options else {"zlib": True, "shuffle": True, "chunksizes": (1, 4, 6)}
        sst = file.createVariable("sst", "i2", ("time", "lat", "lon"), fill_value=-32767, **packing)
        sst.scale_factor, sst.add_offset = 0.01, 20.0
        values = np.ma.masked_less(rng.uniform(-1, 30, (count, 4, 6)), 0)
        for day in range(count):
            if day != skipped:
                sst[day] = values[day]
        bounds = file.createVariable("time_bnds", "f8", ("time", "bnds"))
        bounds[:] = np.stack([days, days + 1], axis=1)
        file.createVariable("area", "f8", ("lat", "lon"))[:] = rng.uniform(size=(4, 6)) * 0 + 7
    return path


@pytest.fixture
def months(tmp_path: Path) -> list[Path]:
    """Three files of different length; a day of the second was never written."""
    firsts = np.cumsum([0, *MONTHS])[:-1].tolist()
    return [
        make_month(tmp_path / f"{first:03}.nc", first, count, skipped=5 if first == 31 else None)
        for first, count in zip(firsts, MONTHS, strict=True)
    ]


def concatenated(paths: list[Path]) -> xr.Dataset:
    datasets = []
    for path in paths:
        with xr.open_dataset(path, engine="netcdf4") as dataset:
            datasets.append(dataset.load())
    return xr.concat(datasets, "time", data_vars="minimal", coords="minimal", compat="override", join="override")


def combine(references: list[Any]) -> Any:
    from kerchunk.combine import MultiZarrToZarr

    joined = MultiZarrToZarr(references, concat_dims=["time"], identical_dims=["lat", "lon", "area"])
    return joined.translate()


# --- in kerchunk


def test_three_files_are_joined_along_time(months: list[Path]) -> None:
    joined = opened(combine([SingleHdf5ToZarr(str(path)).translate() for path in months]))
    expected = concatenated(months)
    assert joined.sizes["time"] == sum(MONTHS)
    assert np.isnan(joined.sst[31 + 5]).all()
    for name in ("sst", "time_bnds", "area", "lat", "lon", "time"):
        np.testing.assert_array_equal(joined[name].values, expected[name].values, name)
        assert joined[name].dims == expected[name].dims
        assert joined[name].dtype == expected[name].dtype
    assert joined.sst.attrs == expected.sst.attrs
    assert joined.attrs["title"] == "months"


def test_netcdf3_files_of_different_length_are_joined_along_time(tmp_path: Path) -> None:
    paths = [
        make_month(tmp_path / f"{first}.nc", first, count, format="NETCDF3_CLASSIC")
        for first, count in ((0, 31), (31, 3), (34, 28))
    ]
    joined = opened(combine([NetCDF3ToZarr(str(path)).translate() for path in paths]))
    xr.testing.assert_equal(joined, concatenated(paths))


def test_an_unwritten_chunk_is_not_masked_by_the_fill_value_of_another_file(tmp_path: Path) -> None:
    for number in range(2):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            time = file.create_dataset("time", data=np.arange(2.0) + 2 * number)
            time.make_scale("time")
            values = file.create_dataset("v", (2, 3), "<i2", chunks=(1, 3), compression=4, fillvalue=0)
            values.dims[0].attach_scale(time)
            values.attrs["_FillValue"] = np.int16(-999)
            values[0] = [1, 0, -999]
            if number == 0:
                values[1] = 5
    references = [SingleHdf5ToZarr(tmp_path / f"{number}.h5").translate() for number in range(2)]
    joined = opened(combine(references))
    np.testing.assert_array_equal(joined.v, [[1, 0, np.nan], [5, 5, 5], [1, 0, np.nan], [0, 0, 0]])


@pytest.mark.parametrize("compressed", [False, True])
def test_steps_in_a_chunk_for_many_more_are_joined(tmp_path: Path, compressed: bool) -> None:
    paths = [tmp_path / "0.nc", tmp_path / "1.nc"]
    for number, path in enumerate(paths):
        with netCDF4.Dataset(path, "w") as file:
            file.createDimension("time", None)
            for name in ("time", "flux"):
                file.createVariable(name, "f8", ("time",), zlib=compressed)[:] = np.arange(3.0) + 3 * number
    with h5py.File(paths[0]) as file:
        assert file["flux"].chunks == (512,)
    joined = opened(combine([SingleHdf5ToZarr(str(path)).translate() for path in paths]))
    np.testing.assert_array_equal(joined.flux, np.arange(6.0))


def test_variables_of_several_files_are_merged(tmp_path: Path) -> None:
    from kerchunk.combine import merge_vars

    for name in ("one", "other"):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file[name] = np.arange(4000.0)
    merged = merge_vars([SingleHdf5ToZarr(tmp_path / f"{name}.h5").translate() for name in ("one", "other")])
    assert set(opened(merged)) == {"one", "other"}


def test_references_are_of_the_form_that_kerchunk_gives(months: list[Path]) -> None:
    from kerchunk.hdf import SingleHdf5ToZarr as Theirs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = Theirs(str(months[0]), inline_threshold=0).translate()
    ours = SingleHdf5ToZarr(str(months[0]), inline_threshold=0).translate()
    assert ours.keys() == theirs.keys() == {"version", "refs"}
    assert ours["refs"]["sst/3.0.0"] == theirs["refs"]["sst/3.0.0"]
    metadata = {key for key in ours["refs"] if key.rpartition("/")[2].startswith(".z")}
    bare = {"bnds/.zarray", "bnds/.zattrs"}  # a dimension without a variable, which kerchunk takes for one
    assert metadata == {key for key in theirs["refs"] if key.rpartition("/")[2].startswith(".z")} - bare
    assert {type(value) for value in ours["refs"].values()} == {str, list}


# --- parameters


@pytest.fixture
def ocean(tmp_path: Path) -> Path:
    return make_ocean(tmp_path / "ocean.h5")


@pytest.fixture
def memory_url(ocean: Path) -> Iterator[str]:
    fsspec.filesystem("memory").pipe_file("/room/ocean.h5", ocean.read_bytes())
    yield "memory://room/ocean.h5"
    fsspec.filesystem("memory").store.clear()


def quiet(*given: Any, **parameters: Any) -> Any:
    return SingleHdf5ToZarr(*given, error="ignore", **parameters).translate()


def test_paths_urls_and_open_files_give_the_same_references(ocean: Path, memory_url: str) -> None:
    expected = quiet(str(ocean), url=memory_url)
    assert expected["refs"]["grid/temp/1.0"][0] == memory_url
    assert quiet(ocean, url=memory_url) == expected
    assert quiet(memory_url, storage_options={}) == expected
    with ocean.open("rb") as file:
        assert quiet(file, memory_url) == expected
        assert not file.closed
    assert quiet(io.BytesIO(ocean.read_bytes()), memory_url) == expected
    with fsspec.open(memory_url) as file:
        assert quiet(file, memory_url) == expected
    with h5py.File(ocean) as file:
        assert quiet(file, memory_url) == expected


def test_a_group_of_h5py_is_the_root_of_the_references(ocean: Path) -> None:
    with h5py.File(ocean) as file:
        assert "temp/1.0" in quiet(file["grid"], str(ocean))["refs"]


def test_an_open_file_needs_a_url(ocean: Path) -> None:
    with ocean.open("rb") as file, pytest.raises(ValueError, match="give the url"):
        SingleHdf5ToZarr(file)


def test_untranslatable_variables_cause_a_warning(ocean: Path) -> None:
    with pytest.warns(ProblemWarning) as caught:
        references = SingleHdf5ToZarr(ocean).translate()
    assert {str(one.message).split(":")[0] for one in caught} == {"/ragged", "/grid/temp"}
    assert {one.filename for one in caught} == {__file__}
    assert "time/0" in references["refs"]


@pytest.mark.parametrize("error", ["raise", "pdb"])
def test_what_cannot_be_translated_is_an_error_where_one_is_wanted(ocean: Path, error: str) -> None:
    with pytest.raises(ProblemsFound, match=f"1 problem found with error='{error}'") as caught:
        SingleHdf5ToZarr(ocean, error=error).translate()
    assert caught.value.problems[0].path == "/ragged"


def test_untranslatable_variables_are_left_out_silently_on_request(ocean: Path) -> None:
    assert "ragged/.zarray" not in SingleHdf5ToZarr(ocean, error="ignore").translate()["refs"]


def test_a_file_that_is_not_there_is_an_error_whatever_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(H5ZarrError, match="no such file"):
        quiet(str(tmp_path / "missing.h5"))


@pytest.mark.parametrize(("threshold", "inlined"), [(500, True), (32, True), (31, False), (0, False), (-1, False)])
def test_small_arrays_are_inlined(ocean: Path, threshold: int, inlined: bool) -> None:
    reference = quiet(ocean, inline_threshold=threshold)["refs"]["time/0"]
    assert isinstance(reference, str) == inlined


def test_the_other_forms_of_output(ocean: Path) -> None:
    references = quiet(ocean)["refs"]
    assert quiet(ocean, spec=0) == references
    out: dict[str, Any] = {}
    assert quiet(ocean, out=out) == {"version": 1, "refs": references}
    assert out == references


def test_an_output_that_must_be_flushed_is(ocean: Path) -> None:
    class Mapper(dict[str, Any]):
        flushed = False

        def flush(self) -> None:
            self.flushed = True

    out = Mapper()
    assert quiet(ocean, out=out) is out
    assert out.flushed
    assert dict(out) == quiet(ocean, spec=0)


@pytest.mark.parametrize("wrong", [{"vlen_encode": "leave"}, {"error": "shout"}])
def test_what_makes_no_sense_here_is_refused(ocean: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises((NotImplementedError, ValueError), match=next(iter(wrong.values()))):
        SingleHdf5ToZarr(ocean, **wrong)


def test_values_without_chunks_are_one_unless_they_are_to_be_cut(tmp_path: Path) -> None:
    path = tmp_path / "long.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 10_000)
        file.createVariable("v", "f8", ("x",))[:] = np.arange(10_000)
    assert NetCDF3ToZarr(path, mode="r").translate()["refs"]["v/0"][2] == 80_000
    cut = NetCDF3ToZarr(path, max_chunk_size=8_000).translate()
    assert cut["refs"]["v/9"][2] == 8_000
    np.testing.assert_array_equal(opened(cut).v, np.arange(10_000))


@pytest.mark.parametrize(
    "name", ["ocean.nc", "classic_several_records.nc", "fill_and_attribute.h5", "netcdf4_coordinates.nc"]
)
def test_samples_open_with_the_values_of_the_netcdf_engine(name: str) -> None:
    path = SAMPLES / name
    ours = opened(SingleHdf5ToZarr(path, error="ignore").translate(), mask_and_scale=False, decode_times=False)
    with xr.open_dataset(path, engine="netcdf4", mask_and_scale=False, decode_times=False) as theirs:
        for variable in theirs.variables:
            if theirs[variable].dtype.kind in "iuf":
                np.testing.assert_array_equal(ours[variable].values, theirs[variable].values, str(variable))


# --- the record of what Zarr cannot express


@pytest.mark.parametrize("spec", [0, 1])
def test_the_record_of_a_group_is_not_among_the_references(spec: int, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "typed.h5", "w") as file:
        file.attrs["level"] = file.create_group("g").attrs["level"] = np.int16(3)
        file["g/v"] = np.arange(4)
        file["g/v"].attrs["scale"] = np.float32(0.5)
    made = SingleHdf5ToZarr(str(tmp_path / "typed.h5"), spec=spec).translate()
    references = made["refs"] if spec else made
    assert [json.loads(references[f"{name}.zattrs"]) for name in ("", "g/")] == [{"level": 3}, {"level": 3}]
    assert "_record" not in json.dumps(made)


def test_an_attribute_of_the_file_that_has_the_name_of_the_record_is_kept(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "typed.h5", "w") as file:
        file.attrs["_nc_record"], file.attrs["level"] = "mine", np.int16(3)
    references = SingleHdf5ToZarr(str(tmp_path / "typed.h5"), spec=0).translate()
    assert json.loads(references[".zattrs"]) == {"_nc_record": "mine", "level": 3}


def test_text_can_only_be_embedded(ocean: Path) -> None:
    with pytest.raises(NotImplementedError, match="vlen_encode is 'leave', but text can only be embedded: 'embed'"):
        SingleHdf5ToZarr(ocean, vlen_encode="leave")
