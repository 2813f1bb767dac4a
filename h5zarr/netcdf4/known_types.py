"""Determine by datatype which datasets netCDF-C shows. Other datasets do not count when it numbers dimensions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

from h5zarr.hdf5.datatype import (
    Array,
    Bitfield,
    Complex,
    Compound,
    Datatype,
    Enumeration,
    FixedPoint,
    FloatingPoint,
    Opaque,
    Reference,
    String,
    Time,
    VariableLengthSequence,
    VariableLengthString,
)

_Form: TypeAlias = tuple[Any, ...]
_FROM_THE_START = (FixedPoint, FloatingPoint, String, VariableLengthString)
_CLASSES: dict[type, str] = {
    Compound: "Compound",
    Enumeration: "Enum",
    Opaque: "Opaque",
    VariableLengthSequence: "Vlen",
}


class KnownTypes:
    """The types that netCDF-C has met so far, in its reading order.

    It knows numbers and strings from the start, and learns other types as it meets them. If it cannot read a type, it
    skips the dataset but still learns the type. So it does not skip the next dataset of this type. References are never
    learned.
    """

    def __init__(self) -> None:
        self._learned: dict[_Form, str] = {}
        self._anonymous_count = 0

    def admits(self, datatype: Datatype) -> bool:
        """Return whether netCDF-C shows a dataset of this type, and learn the type."""
        if isinstance(datatype, _FROM_THE_START):
            return True
        if isinstance(datatype, Reference | Time):
            return False
        return _native(datatype) in self._learned or self.learn(datatype)

    def knows(self, datatype: Datatype) -> bool:
        """Return whether netCDF-C shows an attribute of this type after it has read the whole file."""
        if isinstance(datatype, FixedPoint | String | VariableLengthString):
            return True
        return not isinstance(datatype, Array | Bitfield | Complex) and self._has_name(datatype)

    def name_of(self, datatype: Datatype) -> str:
        """Return the netCDF-C name of a learned type: the last part of its path, or a numbered name."""
        return self._learned[_native(datatype)]

    def learn(self, datatype: Datatype, name: str | None = None) -> bool:
        """Learn a type, and return whether netCDF-C can read it. A type without a name gets a numbered one."""
        if name is None:
            self._anonymous_count += 1
            name = f"_Anonymous{_CLASSES.get(type(datatype), '')}{self._anonymous_count}"
        self._learned.setdefault(_native(datatype), name)
        match datatype:
            case Opaque():
                return True
            case Enumeration(base=base) | VariableLengthSequence(base=base):
                return self._has_name(base)
            case Compound(members=members):
                return all(self._has_name(_element(member.datatype)) for member in members)
        return False

    def _has_name(self, datatype: Datatype) -> bool:
        """Return whether netCDF-C has a type number for this type, as members and base types need."""
        match datatype:
            case String() | VariableLengthString():
                return True
            case FixedPoint():
                return True
            case FloatingPoint(nbytes=nbytes):
                return 2 < nbytes <= 8
        return _native(datatype) in self._learned


def _element(datatype: Datatype) -> Datatype:
    return datatype.base if isinstance(datatype, Array) else datatype


@lru_cache(maxsize=1024)
def _native(datatype: Datatype) -> _Form:
    """Return the form of the type in memory. NetCDF-C treats two types with the same form as one."""
    match datatype:
        case FixedPoint(nbytes=nbytes, signed=signed):
            return ("integer", signed, _rounded(nbytes))
        case FloatingPoint(nbytes=nbytes) | Bitfield(nbytes=nbytes):
            return (type(datatype).__name__, _rounded(nbytes))
        case Compound(members=members):
            return ("compound", *((member.name, _native(member.datatype)) for member in members))
        case Enumeration(base=base, members=values):
            return ("enumeration", _native(base), frozenset(values))
        case VariableLengthSequence(base=base) | Complex(base=base):
            return (type(datatype).__name__, _native(base))
        case Array(base=base, shape=shape):
            return ("array", shape, _native(base))
    return (datatype,)


def _rounded(nbytes: int) -> int:
    return 1 << max(nbytes - 1, 0).bit_length()
