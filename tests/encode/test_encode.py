"""Encode trees as hierarchies: `_FillValue`, the record of types, and warnings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from h5zarr.encode.encode import is_coordinate
from h5zarr.tree import TreeGroup
from h5zarr.zarr_model.hierarchy import GroupNode, GroupRecord, KeptValue, VariableRecord
from tests.encode.trees import encode, held, scalar, stored


def attributes_of(node: Any) -> dict[str, Any]:
    return dict(node.attributes)


def record_of(node: Any) -> GroupRecord | None:
    assert isinstance(node, GroupNode)
    return node.record


def test_the_types_of_attributes_are_in_the_record_of_the_group() -> None:
    group = TreeGroup(attributes={"n": np.array(1, "<i4"), "title": "t"})
    variables = {
        "/g/v": scalar(scale_factor=np.array(0.5, "<f4"), offset=np.array(0.5)),
        "/w": scalar(n=np.array(1, "u1")),
    }
    hierarchy, _ = encode(variables, groups={"/g": group})
    assert attributes_of(hierarchy.nodes["/g"]) == {"n": 1, "title": "t"}
    inside = {"v": VariableRecord(types={"scale_factor": "float32"})}
    assert record_of(hierarchy.nodes["/g"]) == GroupRecord(types={"n": "int32"}, variables=inside)
    assert attributes_of(hierarchy.nodes["/"]) == {}
    assert record_of(hierarchy.nodes["/"]) == GroupRecord(variables={"w": VariableRecord(types={"n": "uint8"})})
    assert attributes_of(hierarchy.nodes["/g/v"]) == {"scale_factor": 0.5, "offset": 0.5}


def test_there_is_no_record_if_json_shows_everything() -> None:
    hierarchy, _ = encode({"/v": scalar(units="m", scale=np.array(0.5))})
    assert attributes_of(hierarchy.nodes["/"]) == {}
    assert record_of(hierarchy.nodes["/"]) is None


def test_a_fill_value_that_masks_is_encoded_and_needs_no_type() -> None:
    hierarchy, _ = encode({"/v": scalar("<i2", _FillValue=np.array(-9, "<i2"))})
    assert attributes_of(hierarchy.nodes["/v"]) == {"_FillValue": -9}
    assert record_of(hierarchy.nodes["/"]) is None
    assert hierarchy.warnings == ()


def test_the_fill_value_attribute_never_becomes_the_storage_fill() -> None:
    hierarchy, _ = encode({"/v": scalar("<i2", _FillValue=np.array(-9, "<i2"))})
    assert hierarchy.nodes["/v"].fill_value == 0  # type: ignore[union-attr]


def test_a_fill_value_that_cannot_mask_is_left_out_with_a_warning_and_recorded() -> None:
    hierarchy, _ = encode({"/v": scalar("u1", _FillValue=np.array(-9999, "<i2"))})
    assert attributes_of(hierarchy.nodes["/v"]) == {}
    (warning,) = hierarchy.warnings
    assert (warning.path, warning.kind) == ("/v", "fill value")
    assert "-9999" in warning.message
    assert "uint8" in warning.message
    kept = VariableRecord(fill_value=KeptValue(value=-9999, type="int16"))
    assert record_of(hierarchy.nodes["/"]) == GroupRecord(variables={"v": kept})
    assert hierarchy.problems == ()


@pytest.mark.parametrize(
    ("attributes", "name", "kept"),
    [
        ({"scale_factor": np.array([1, 2], "<f4")}, "scale_factor", KeptValue(value=[1.0, 2.0], type="float32")),
        ({"add_offset": np.zeros(0)}, "add_offset", KeptValue(value=[], type="float64")),
        ({"add_offset": np.complex64(1j)}, "add_offset", KeptValue(value=[0.0, 1.0], type="complex64")),
        ({"units": "days since 2000", "add_offset": "x"}, "add_offset", KeptValue(value="x", type=None)),
        ({"coordinates": np.array(5)}, "coordinates", KeptValue(value=5, type="int64")),
        ({"coordinates": ["a", "b"]}, "coordinates", KeptValue(value=["a", "b"], type=None)),
        ({"units": "days since 2000", "bounds": ["a", "b"]}, "bounds", KeptValue(value=["a", "b"], type=None)),
        ({"missing_value": {"a": "x"}}, "missing_value", KeptValue(value={"a": "x"}, type=None)),
    ],
    ids=lambda one: str(one)[:20],
)
def test_attributes_that_would_stop_xarray_are_withheld_with_a_warning_and_recorded(
    attributes: dict[str, Any], name: str, kept: KeptValue
) -> None:
    attributes = {key: np.asarray(one) if isinstance(one, np.generic) else one for key, one in attributes.items()}
    hierarchy, _ = encode({"/v": scalar("<i2", **attributes)})
    assert attributes_of(hierarchy.nodes["/v"]).keys() == attributes.keys() - {name}
    (warning,) = hierarchy.warnings
    assert (warning.path, warning.kind) == ("/v", "attribute")
    assert warning.message.startswith(f"{name} {kept.value!r} is left out: it is not ")
    assert record_of(hierarchy.nodes["/"]) == GroupRecord(variables={"v": VariableRecord(withheld={name: kept})})


@pytest.mark.parametrize(
    "attributes",
    [
        {"scale_factor": np.array(0.1), "add_offset": np.array([2.0]), "coordinates": "lat lon"},
        {"scale_factor": "text", "units": "m"},
        {"units": "days since forever", "bounds": "edges"},
        {"units": "m", "bounds": np.array([0, 10]), "geometry": np.array([1, 2])},
        {"missing_value": np.array([1, 2]), "valid_range": np.array([1, 2])},
    ],
    ids=str,
)
def test_other_attributes_are_written(attributes: dict[str, Any]) -> None:
    hierarchy, _ = encode({"/v": scalar("<i2", **attributes)})
    assert attributes_of(hierarchy.nodes["/v"]).keys() == attributes.keys()
    assert hierarchy.warnings == ()


def test_missing_value_is_a_plain_number() -> None:
    hierarchy, _ = encode({"/v": scalar("<f4", missing_value=np.array([1e20, 2.0], "<f4"))})
    assert attributes_of(hierarchy.nodes["/v"]) == {"missing_value": [float(np.float32(1e20)), 2.0]}


def test_nodes_keep_the_order_of_the_tree() -> None:
    hierarchy, _ = encode({"/b": held(b"1"), "/a": stored(1, 4), "/c": scalar()}, groups={"/g": TreeGroup()})
    assert list(hierarchy.nodes) == ["/", "/g", "/b", "/a", "/c"]
    assert isinstance(hierarchy.nodes["/g"], GroupNode)


def test_a_coordinate_has_one_axis_of_its_own_name() -> None:
    assert is_coordinate("/g/x", stored(1, 4, name="x"))
    assert not is_coordinate("/g/y", stored(1, 4, name="x"))


def test_a_fill_value_of_another_type_is_kept_in_the_record() -> None:
    same, other = scalar("<f4", _FillValue=np.array(1e20, ">f4")), scalar("<f4", _FillValue=np.array(1e20))
    hierarchy, _ = encode({"/same": same, "/other": other})
    kept = VariableRecord(fill_value=KeptValue(value=1e20, type="float64"))
    assert record_of(hierarchy.nodes["/"]) == GroupRecord(variables={"other": kept})
