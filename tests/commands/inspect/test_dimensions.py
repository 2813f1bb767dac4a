from __future__ import annotations

import numpy as np

from h5zarr.commands.inspect.dimensions import find_dimensions
from tests.commands.inspect.made import attribute, dataset, dimension_list, file, group, integer, ocean, scale, space


def test_a_netcdf_dimension_without_values_has_no_variable():
    time, lat = find_dimensions(ocean()).of_group("/")
    assert (time.name, time.length, time.unlimited, time.has_variable) == ("time", 240, True, True)
    assert (lat.name, lat.length, lat.unlimited, lat.has_variable) == ("lat", 180, False, False)


def test_a_scale_keeps_a_name_that_says_more_than_its_path():
    made = file(
        group(1, {"lat_values": 2, "lon": 3}),
        dataset(2, None, space(3), *scale("latitude")),
        dataset(3, None, space(3), *scale("/geo/lon")),
    )
    assert [each.label for each in find_dimensions(made).of_group("/")] == ["latitude", ""]


def test_an_unlimited_dimension_is_as_long_as_its_longest_variable():
    t = dataset(2, None, space(0, unlimited=(0,)), *scale("t"))
    v = dataset(3, None, space(7, unlimited=(0,)), dimension_list(2))
    dimensions = find_dimensions(file(group(1, {"t": 2, "v": 3}), t, v))
    assert dimensions.of_group("/")[0].length == 7


def test_a_coordinate_of_rank_two_names_its_axes_by_number():
    def number(value: int):
        return attribute("_Netcdf4Dimid", np.array(value, np.int32), integer())

    y = dataset(2, None, space(3), *scale("y"), number(1))
    x = dataset(
        3,
        None,
        space(2, 3),
        *scale("x"),
        number(0),
        attribute("_Netcdf4Coordinates", np.array([0, 1], np.int32), integer()),
    )
    dimensions = find_dimensions(file(group(1, {"x": 3, "y": 2}), x, y))
    assert dimensions.of_axes("/x", x) == ("x", "y")
    assert [each.name for each in dimensions.of_group("/")] == ["x", "y"]


def test_axes_without_a_scale_have_no_name():
    made = file(group(1, {"v": 2}), dataset(2, None, space(3, 4)))
    assert find_dimensions(made).of_axes("/v", made.objects[2]) == (None, None)  # type: ignore[arg-type]


def test_a_reference_to_a_dataset_that_is_not_a_scale_is_ignored():
    made = file(group(1, {"v": 2}), dataset(2, None, space(3), dimension_list(77)))
    assert find_dimensions(made).of_axes("/v", made.objects[2]) == (None,)  # type: ignore[arg-type]
