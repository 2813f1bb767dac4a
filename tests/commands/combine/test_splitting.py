"""A random dataset, split at random into files that store it in many ways, and joined again, equals the whole.

The whole is what xarray makes of the files: each decoded by the netCDF library, and then concatenated.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import h5zarr

EPOCH = "days since 2000-01-01"
CONTAINERS = ("cube.json", "cube.json.gz", "cube.parquet")


@dataclass(frozen=True)
class FileForm:
    """How one file stores its part of the dataset."""

    length: int
    format: str
    chunks: tuple[int, int] | None
    zlib: bool
    shuffle: bool
    dtype: str
    packing: tuple[float, float] | None
    fill: float | None
    units: str
    time_dtype: str
    has_w: bool


@st.composite
def file_forms(draw: st.DrawFn, *, varied: bool) -> FileForm:
    """Return the form of a file. Unless `varied`, only lengths and chunks along the axis differ."""

    def one(usual: Any, *others: Any) -> Any:
        return draw(st.sampled_from([usual, usual, *others])) if varied else usual

    form = one("NETCDF4", "NETCDF3_64BIT_OFFSET", "NETCDF4_CLASSIC")
    dtype = one("f4", "i2", "f8", "i4")
    packing = draw(st.sampled_from([None, (0.5, 0.0), (0.25, 10.0), (2.0, -3.0)])) if dtype == "i2" else None
    chunk = draw(st.sampled_from([1, 2, 3, 7]))
    return FileForm(
        length=draw(st.integers(1, 9)),
        format=form,
        chunks=None if form.startswith("NETCDF3") else (chunk, one(40, 16)),
        zlib=one(True, False),
        shuffle=one(True, False),
        dtype=dtype,
        packing=packing,
        fill=one(None, -999, -7),
        units=one(EPOCH, "hours since 1999-12-31", "days since 2000-01-05 12:00"),
        time_dtype=one("f8", "i4") if draw(st.booleans()) else "f8",
        has_w=one(True, False),
    )


def write(path: Path, form: FileForm, first: int) -> Path:
    """Write v(time, x), sometimes also w, and time with bounds."""
    days = np.arange(first, first + form.length)
    when = netCDF4.num2date(days, EPOCH, "standard")
    with netCDF4.Dataset(path, "w", format=form.format) as file:
        file.createDimension("time", None)
        file.createDimension("x", 40)
        file.createDimension("bnds", 2)
        numbers = netCDF4.date2num(when, form.units, "standard")
        whole = form.time_dtype == "i4" and np.array_equal(numbers, np.rint(numbers))
        time = file.createVariable("time", "i4" if whole else "f8", ("time",))
        time.units, time.calendar, time.bounds = form.units, "standard", "time_bnds"
        time[:] = numbers
        bounds = netCDF4.date2num(netCDF4.num2date(days[:, None] + [[0, 1]], EPOCH), form.units, "standard")
        file.createVariable("time_bnds", "f8", ("time", "bnds"))[:] = bounds
        file.createVariable("x", "f8", ("x",))[:] = np.arange(40)
        values = days[:, None] * 10.0 + np.arange(40)[None]
        for name in ("v", "w") if form.has_w else ("v",):
            how: dict[str, Any] = {} if form.fill is None else {"fill_value": form.fill}
            if form.chunks is not None:
                how |= {"chunksizes": form.chunks, "zlib": form.zlib, "shuffle": form.shuffle}
            variable = file.createVariable(name, form.dtype, ("time", "x"), **how)
            if form.packing is not None:
                variable.scale_factor, variable.add_offset = form.packing
            masked = np.ma.masked_array(values, mask=np.zeros(values.shape, bool))
            if form.fill is not None:
                masked[..., 3] = np.ma.masked
            variable[:] = masked
    return path


def expected(paths: list[Path]) -> xr.Dataset:
    opened = [xr.open_dataset(path, engine="netcdf4").load() for path in paths]
    for one in opened:
        one.close()
    how: dict[str, Any] = {"data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "exact"}
    return xr.concat(opened, "time", combine_attrs="override", **how)


def check_same(found: xr.Dataset, whole: xr.Dataset) -> None:
    assert set(found.variables) == set(whole.variables)
    for name in whole.variables:
        one, other = found[name], whole[name]
        assert one.dims == other.dims, name
        if other.dtype.kind == "M":
            np.testing.assert_array_equal(one.values.astype("M8[ns]"), other.values.astype("M8[ns]"), name)
            continue
        assert one.dtype == other.dtype, name
        np.testing.assert_array_equal(one.values, other.values, name)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_dataset_that_is_split_into_files_and_joined_is_the_same(tmp_path_factory: Any, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("split")
    forms = data.draw(st.lists(file_forms(varied=True), min_size=1, max_size=5))
    check_joined(folder, forms, data.draw(st.permutations(range(len(forms)))), data)


def check_joined(folder: Path, forms: list[FileForm], order: list[int], data: st.DataObject) -> None:
    starts = np.cumsum([0, *[one.length for one in forms]]).tolist()
    paths = [write(folder / f"{n}.nc", form, starts[n]) for n, form in enumerate(forms)]
    out = folder / data.draw(st.sampled_from(CONTAINERS))
    inlined = data.draw(st.sampled_from([None, 0, 3000]))
    try:
        cube = h5zarr.combine([paths[n] for n in order], out, max_inline_bytes=inlined)
    except h5zarr.NotJoinable as error:
        assert "converting them takes" in str(error)  # noqa: PT017  # times, if nothing may be inlined
        assert inlined is not None
        return
    assert not cube.problems
    with xr.open_dataset(out, engine="h5zarr") as opened:
        check_same(opened.load(), expected(paths))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_zarr_and_icechunk_read_what_was_split(tmp_path_factory: Any, data: st.DataObject) -> None:
    """With chunks of different lengths, through zarr itself and through Icechunk, where these versions know them."""
    import zarr

    folder = tmp_path_factory.mktemp("zarr")
    forms = data.draw(st.lists(file_forms(varied=False), min_size=1, max_size=5))
    starts = np.cumsum([0, *[one.length for one in forms]]).tolist()
    paths = [write(folder / f"{n}.nc", form, starts[n]) for n, form in enumerate(forms)]
    cube = h5zarr.combine(paths, folder / "cube.json")
    if cube.uneven and zarr.config.get("array.rectilinear_chunks", None) is None:
        return
    whole = expected(paths)
    with zarr.config.set({"array.rectilinear_chunks": True}):
        opened = xr.open_zarr(h5zarr.open_store(folder / "cube.json"), consolidated=False)
        np.testing.assert_array_equal(opened["v"].values, whole["v"].values)
        icechunk = pytest.importorskip("icechunk")
        if cube.uneven and int(icechunk.__version__.partition(".")[0]) < 2:
            return
        h5zarr.convert(folder / "cube.json", f"icechunk+file://{folder}/repository")
        from tests.containers.icechunk.repositories import open_repository

        session = open_repository(folder / "repository").readonly_session("main")
        there = xr.open_zarr(session.store, consolidated=False)
        np.testing.assert_array_equal(there["v"].values, whole["v"].values)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_tiles_of_a_dataset_are_the_same(tmp_path_factory: Any, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("tiles")
    times = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    widths = data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=3))
    edges = np.cumsum([0, *times]).tolist(), np.cumsum([0, *widths]).tolist()
    values = np.arange(sum(times) * sum(widths), dtype="f4").reshape(sum(times), sum(widths)) + 1
    present = []
    for row in range(len(times)):
        for column in range(len(widths)):
            here = slice(*edges[0][row : row + 2]), slice(*edges[1][column : column + 2])
            is_there = data.draw(st.integers(0, 5)) > 0 or not present
            if not is_there:
                continue
            present.append(here)
            with netCDF4.Dataset(folder / f"{row}-{column}.nc", "w") as file:
                file.createDimension("time", None)
                file.createDimension("x", widths[column])
                file.createVariable("time", "f8", ("time",))[:] = np.arange(sum(times))[here[0]]
                file.createVariable("x", "f8", ("x",))[:] = np.arange(sum(widths))[here[1]]
                chunks = (data.draw(st.sampled_from([1, 2])), data.draw(st.sampled_from([4, widths[column]])))
                how = {"chunksizes": (chunks[0], min(chunks[1], widths[column])), "zlib": data.draw(st.booleans())}
                file.createVariable("v", "f4", ("time", "x"), **how)[:] = values[here]
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
