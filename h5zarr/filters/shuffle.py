"""Filter 2, shuffle: the first bytes of all elements, then the second bytes, … Client data: the element size.

As in libhdf5 (H5Zshuffle.c), bytes after the last whole element stay at the end, unchanged. The shuffle of numcodecs
refuses such content, which occurs if shuffle is not the first filter. Those pipelines get h5zarr's codec.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from h5zarr.filters.toolkit import Bytes, Codec, Values, check, first, own_codec, settings_of

_MOST_COLUMNS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The number of bytes per element."""

    element_nbytes: int

    def __post_init__(self) -> None:
        check(self.element_nbytes, "element_nbytes", 1, 2**32 - 1)

    @classmethod
    def from_values(cls, values: Values) -> Self:
        return cls(element_nbytes=first(values, default=1) or 1)

    def to_values(self) -> Values:
        return (self.element_nbytes,)


def decode(content: bytes, values: Values, nbytes: int) -> bytes:
    """Return the elements in their original order."""
    width, count = _layout(content, values)
    if width <= 1 or count <= 1:
        return content
    return unshuffled(content, width).tobytes() + content[count * width :]


def unshuffled(content: bytes | memoryview, width: int) -> Bytes:
    """Return the whole elements of `width` bytes, one per row."""
    count = len(content) // width
    columns = np.frombuffer(content, np.uint8, count * width).reshape(width, count)
    if width > _MOST_COLUMNS:
        return np.ascontiguousarray(columns.T)
    # One copy per byte of an element is four times as fast as one transposed copy, and releases the GIL.
    whole = np.empty((count, width), np.uint8)
    for column in range(width):
        whole[:, column] = columns[column]
    return whole


def encode(content: bytes, values: Values) -> bytes:
    """Return the first bytes of all elements, then the second, and so on."""
    width, count = _layout(content, values)
    if width <= 1 or count <= 1:
        return content
    whole = np.frombuffer(content, np.uint8, count * width).reshape(count, width).T.tobytes()
    return whole + content[count * width :]


def _layout(content: bytes, values: Values) -> tuple[int, int]:
    """Return the size of an element and the count of whole elements. Without client data, elements have one byte."""
    width = first(values, default=1) or 1
    return width, len(content) // width


def to_codec(values: Values, nbytes: int | None) -> Codec | None:
    """Return the codec; None if shuffling changes nothing.

    Use the client data, not the element size of the dataset. They can differ, and libhdf5 uses the client data.
    """
    width = first(values, default=1)
    if width <= 1 or (nbytes is not None and nbytes < 2 * width):
        return None
    if nbytes is None or nbytes % width:
        return own_codec("shuffle", settings_of(Settings, values))
    return {"name": "numcodecs.shuffle", "configuration": {"elementsize": width}}


def from_codec(configuration: Mapping[str, Any]) -> Values:
    return (configuration.get("elementsize", 4),)


def netcdf_encoding(values: Values) -> dict[str, Any]:
    return {"shuffle": True}
