"""Attributes as JSON, and the record of their types."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from h5zarr.encode.attributes import attribute_type, encode_attribute


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("metre", "metre"),
        (np.array(5, "<i2"), 5),
        (np.array([5], ">i2"), 5),
        (np.array([[5]], "<i2"), 5),
        (np.array([1, 2], "u1"), [1, 2]),
        (np.array([[1, 2], [3, 4]], "<i4"), [[1, 2], [3, 4]]),
        (np.array(1.0), 1.0),
        (np.array(0.01, "<f4"), 0.009999999776482582),
        (np.array([True, False]), [True, False]),
        (np.array(1 + 2j, "<c8"), [1.0, 2.0]),
        (np.array([1j, 2j]), [[0.0, 1.0], [0.0, 2.0]]),
        (np.array(b"\1\2", "V2"), "AQI="),
        (np.array([], "<f4"), []),
        (["a", "b"], ["a", "b"]),
        (["a"], "a"),
        ([["a", "b"], ["c", "d"]], [["a", "b"], ["c", "d"]]),
        ([np.array([1, 2]), np.array([3])], [[1, 2], [3]]),
        ({"x": np.array(1, "i1"), "y": "z"}, {"x": 1, "y": "z"}),
        (np.array([(1, 2.5)], [("a", "i1"), ("b", "<f4")]), {"a": 1, "b": 2.5}),
        ([], []),
    ],
)
def test_the_json_form_of_an_attribute(value: Any, expected: Any) -> None:
    encoded = encode_attribute(value)
    assert encoded == expected
    assert json.loads(json.dumps(encoded)) == expected
    assert type(encoded) is type(expected)


def test_long_doubles_become_doubles() -> None:
    assert encode_attribute(np.array([0.1, 2], np.longdouble)) == [0.1, 2.0]


def test_nan_and_infinities_survive() -> None:
    encoded = json.loads(json.dumps(encode_attribute(np.array([np.nan, np.inf, -np.inf], "<f4"))))
    np.testing.assert_array_equal(encoded, [np.nan, np.inf, -np.inf])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array(5, "<i2"), "int16"),
        (np.array([1.5], ">f4"), "float32"),
        (np.array([1j], "<c8"), "complex64"),
        (np.array(5, "<i8"), None),
        (np.array(1.5), None),
        (np.array([], "<f8"), "float64"),
        ("text", None),
        (["a"], None),
        ([], None),
        ({"a": np.array(1, "i1"), "b": np.array(1.5)}, (("a", "int8"), ("b", "float64"))),
        ([{"a": np.array(1, "i1")}, {"a": np.array(2, "i1")}], (("a", "int8"),)),
        ({"a": "text"}, None),
        ({"a": np.array([1, 2])}, None),
    ],
)
def test_the_type_is_recorded_if_json_does_not_show_it(value: Any, expected: Any) -> None:
    assert attribute_type(value) == expected
