"""The expected JSON form of an attribute, from the value another library reads. docs/attributes.md has the rules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class NotCompared(Exception):
    """The JSON form of attributes of this type is not implemented a second time here."""


def expected_json(value: Any) -> Any:
    """Return the JSON form of numbers, text and lists of them. Raises NotCompared for anything else."""
    if isinstance(value, str | bytes):
        return _text(value)
    array = np.asarray(value)
    if array.dtype.kind in "biu" or (array.dtype.kind == "f" and array.dtype.itemsize <= 8):
        return array.item() if array.size == 1 else array.tolist()
    if array.dtype.kind in "SUO" and array.size:
        texts = [_text(one) for one in array.reshape(-1).tolist()]
        if len(texts) == 1:
            return texts[0]
        return np.array(texts, object).reshape(array.shape).tolist()
    raise NotCompared


def _text(value: Any) -> str:
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    if not isinstance(value, bytes):
        raise NotCompared
    stored = value.rstrip(b"\0")
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored.decode("latin-1")


def same_json(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal. NaN equals NaN, and 1 equals 1.0."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)
