from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h5zarr.containers.icechunk.extras import encode_order, restore_nodes, restore_order


@given(st.lists(st.text(max_size=3), unique=True))
def test_an_order_is_restored_from_any_other(paths: list[str]) -> None:
    assert list(restore_order(reversed(paths), encode_order(paths))) == paths


def test_what_is_sorted_needs_no_order() -> None:
    assert encode_order(["/", "/a", "/b"]) == []


@pytest.mark.parametrize("order", [None, [0], [0, 0], [1, 2], ["b", "a"], {"a": 1}, [True, False]], ids=str)
def test_an_invalid_order_leaves_the_names_sorted(order: Any) -> None:
    assert list(restore_order(["/b", "/a"], order)) == ["/a", "/b"]


@pytest.mark.parametrize("told", [None, [], {"words": []}, {"words": {"/b": ["x"], "/a": {}}}, {"words": {"/a": [3]}}])
def test_invalid_extras_change_nothing(told: Any) -> None:
    nodes = {"/a": {"attributes": {"x": "NaN"}}}
    assert restore_nodes(nodes, told) == nodes


def test_only_words_of_the_attributes_that_are_named_are_numbers() -> None:
    nodes = {"/a": {"attributes": {"x": ["Infinity", 1.0, {"y": "-Infinity"}], "text": "NaN"}}}
    (node,) = restore_nodes(nodes, {"words": {"/a": ["x"]}}).values()
    assert node["attributes"] == {"x": [float("inf"), 1.0, {"y": float("-inf")}], "text": "NaN"}
