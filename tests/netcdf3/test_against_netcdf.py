"""Every classic file that the netCDF library opens, compared with it: values through zarr, dimensions, attributes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import h5zarr
from h5zarr.commands.translate.translation import Translation
from h5zarr.zarr_model.hierarchy import ArrayNode
from tests.collections_of_files import SAMPLES, classic_samples, shared_classic_files
from tests.netcdf3.classic import Var, encode_classic, read_back

REFERRING = {"inline_bytes": 0, "chunk_bytes": 40}
STREAMING = {"classic_streaming.nc", "classic_streaming_cdf5.nc"}  # netCDF-C reads their count as four billion


def compare(path: Path, options: dict[str, Any]) -> Translation:
    translation = h5zarr.translate(path, **(options or {}))
    values = read_back(translation.hierarchy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with netCDF4.Dataset(path) as file:
            file.set_auto_maskandscale(False)
            file.set_auto_chartostring(False)
            assert set(values) == set(file.variables)
            compare_attributes(translation.hierarchy.nodes["/"].attributes, file)
            for name, theirs in file.variables.items():
                array = translation.hierarchy.nodes[f"/{name}"]
                assert isinstance(array, ArrayNode)
                assert array.dimension_names == theirs.dimensions
                expected = np.asarray(theirs[...])
                assert values[name].dtype == expected.dtype
                assert values[name].shape == expected.shape
                assert values[name].tobytes() == expected.tobytes()
                compare_attributes(array.attributes, theirs)
    return translation


def compare_attributes(ours: Any, theirs: Any) -> None:
    names = {name for name in theirs.ncattrs() if name != "_FillValue"}
    assert {name for name in ours if name != "_FillValue"} == names
    for name in names:
        value = theirs.getncattr(name)
        if isinstance(value, str) and "\N{REPLACEMENT CHARACTER}" in value:
            continue  # not UTF-8: ours is Latin-1
        expected = value if isinstance(value, str) else np.asarray(value).tolist()
        assert ours[name] == expected


@pytest.mark.parametrize("options", [{}, REFERRING], ids=["default", "small chunks, nothing inlined"])
@pytest.mark.parametrize(
    "path", [path for path in classic_samples() if path.name not in STREAMING], ids=lambda path: path.name
)
def test_samples_read_as_the_netcdf_library_reads_them(path: Path, options: dict[str, Any]) -> None:
    assert compare(path, options).problems == ()


@pytest.mark.parametrize("name", sorted(STREAMING))
def test_streaming_samples_have_the_records_that_they_have(name: str) -> None:
    translation = h5zarr.translate(SAMPLES / name)
    assert translation.problems == ()
    values = read_back(translation.hierarchy)
    assert values["time"].tolist() == list(range(6))
    assert values["flag"].tolist() == np.arange(18).reshape(6, 3).tolist()


@pytest.mark.parametrize("options", [{}, REFERRING], ids=["default", "small chunks, nothing inlined"])
@pytest.mark.parametrize("folder", ["corpus", "traps"])
def test_real_files_read_as_the_netcdf_library_reads_them(folder: str, options: dict[str, Any]) -> None:
    paths = [path for path in shared_classic_files(folder) if "bad_" not in path.name]
    if not paths:
        pytest.skip(f"the collection {folder} is not beside the project")
    for path in paths:
        if options is REFERRING and path.stat().st_size > 50_000:
            continue  # zarr would read thousands of tiny chunks one by one
        assert compare(path, options).problems == (), path


def test_fill_values_letters_and_unsigned_bytes_are_as_xarray_shows_them(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    out = tmp_path / "refs.json"
    options = {"fo": str(out), "remote_protocol": "file"}
    for name in ("classic_unsigned.nc", "classic_several_records.nc", "classic_by_netcdf.nc"):
        h5zarr.translate(SAMPLES / name, out)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = xr.open_dataset("reference://", engine="zarr", storage_options=options, chunks=None).load()
            theirs = xr.open_dataset(SAMPLES / name, engine="netcdf4").load()
        assert dict(ours.sizes) == dict(theirs.sizes)
        for variable in theirs.variables:
            if variable == "wind":  # JSON does not say that its scale factor is a float32
                assert np.array_equal(ours[variable].values.astype("f4"), theirs[variable].values, equal_nan=True)
            else:
                assert ours[variable].identical(theirs[variable]) or ours[variable].equals(theirs[variable]), variable


CODES = ("i1", "S1", "i2", "i4", "f4", "f8")


@st.composite
def files(draw: st.DrawFn) -> tuple[int, bytes]:
    """Return the version and the bytes of a random file."""
    version = draw(st.sampled_from((1, 2, 5)))
    codes = (*CODES, "u1", "u2", "u4", "i8", "u8") if version == 5 else CODES
    dimensions: dict[str, int | None] = {f"d{number}": draw(st.integers(1, 5)) for number in range(3)}
    if has_records := draw(st.booleans()):
        dimensions["t"] = None
    records = draw(st.integers(0, 5)) if has_records else 0
    chance = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    variables = []
    for number in range(draw(st.integers(0, 5))):
        names = draw(st.lists(st.sampled_from(("d0", "d1", "d2")), max_size=3))
        if has_records and draw(st.booleans()):
            names = ["t", *names]
        code = draw(st.sampled_from(codes))
        shape = [records if name == "t" else dimensions[name] or 0 for name in names]
        raw = chance.integers(65, 90, int(np.prod(shape)) * int(code[1:]), np.uint8).tobytes()
        variables.append(
            Var(name=f"v{number}", code=code, dimensions=names, values=np.frombuffer(raw, code).reshape(shape))
        )
    content = encode_classic(
        version,
        dimensions,
        variables,
        {"title": draw(st.text("abcé", max_size=6)), "n": np.arange(draw(st.integers(1, 4)), dtype="i2")},
        records=records,
        header_padding=draw(st.sampled_from((0, 0, 7, 500))),
        alignment=draw(st.sampled_from((4, 4, 64))),
    )
    return version, content


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=files(), small=st.booleans())
def test_random_files_read_as_the_netcdf_library_reads_them(
    tmp_path: Path, made: tuple[int, bytes], small: bool
) -> None:
    path = tmp_path / "random.nc"
    path.write_bytes(made[1])
    assert compare(path, REFERRING if small else {}).problems == ()
