from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from h5zarr.zarr_model.hierarchy import GroupNode, Hierarchy
from h5zarr.zarr_model.nz.declare import declare_nz
from tests.containers.hierarchies import RawFile, make_array, make_hierarchy, v3_text

DECLARED = {
    "schema_url": "https://raw.githubusercontent.com/zarr-conventions/nz/refs/tags/v1/schema.json",
    "spec_url": "https://github.com/zarr-conventions/nz/blob/v1/README.md",
    "uuid": "d0a980b5-c644-4dcc-85a1-283799a58f40",
    "name": "NZ-1.0",
    "description": "Structural interoperability layer for scientific array conventions on Zarr v3",
}


def hierarchy_of(raw_file: RawFile, **arrays: Any) -> Hierarchy:
    return make_hierarchy(raw_file, {f"/{name}": array for name, array in arrays.items()})


def test_every_node_declares_nz_and_every_group_names_it(raw_file: RawFile) -> None:
    nodes = {
        "/g": GroupNode(attributes={"Conventions": "CF-1.8, ACDD-1.3"}),
        "/g/h": GroupNode(attributes={"conventions": "nz-1.0 CF-1.12", "zarr_conventions": [{"name": "other"}]}),
        "/g/v": make_array(raw_file, np.arange(3), attributes={"units": "K"}),
    }
    declared, problems = declare_nz(make_hierarchy(raw_file, nodes))
    assert problems == ()
    assert [node.attributes.get("conventions") for node in declared.nodes.values()] == [
        "NZ-1.0",
        "NZ-1.0 CF-1.8 ACDD-1.3",
        "NZ-1.0 CF-1.12",
        None,
    ]
    assert all(node.attributes["zarr_conventions"][-1] == DECLARED for node in declared.nodes.values())
    assert declared.nodes["/g/h"].attributes["zarr_conventions"][0] == {"name": "other"}
    assert declared.nodes["/g"].attributes["Conventions"] == "CF-1.8, ACDD-1.3"
    assert v3_text(declared)


def test_declaring_twice_is_declaring_once(raw_file: RawFile) -> None:
    once, _ = declare_nz(hierarchy_of(raw_file, v=make_array(raw_file, np.arange(3))))
    twice, _ = declare_nz(once)
    assert v3_text(twice) == v3_text(once)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"data_type": {"name": "raw_bytes", "configuration": {"length_bytes": 8}}}, "data type raw_bytes"),
        ({"dimension_names": ("",)}, "not every dimension has a name"),
        ({"attributes": {"a/b": 1}}, 'attribute "a/b" contains a slash'),
        ({"attributes": {"a": [1, "x"]}}, "several types"),
    ],
)
def test_what_breaks_a_rule_is_named(raw_file: RawFile, options: Any, what: str) -> None:
    (problem,) = declare_nz(hierarchy_of(raw_file, v=make_array(raw_file, np.arange(3), **options)))[1]
    assert problem.path == "/v"
    assert what in problem.message
    assert problem.remedy


def test_numbers_of_two_kinds_and_text_of_any_length_are_allowed(raw_file: RawFile) -> None:
    array = make_array(raw_file, np.arange(3), data_type="string", attributes={"a": [1, 2.5], "b": ["x", "y"]})
    assert declare_nz(hierarchy_of(raw_file, v=array))[1] == ()


def test_a_dimension_has_one_length_in_a_group_and_may_have_another_elsewhere(raw_file: RawFile) -> None:
    short = make_array(raw_file, np.arange(3), dimension_names=("x",))
    long = make_array(raw_file, np.arange(4), dimension_names=("x",))
    nodes = {"/a": short, "/g": GroupNode(attributes={}), "/g/b": long, "/c": long}
    (problem,) = declare_nz(make_hierarchy(raw_file, nodes))[1]
    assert problem.path == "/c"
    assert 'dimension "x" has length 4 here and 3 in /a' in problem.message
