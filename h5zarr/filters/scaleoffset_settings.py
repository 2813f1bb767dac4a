"""The client data of the filter scaleoffset by name. Source: H5Zscaleoffset.c."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from h5zarr.filters.settings import check, check_choice, signed

_COUNT = 20  # of all values
_FILL_AT = 8  # from here on, the fill value, least significant word first
_DECIMAL_SCALE, _INTEGER_SCALE = 0, 2
KINDS = ("integer", "float")
BYTE_ORDERS = ("little", "big")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The type of the elements and how to pack them.

    `factor` is the number of bits for integers, 0 where the filter finds it out itself, and the number of decimal
    digits behind the point for floats. `fill` has the bits of the fill value in hexadecimal, None where there is
    none.
    """

    filter_name: ClassVar = "scaleoffset"

    count: int
    kind: str
    element_nbytes: int
    signed: bool
    byte_order: str
    factor: int
    fill: str | None = None

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind", KINDS)
        check_choice(self.byte_order, "byte_order", BYTE_ORDERS)
        check(self.count, "count", 0, 2**32 - 1)
        if self.element_nbytes not in ((1, 2, 4, 8) if self.kind == "integer" else (4, 8)):
            raise ValueError(f"element_nbytes cannot be {self.element_nbytes!r} where kind is {self.kind}")
        if not isinstance(self.signed, bool):
            raise ValueError(f"signed must be true or false, not {self.signed!r}")
        bounds = (0, self.nbits) if self.kind == "integer" else (-400, 400)
        check(self.factor, "factor", *bounds)
        if self.fill is not None and not (
            isinstance(self.fill, str)
            and re.fullmatch("0x[0-9a-f]+", self.fill)
            and int(self.fill, 16) >> self.nbits == 0
        ):
            raise ValueError(f"fill must be a number of {self.nbits} bits in hexadecimal, not {self.fill!r}")

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        if len(values) != _COUNT:
            raise ValueError(f"scaleoffset needs {_COUNT} values, not {len(values)}")
        scale, factor, count, kind, element_nbytes, sign, order, has_fill = values[:_FILL_AT]
        if kind > 1 or sign > 1 or order > 1 or has_fill > 1:
            raise ValueError("a value is neither 0 nor 1")
        if scale != (_DECIMAL_SCALE if kind else _INTEGER_SCALE):
            raise ValueError(f"scale type {scale} is not one for {KINDS[kind]}s")
        word = sum(value << 32 * number for number, value in enumerate(values[_FILL_AT : _FILL_AT + 2]))
        return cls(
            count=count,
            kind=KINDS[kind],
            element_nbytes=element_nbytes,
            signed=bool(sign or kind),
            byte_order=BYTE_ORDERS[order],
            # A negative number of bits means the same as none, as in libhdf5.
            factor=signed(factor) if kind else max(0, signed(factor)),
            fill=hex(word % (1 << 8 * min(element_nbytes, 8))) if has_fill else None,
        )

    def to_values(self) -> tuple[int, ...]:
        is_float = self.kind == "float"
        word = int(self.fill, 16) if self.fill is not None else 0
        return (
            _DECIMAL_SCALE if is_float else _INTEGER_SCALE,
            self.factor % (1 << 32),
            self.count,
            int(is_float),
            self.element_nbytes,
            int(self.signed and not is_float),
            BYTE_ORDERS.index(self.byte_order),
            int(self.fill is not None),
            word % (1 << 32),
            word >> 32,
            *(0,) * (_COUNT - _FILL_AT - 2),
        )

    @property
    def nbits(self) -> int:
        return 8 * self.element_nbytes

    @property
    def nbytes(self) -> int:
        return self.count * self.element_nbytes

    @property
    def is_stored_whole(self) -> bool:
        """Whether the filter leaves content alone: all bits of an integer were asked for."""
        return self.kind == "integer" and self.factor == self.nbits

    @property
    def unsigned_dtype(self) -> np.dtype[Any]:
        return np.dtype(f"<u{self.element_nbytes}")

    @property
    def native_dtype(self) -> np.dtype[Any]:
        """The type of the values, little-endian, in which differences are taken."""
        code = "f" if self.kind == "float" else "i" if self.signed else "u"
        return np.dtype(f"<{code}{self.element_nbytes}")

    @property
    def stored_dtype(self) -> np.dtype[Any]:
        """The type of the values in the dataset."""
        return self.native_dtype.newbyteorder("<" if self.byte_order == "little" else ">")

    def fill_number(self) -> Any:
        """Return the fill value in the type of the values."""
        word = int(self.fill or "0", 16).to_bytes(self.element_nbytes, "little")
        return np.frombuffer(word, self.native_dtype)[0]

    def scale(self) -> Any:
        """Return the power of ten by which floats are multiplied, in their own precision."""
        kind = self.native_dtype.type
        with np.errstate(all="ignore"):
            return np.power(kind(10), kind(self.factor))
