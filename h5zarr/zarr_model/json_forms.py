"""Forms of JSON values that the Zarr specifications use in many places."""

from __future__ import annotations

from base64 import b64decode
from typing import TypeGuard

from h5zarr.errors import MalformedFile
from h5zarr.zarr_model.hierarchy import Json


def is_integer(value: Json) -> TypeGuard[int]:
    """Return whether a value is a JSON number without fraction; true and false are not."""
    return type(value) is int


def is_number(value: Json) -> TypeGuard[int | float]:
    """Return whether a value is a JSON number."""
    return type(value) in (int, float)


def named(value: Json) -> tuple[str, dict[str, Json]] | None:
    """Return the name and the configuration of an extension of version 3; None if the value is not one.

    The specification allows an extension to be just a name.
    """
    match value:
        case str():
            return value, {}
        case {"name": str(name)}:
            configuration = value.get("configuration", {})
            return (name, configuration) if isinstance(configuration, dict) else None
    return None


def decode_named(value: Json, what: str) -> tuple[str, dict[str, Json]]:
    """Return the name and the configuration like `named`. Raises MalformedFile, which names the value as `what`."""
    found = named(value)
    if found is None:
        raise MalformedFile(f"the {what} is neither a name, nor an object with a name and a configuration")
    return found


def base64_nbytes(value: Json) -> int | None:
    """Return the number of bytes in base64 text; None if it is not base64."""
    try:
        return len(b64decode(value, validate=True)) if isinstance(value, str) else None
    except ValueError:
        return None
