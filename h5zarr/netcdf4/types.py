"""Which datasets netCDF-C shows, judged by their datatypes: the others take no part in its numbering of dimensions."""

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
    """The types that netCDF-C has met while it reads a file, in its order.

    It knows numbers and strings from the start and learns the others as they come. One that it cannot read makes it
    skip the dataset, but it is learned all the same: the next dataset of this type is not skipped. (References are
    never learned.)
    """

    def __init__(self) -> None:
        self._learned: dict[_Form, str] = {}
        self._anonymous_count = 0

    def admits(self, datatype: Datatype) -> bool:
        """Return True for the type of a dataset that netCDF-C shows, and learn the type."""
        if isinstance(datatype, _FROM_THE_START):
            return True
        if isinstance(datatype, Reference | Time):
            return False
        return _native(datatype) in self._learned or self.learn(datatype)

    def knows(self, datatype: Datatype) -> bool:
        """Return True for the type of an attribute that netCDF-C shows, once it has read the whole file."""
        if isinstance(datatype, FixedPoint | String | VariableLengthString):
            return True
        return not isinstance(datatype, Array | Bitfield | Complex) and self._has_name(datatype)

    def name_of(self, datatype: Datatype) -> str:
        """Return what netCDF-C calls a type that it has learned: by its path's end, or by a number if it has none."""
        return self._learned[_native(datatype)]

    def learn(self, datatype: Datatype, name: str | None = None) -> bool:
        """Return True for a type that netCDF-C can read, and remember either kind. Without a name it is numbered."""
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
        """Return True for a type that netCDF-C has a number for, as a member or base needs it."""
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
    """Return the type as it would be in this machine's memory: two types with the same form are one to netCDF-C."""
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
