"""Convert between columns of numbers and decimal text, a whole column at a time."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

BLANK = b"\0"
"""Placeholder where a number has no digit. JSON text never contains it, so it can be removed afterwards."""

MOST_DIGITS = 19
"""The number of digits of the largest int64. Some numbers with this many digits do not fit."""

Column: TypeAlias = npt.NDArray[np.integer[Any]]
Text: TypeAlias = npt.NDArray[np.uint8]
Positions: TypeAlias = npt.NDArray[np.int64]

_GROUP = 4
_STEP = 10**_GROUP
_TYPES = {1: "u1", 2: "u2", 3: "V3", 4: "u4"}  # for each number of digits, a numpy type of that many bytes


def group_widths(largest: int) -> tuple[int, ...]:
    """Return the widths of the digit groups of numbers up to `largest`, least significant group first."""
    full, rest = divmod(len(str(largest)), _GROUP)
    return (_GROUP,) * full + ((rest,) if rest else ())


def digit_groups(numbers: Column, widths: tuple[int, ...]) -> list[npt.NDArray[Any]]:
    """Return the digits of non-negative `numbers`: one column per group, least significant group first.

    Leading zeros are blank; the number zero has one digit.
    """
    columns = []
    for place, width in enumerate(widths):
        texts = _group_texts(width, place == 0)
        if place == len(widths) - 1:
            columns.append(texts[numbers])
        else:
            higher = numbers // _STEP
            # The second half of the table keeps leading zeros, for groups that have digits before them.
            columns.append(texts[numbers - higher * _STEP + (higher > 0) * _STEP])
            numbers = higher
    return columns


def decode_digits(text: Text, starts: Positions) -> tuple[npt.NDArray[np.int64], Positions]:
    """Return the numbers that begin at `starts` in `text`, and the positions after their last digits.

    A number without digits is 0 and ends where it starts. At most `MOST_DIGITS` digits are read, and larger numbers
    wrap: callers check the character after a number, and its width. The text must not end with a digit.
    """
    values = np.zeros(len(starts), np.int64)
    ends = starts.astype(np.int64)
    for _ in range(MOST_DIGITS):
        digits = text[ends] - np.uint8(ord("0"))  # wraps around: other characters give 10 or more
        inside = digits < 10
        if not inside.any():
            break
        values = np.where(inside, values * 10 + digits, values)
        ends += inside
    return values, ends


@cache
def _group_texts(width: int, last: bool) -> npt.NDArray[Any]:
    """Return the texts of a group: first without leading zeros, then with them."""
    count = 10**width
    values = np.arange(count)
    texts = np.zeros((2, count, width), np.uint8)
    for place in range(width):
        column = width - 1 - place
        texts[1, :, column] = values // 10**place % 10 + ord("0")
        texts[0, :, column] = texts[1, :, column]
        if place or not last:
            texts[0, values < 10**place, column] = 0
    return texts.reshape(-1).view(_TYPES[width])
