"""HDF5 datatypes, one dataclass for each class in the specification. Spec: IV.A.2.d.

These describe bytes in the file. `numpy_values.py` converts values to numpy; nothing here depends on Zarr.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TypeAlias


class ByteOrder(Enum):
    LITTLE = "<"
    BIG = ">"
    VAX = "vax"


class Padding(IntEnum):
    """How a string is padded."""

    NULL_TERMINATED = 0
    NULL_PADDED = 1
    SPACE_PADDED = 2


class Charset(IntEnum):
    ASCII = 0
    UTF8 = 1


class Normalization(IntEnum):
    """How the most significant bit of a mantissa is stored."""

    NONE = 0
    ALWAYS_SET = 1
    IMPLIED = 2


class ReferenceKind(IntEnum):
    OBJECT = 0  # H5R_OBJECT1: an address
    REGION = 1  # H5R_DATASET_REGION1: a global heap ID
    OBJECT2 = 2  # the revised forms of HDF5 1.12
    REGION2 = 3
    ATTRIBUTE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedPoint:
    """An integer of `precision` bits, `bit_offset` bits above the least significant bit of its `nbytes` bytes."""

    nbytes: int
    order: ByteOrder
    signed: bool
    bit_offset: int
    precision: int

    @property
    def is_plain(self) -> bool:
        """True if all bits of the field belong to the number."""
        return self.bit_offset == 0 and self.precision == 8 * self.nbytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatingPoint:
    """A floating-point number. Locations are bit positions; the least significant bit is 0."""

    nbytes: int
    order: ByteOrder
    bit_offset: int
    precision: int
    sign_location: int
    exponent_location: int
    exponent_nbits: int
    mantissa_location: int
    mantissa_nbits: int
    exponent_bias: int
    normalization: Normalization


@dataclass(frozen=True, slots=True, kw_only=True)
class Time:
    """The time class. No library ever defined its meaning beyond the bits."""

    nbytes: int
    order: ByteOrder
    precision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class String:
    """A fixed-length string."""

    nbytes: int
    padding: Padding
    charset: Charset


@dataclass(frozen=True, slots=True, kw_only=True)
class Bitfield:
    nbytes: int
    order: ByteOrder
    bit_offset: int
    precision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    nbytes: int
    tag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompoundMember:
    """A member of a compound type. It starts `byte_offset` bytes after the start of the element."""

    name: str
    byte_offset: int
    datatype: Datatype


@dataclass(frozen=True, slots=True, kw_only=True)
class Compound:
    nbytes: int
    members: tuple[CompoundMember, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    nbytes: int
    kind: ReferenceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumeration:
    """Named values of an integer type, in file order."""

    nbytes: int
    base: Datatype
    members: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableLengthString:
    """A string in the global heap. The element holds its length and heap ID."""

    nbytes: int
    padding: Padding
    charset: Charset


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableLengthSequence:
    """A sequence of `base` elements in the global heap. The element holds their number and heap ID."""

    nbytes: int
    base: Datatype


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    nbytes: int
    base: Datatype
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Complex:
    """A complex number, real part first (HDF5 2.0)."""

    nbytes: int
    base: Datatype


Datatype: TypeAlias = (
    FixedPoint
    | FloatingPoint
    | Time
    | String
    | Bitfield
    | Opaque
    | Compound
    | Reference
    | Enumeration
    | VariableLengthString
    | VariableLengthSequence
    | Array
    | Complex
)
