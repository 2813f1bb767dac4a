"""Small files, made here, and what their variables and dimensions are called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
from h5py import h5a, h5s, h5t

from h5zarr.netcdf4.named_file import NamedVariable, Naming
from tests.truth.names_against_netcdf import compare, named
from tests.truth.netcdf_library import NetcdfLibrary

LIBRARY = NetcdfLibrary()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made.h5"


def dimensions(naming: Naming) -> dict[str, tuple[str, ...]]:
    return {one.path: one.dimensions for one in naming.variables()}


def shapes(naming: Naming) -> dict[str, tuple[int, ...]]:
    return {one.path: one.shape for one in naming.variables()}


def variable(naming: Naming, path: str) -> NamedVariable:
    (found,) = [one for one in naming.variables() if one.path == path]
    return found


def scale(group: h5py.Group, name: str, length: int, label: str = "", *, unlimited: bool = False) -> h5py.Dataset:
    made = group.create_dataset(name, (length,), "f8", maxshape=(None,) if unlimited else None)
    made.make_scale(label or name)
    return made


def attached(group: h5py.Group, name: str, shape: tuple[int, ...], *scales: h5py.Dataset | None) -> h5py.Dataset:
    unlimited = [one is not None and one.maxshape[0] is None for one in scales]
    limits = tuple(None if free else extent for free, extent in zip(unlimited, shape, strict=True))
    made = group.create_dataset(name, shape, "f4", maxshape=limits if any(unlimited) else None)
    for axis, one in enumerate(scales):
        if one is not None:
            made.dims[axis].attach_scale(one)
    return made


def agrees_with_netcdf(path: Path) -> bool:
    found = compare(path, LIBRARY)
    return not found.unopened and not found.differences


@pytest.fixture(scope="module", autouse=True)
def _library_ends() -> Iterator[None]:
    yield
    LIBRARY.close()


# --- dimensions that the file names


def test_a_dimension_without_values_is_a_dimension_and_no_variable(path: Path) -> None:
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createVariable("v", "f4", ("x",))
    naming = named(path)
    assert dimensions(naming) == {"/v": ("x",)}
    (bare,) = naming.bare_dimensions()
    assert (bare.path, bare.length, bare.unlimited) == ("/x", 3, False)


def test_an_unlimited_dimension_is_as_long_as_its_longest_variable_in_any_group(path: Path) -> None:
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createVariable("short", "f4", ("time",))[:2] = 1
        file.createGroup("inner").createVariable("long", "f4", ("time",))[:5] = 1
        file.createVariable("empty", "f4", ("time",))
    assert shapes(named(path)) == {"/short": (5,), "/empty": (5,), "/inner/long": (5,)}
    assert agrees_with_netcdf(path)


def test_a_variable_with_the_name_of_a_dimension_that_it_does_not_describe_loses_its_prefix(path: Path) -> None:
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createDimension("y", 2)
        file.createVariable("x", "f4", ("y",))
    with h5py.File(path) as file:
        assert "_nc4_non_coord_x" in file
    assert dimensions(named(path)) == {"/x": ("y",)}
    assert agrees_with_netcdf(path)


def test_the_prefix_stays_where_the_name_without_it_is_taken(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["x"] = 1.0
        file["_nc4_non_coord_x"] = 2.0
    assert list(dimensions(named(path))) == ["/_nc4_non_coord_x", "/x"]


def test_a_scale_of_rank_two_knows_its_axes_by_number(path: Path) -> None:
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("y", 2)
        file.createDimension("x", 3)
        file.createVariable("y", "f4", ("y", "x"))
    assert dimensions(named(path)) == {"/y": ("y", "x")}
    assert agrees_with_netcdf(path)


def test_of_several_scales_on_one_axis_the_last_names_it(path: Path) -> None:
    with h5py.File(path, "w") as file:
        made = attached(file, "v", (3,), scale(file, "first", 3))
        made.dims[0].attach_scale(scale(file, "last", 3))
    assert dimensions(named(path))["/v"] == ("last",)
    assert agrees_with_netcdf(path)


def test_one_scale_may_name_two_axes(path: Path) -> None:
    with h5py.File(path, "w") as file:
        x = scale(file, "x", 3)
        attached(file, "v", (3, 3), x, x)
    assert dimensions(named(path))["/v"] == ("x", "x")
    assert agrees_with_netcdf(path)


def test_a_dimension_of_a_group_above_has_its_bare_name(path: Path) -> None:
    with h5py.File(path, "w") as file:
        attached(file.create_group("a/b"), "v", (3,), scale(file, "x", 3))
    assert dimensions(named(path))["/a/b/v"] == ("x",)


def test_the_second_name_of_a_numbered_scale_names_the_dimension_as_in_netcdf(path: Path) -> None:
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createVariable("x", "f4", ("x",))
        file.createVariable("v", "f4", ("x",))
    with h5py.File(path, "a") as file:
        file["alias"] = file["x"]
    assert dimensions(named(path)) == {"/x": ("alias",), "/v": ("alias",), "/alias": ("alias",)}
    assert agrees_with_netcdf(path)


def test_a_class_that_the_library_does_not_take_for_a_scale_makes_none(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("v", (3,), "f4").attrs["CLASS"] = np.bytes_("DIMENSION_SCALE")  # 15 bytes, without an end
    naming = named(path)
    assert dimensions(naming) == {"/v": ("phony_dim_0",)}
    assert list(variable(naming, "/v").attributes) == ["CLASS"]


# --- dimensions without names


def test_axes_without_a_scale_get_numbered_names_by_length(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("a", (3, 4), "f4")
        file.create_dataset("b", (4, 4), "f4")
        file.create_dataset("c", (4,), "f4", maxshape=(None,))
    naming = named(path)
    assert dimensions(naming) == {
        "/a": ("phony_dim_0", "phony_dim_1"),
        "/b": ("phony_dim_1", "phony_dim_2"),
        "/c": ("phony_dim_3",),
    }
    assert agrees_with_netcdf(path)


def test_a_fitting_dimension_of_the_group_is_taken_before_one_is_made_up(path: Path) -> None:
    with h5py.File(path, "w") as file:
        scale(file, "x", 3)
        file.create_dataset("v", (3, 3), "f4")
        file.create_dataset("group/w", (3,), "f4")
    assert dimensions(named(path)) == {
        "/v": ("x", "phony_dim_2"),
        "/x": ("x",),
        "/group/w": ("phony_dim_1",),  # child groups come first
    }
    assert agrees_with_netcdf(path)


def test_a_fixed_axis_of_length_zero_is_unlimited_as_in_netcdf(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("a", (0,), "f4")
        file.create_dataset("b", (0,), "f4")
    naming = named(path)
    assert dimensions(naming) == {"/a": ("phony_dim_0",), "/b": ("phony_dim_1",)}
    assert [one.unlimited for one in naming.root.dimensions] == [True, True]
    assert agrees_with_netcdf(path)


def test_a_variable_that_netcdf_leaves_out_does_not_change_the_names_of_others(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("a", (7,), h5py.ref_dtype)
        file.create_dataset("b", (5,), "f4")
        file.create_dataset("c", (2,), np.dtype(("i4", (2,))))
        file.create_dataset("d", (3,), np.dtype(("i4", (2,))))  # not left out: netCDF has now met the type
        file.create_dataset("e", (4,), "f4")
    assert dimensions(named(path)) == {
        "/a": ("phony_dim_3",),
        "/b": ("phony_dim_0",),
        "/c": ("phony_dim_4",),
        "/d": ("phony_dim_1",),
        "/e": ("phony_dim_2",),
    }
    assert agrees_with_netcdf(path)


def test_scales_on_the_second_axis_only_count_for_netcdf_as_none(path: Path) -> None:
    with h5py.File(path, "w") as file:
        attached(file, "v", (2, 3), None, scale(file, "x", 3))
    assert dimensions(named(path))["/v"] == ("phony_dim_1", "x")  # found by its length
    assert agrees_with_netcdf(path)


# --- what netCDF refuses, or shows wrongly


def test_an_axis_without_a_scale_beside_one_with_a_scale_gets_a_made_up_name(path: Path) -> None:
    with h5py.File(path, "w") as file:
        attached(file, "v", (3, 3), scale(file, "x", 3), None)
    assert dimensions(named(path))["/v"] == ("x", "phony_dim_1")


def test_a_scale_of_another_length_does_not_name_the_axis_and_that_is_said(path: Path) -> None:
    with h5py.File(path, "w") as file:
        attached(file, "v", (4,), scale(file, "x", 3))
    naming = named(path)
    assert dimensions(naming)["/v"] == ("phony_dim_1",)
    (problem,) = naming.problems
    assert (problem.path, problem.kind) == ("/v", "dimension")
    assert "axis 0 has 4 elements, but its dimension '/x' has 3" in problem.message


def test_a_scale_of_a_group_beside_gives_its_bare_name(path: Path) -> None:
    with h5py.File(path, "w") as file:
        attached(file.create_group("b"), "v", (3,), scale(file.create_group("a"), "x", 3))
    naming = named(path)
    assert dimensions(naming)["/b/v"] == ("x",)
    assert not naming.problems


def test_a_scale_of_a_group_beside_gives_no_name_that_means_another_length(path: Path) -> None:
    with h5py.File(path, "w") as file:
        scale(file, "x", 5)
        attached(file.create_group("b"), "v", (3,), scale(file.create_group("a"), "x", 3))
    assert dimensions(named(path))["/b/v"] == ("phony_dim_2",)


def test_within_a_group_one_name_has_one_length(path: Path) -> None:
    with h5py.File(path, "w") as file:
        group = file.create_group("g")
        attached(group, "v", (3,), scale(file, "x", 3))
        attached(group, "w", (5,), scale(group, "x", 5))
    naming = named(path)
    assert dimensions(naming)["/g/v"] == ("phony_dim_2",)
    assert dimensions(naming)["/g/w"] == ("x",)
    (problem,) = naming.problems
    assert problem.path == "/g/v"
    assert "'/x' of length 3 is called 'phony_dim_2' here" in problem.message


def test_two_dimensions_of_one_variable_do_not_share_a_name(path: Path) -> None:
    with h5py.File(path, "w") as file:
        group = file.create_group("g")
        attached(group, "v", (3, 3), scale(file, "x", 3), scale(group, "x", 3))
    assert dimensions(named(path))["/g/v"] == ("x", "phony_dim_2")


def test_scalars_and_null_dataspaces_have_no_axes(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["scalar"] = 1.0
        file["null"] = h5py.Empty("f4")
    assert shapes(named(path)) == {"/null": (), "/scalar": ()}


# --- order


def test_variables_come_in_the_order_of_creation_where_the_file_tracks_it(path: Path) -> None:
    for tracked, order in ((True, ["/b", "/a", "/c/d"]), (False, ["/a", "/b", "/c/d"])):
        with h5py.File(path, "w", track_order=tracked) as file:
            file["c/d"] = 1
            file["b"] = 1
            file["a"] = 1
        assert list(dimensions(named(path))) == order


# --- attributes


def test_notes_about_dimensions_are_hidden_and_only_those(path: Path) -> None:
    with netCDF4.Dataset(path, "w") as file:
        file.title = "t"
        file.createDimension("x", 3)
        file.createDimension("y", 3)
        file.createVariable("x", "f4", ("x",)).units = "m"
        file.createVariable("v", "f4", ("y", "x")).units = "K"
    with h5py.File(path, "a") as file:
        file["v"].attrs["CLASS"] = "IMAGE"
        file.attrs["NAME"] = "ours"
    naming = named(path)
    assert {one.path: list(one.attributes) for one in naming.variables()} == {"/x": ["units"], "/v": ["units", "CLASS"]}
    assert list(naming.root.attributes) == ["title", "NAME"]


def test_attributes_come_in_the_order_of_creation(path: Path) -> None:
    names = [f"{letter}{number}" for number in range(5) for letter in "zamq"]  # more than fit into a header
    with netCDF4.Dataset(path, "w") as file:
        for name in names:
            file.setncattr(name, 1)
    assert list(named(path).root.attributes) == names


@pytest.mark.parametrize(
    ("nbytes", "padding", "text", "is_scale"),
    [
        (16, h5t.STR_NULLTERM, "DIMENSION_SCALE", True),
        (h5t.VARIABLE, h5t.STR_NULLTERM, "DIMENSION_SCALE", True),
        (h5t.VARIABLE, h5t.STR_NULLTERM, "DIMENSION", False),
        (h5t.VARIABLE, h5t.STR_NULLTERM, "", False),
        (15, h5t.STR_NULLPAD, "DIMENSION_SCALE", False),
        (16, h5t.STR_NULLPAD, "DIMENSION_SCALE", False),
        (17, h5t.STR_NULLTERM, "DIMENSION_SCALE", False),
        (16, h5t.STR_NULLTERM, "DIMENSION", False),
        (16, h5t.STR_NULLTERM, "", False),
    ],
)
def test_a_scale_is_what_its_class_says_in_one_of_two_forms(
    nbytes: int, padding: int, text: str, is_scale: bool, path: Path
) -> None:
    kind = h5t.C_S1.copy()
    kind.set_size(nbytes)
    kind.set_strpad(padding)
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(4.0)
        made = h5a.create(file["x"].id, b"CLASS", kind, h5s.create(h5s.SCALAR))
        form = h5py.string_dtype() if nbytes == h5t.VARIABLE else f"S{nbytes}"
        made.write(np.array(text.encode(), form))
    assert dimensions(named(path)) == {"/x": ("x" if is_scale else "phony_dim_0",)}
    # Of the library, so do versions since 2.2; those before compare fewer bytes, and take no text of variable length.
    if tuple(map(int, netCDF4.__hdf5libversion__.split(".")[:2])) >= (2, 2):
        assert agrees_with_netcdf(path)
