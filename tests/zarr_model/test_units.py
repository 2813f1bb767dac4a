from __future__ import annotations

import pytest

from h5zarr.zarr_model.units import canonical_units


@pytest.mark.parametrize(
    "spellings",
    [
        ("m s-1", "m/s", "m s**-1", "m.s-1", "m s^-1", "m*s-1", "meters/second", " m  s-1 ", "s-1 m"),
        ("kg m-2 s-1", "kg/m2/s", "kg m**-2 s**-1", "kg/m^2/s"),
        ("degC", "Celsius", "degrees_C", "°C", "degree_Celsius"),
        ("K", "Kelvin", "degK"),
        ("degrees_north", "degree_N"),
        ("1", "", " "),
        ("s-1", "1/s"),
        ("%", "percent"),
    ],
    ids=str,
)
def test_spellings_of_a_unit_are_equal(spellings: tuple[str, ...]) -> None:
    assert len({canonical_units(one) for one in spellings}) == 1


@pytest.mark.parametrize(
    "others",
    [
        ("m", "km", "mm", "m2", "m-1", "M"),
        ("K", "degC", "k", "K m", "K/m"),
        ("mol mol-1", "kg kg-1", "1", "mol"),
        ("m/s", "s/m", "m s", "m/s2"),
        ("hPa", "Pa", "1e2 Pa", "100 Pa"),
        ("degrees_north", "degrees_east", "degree"),
        ("days", "hours", "day s", "s", "seconds"),
        ("log(re 1 mW)", "log(re 1 W)", "m (s)", "m//s", "none", "m s-1.5", "10^3 m", "1-2"),
        ("1", "1 2", "2"),
    ],
    ids=str,
)
def test_other_units_are_not_equal(others: tuple[str, ...]) -> None:
    assert len({canonical_units(one) for one in others}) == len(others)
