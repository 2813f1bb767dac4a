"""How values read by Zarr differ from those of a file: the first such element, its index, and both values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Values: TypeAlias = npt.NDArray[Any]


class Unreadable(Exception):
    """The other library cannot read this, so there is nothing to compare with."""


class Difference(NamedTuple):
    """A difference: what differs, the value found and the value expected. `at` is the index of the element, if any."""

    what: str
    found: str
    expected: str
    at: tuple[int, ...] | None = None

    def __str__(self) -> str:
        where = "" if self.at is None else f" at {list(self.at)}"
        return f"{self.what}{where} is {self.found}, expected {self.expected}"

    def moved(self, by: tuple[int, ...]) -> Difference:
        """Return this difference with `at` relative to the whole array instead of the compared region."""
        if self.at is None:
            return self
        padded = by + (0,) * (len(self.at) - len(by))
        return self._replace(at=tuple(start + place for start, place in zip(padded, self.at, strict=True)))


def numbers_differ(found: Values, expected: Values, *, any_nan: bool = False) -> Difference | None:
    """Return how numbers differ, bit for bit. With `any_nan`, all NaNs are equal."""
    if found.dtype.newbyteorder("=") != expected.dtype.newbyteorder("="):
        return Difference("type", str(found.dtype), str(expected.dtype))
    if found.shape != expected.shape:
        return Difference("shape", str(found.shape), str(expected.shape))
    native = found.dtype.newbyteorder("=")
    if not native.itemsize:
        return None
    ours, theirs = (np.ascontiguousarray(one, native) for one in (found, expected))
    wrong = _unlike(ours, theirs)
    if any_nan and native.kind in "fc":
        wrong &= ~(np.isnan(ours) & np.isnan(theirs)).reshape(-1)
    return _first(wrong, found, expected)


def _unlike(ours: Values, theirs: Values) -> Values:
    """Return which elements have different bytes. Viewing them as integers, if possible, is ten times faster."""
    nbytes = ours.dtype.itemsize
    word = nbytes if nbytes in (1, 2, 4, 8) else 8 if nbytes % 8 == 0 else 1
    wrong = np.not_equal(ours.reshape(-1).view(f"u{word}"), theirs.reshape(-1).view(f"u{word}"))
    return np.asarray(wrong.reshape(-1, nbytes // word).any(axis=-1)) if word < nbytes else wrong


def texts_differ(found: Values, expected: Values, unpad: Callable[[bytes], bytes]) -> Difference | None:
    """Return how texts differ. `unpad` strips padding from the expected texts."""
    if found.shape != expected.shape:
        return Difference("shape", str(found.shape), str(expected.shape))
    if found.dtype == expected.dtype and found.dtype.kind == "S" and found.tobytes() == expected.tobytes():
        return None  # the usual case; comparing the characters of a large variable one by one takes a minute
    ours = [encode(one) for one in found.reshape(-1).tolist()]
    theirs = [unpad(encode(one)) for one in expected.reshape(-1).tolist()]
    wrong = np.array([one != other for one, other in zip(ours, theirs, strict=True)], bool)
    return _first(wrong, found, expected)


def _first(wrong: Values, found: Values, expected: Values) -> Difference | None:
    """Return the first element that differs."""
    if not wrong.any():
        return None
    number = int(wrong.argmax())
    index = tuple(int(at) for at in np.unravel_index(number, found.shape))
    what = "value" if int(wrong.sum()) == 1 else f"the first of {int(wrong.sum())} values that differ,"
    return Difference(what, _shown(found.reshape(-1)[number]), _shown(expected.reshape(-1)[number]), index)


def encode(text: Any) -> bytes:
    """Return str or bytes as bytes."""
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else bytes(text or b"")


def _shown(value: Any) -> str:
    shown = repr(value.item() if isinstance(value, np.generic) and value.dtype.kind not in "V" else value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
