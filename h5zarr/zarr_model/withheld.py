"""Attributes that are not written to Zarr, because with them xarray's Zarr engine would not open the group.

xarray uses some attributes without looking at their types. The record keeps these attributes, and `engine="h5zarr"`
shows them. Attributes with which xarray fails only when it reads the variable itself are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from h5zarr.zarr_model.hierarchy import Json


def why_withheld(name: str, value: Json, attributes: Mapping[str, Any]) -> str:
    """Return why an attribute of a variable is withheld; "" if it is not. `attributes` are all of the variable's."""
    is_time = "since" in str(attributes.get("units"))  # xarray reads some values of times when it opens a dataset
    match name:
        case "scale_factor" | "add_offset" if isinstance(value, list | dict) or (isinstance(value, str) and is_time):
            return "it is not one number"
        case "coordinates" if not isinstance(value, str):
            return "it is not text"
        case "bounds" if isinstance(value, list | dict) and is_time:
            return "it is not text"
        case "missing_value" if isinstance(value, dict) or (isinstance(value, list) and dict in map(type, value)):
            return "it is not a number"
    return ""
