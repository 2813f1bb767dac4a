"""Selections of arrays, and what numpy returns for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def random_key(shape: tuple[int, ...], random: np.random.Generator) -> tuple[Any, ...]:
    """Return a selection for each axis: a number, a slice of any step, numbers in any order, or everything."""
    return tuple(_random_entry(length, random) for length in shape)


def _random_entry(length: int, random: np.random.Generator) -> Any:
    kind = random.integers(5)
    if kind == 0 and length:
        return int(random.integers(-length, length))
    if kind == 1:
        start, stop = sorted(random.integers(0, length + 1, 2).tolist())
        return slice(start, stop, int(random.integers(1, length + 2)))
    if kind == 2 and length:
        return random.integers(-length, length, random.integers(0, 7))
    if kind == 3:
        return slice(None, None, -int(random.integers(1, 4)))
    return slice(None)


def take(values: npt.NDArray[Any], key: tuple[Any, ...]) -> npt.NDArray[Any]:
    """Return the values that `key` selects, with each axis selected independently."""
    for axis, one in reversed(list(enumerate(key))):
        values = values[(slice(None),) * axis + (one,)]
    return np.asarray(values)
