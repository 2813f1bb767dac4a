"""Filter 2, shuffle: first bytes of all elements, then second bytes, … Client data: the size of an element.

As in libhdf5 (H5Zshuffle.c), bytes that are no whole element stay at the end as they are. numcodecs' shuffle refuses
such content, which arises where shuffle does not come first; hence the codec `h5zarr.shuffle`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from h5zarr.filters.settings import check, first

_MOST_COLUMNS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How many bytes an element has."""

    filter_name: ClassVar = "shuffle"

    element_nbytes: int

    def __post_init__(self) -> None:
        check(self.element_nbytes, "element_nbytes", 1, 2**32 - 1)

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        return cls(element_nbytes=first(values, default=1) or 1)

    def to_values(self) -> tuple[int, ...]:
        return (self.element_nbytes,)


def decode(content: bytes, values: tuple[int, ...], nbytes: int) -> bytes:
    """Return the elements one after the other."""
    width, count = _layout(content, values)
    if width <= 1 or count <= 1:
        return content
    return unshuffled(content, width).tobytes() + content[count * width :]


def unshuffled(content: bytes | memoryview, width: int) -> npt.NDArray[np.uint8]:
    """Return the whole elements of `width` bytes, a row for each."""
    count = len(content) // width
    columns = np.frombuffer(content, np.uint8, count * width).reshape(width, count)
    if width > _MOST_COLUMNS:
        return np.ascontiguousarray(columns.T)
    # One copy for each byte of an element: four times as fast as one transposed copy, and without Python's lock.
    whole = np.empty((count, width), np.uint8)
    for column in range(width):
        whole[:, column] = columns[column]
    return whole


def encode(content: bytes, values: tuple[int, ...]) -> bytes:
    """Return the first bytes of all elements, then the second, and so on."""
    width, count = _layout(content, values)
    if width <= 1 or count <= 1:
        return content
    whole = np.frombuffer(content, np.uint8, count * width).reshape(count, width).T.tobytes()
    return whole + content[count * width :]


def _layout(content: bytes, values: tuple[int, ...]) -> tuple[int, int]:
    """Return the size of an element and the count of whole ones. No client data counts as elements of one byte."""
    width = first(values, default=1) or 1
    return width, len(content) // width
