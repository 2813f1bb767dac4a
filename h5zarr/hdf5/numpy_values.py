"""Convert elements of any datatype to numpy arrays.

| HDF5                      | numpy                                                                  |
|---------------------------|------------------------------------------------------------------------|
| integers, floats, bitfields, time | the same bits, or converted to the next larger type       |
| fixed string              | `S`, padding removed                                                   |
| variable-length string    | objects: `bytes`                                                       |
| opaque                    | `V`                                                                    |
| enumeration               | its base integers                                                      |
| complex                   | complex64, complex128, …                                               |
| compound                  | structured; members without a numpy type are objects                           |
| array                     | trailing axes (inside a compound: a subarray)                          |
| variable-length sequence  | objects: one array each                                                |
| reference                 | objects: `ObjectReference`, `RegionReference`, `AttributeReference`    |
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile, Unsupported
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
    Padding,
    Reference,
    String,
    Time,
    VariableLengthSequence,
    VariableLengthString,
)
from h5zarr.hdf5.heaps.collections import CollectionsMissing, GlobalHeap
from h5zarr.hdf5.numbers import decode_floats, decode_integers, float_dtype, integer_dtype
from h5zarr.hdf5.object_references import decode_references
from h5zarr.hdf5.on_disk import WIDTHS
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.steps import Step

_OF_VARIABLE_LENGTH = (VariableLengthString, VariableLengthSequence)


@lru_cache(maxsize=4096)
def plain_dtype(datatype: Datatype) -> np.dtype[Any] | None:
    """Return the numpy type with exactly the bytes of `datatype`, or None if values must be converted.

    Fixed-length strings are never plain: they may have padding, or bytes after their terminator.
    """
    match datatype:
        case FixedPoint() | Bitfield() | Time():
            return integer_dtype(datatype)
        case FloatingPoint():
            return float_dtype(datatype)
        case Enumeration(base=base):
            return plain_dtype(base)
        case Opaque(nbytes=nbytes):
            return np.dtype(f"V{nbytes}")
        case Complex(base=base):
            part = plain_dtype(base)
            return np.dtype(f"{part.byteorder}c{2 * part.itemsize}") if part is not None and part.itemsize > 2 else None
        case Array(base=base, shape=shape):
            part = plain_dtype(base)
            return np.dtype((part, shape)) if part is not None else None
        case Compound(members=members, nbytes=nbytes):
            parts = [(member, plain_dtype(member.datatype)) for member in members]
            if any(part is None for _, part in parts):
                return None
            return _structured([(member.name, part, member.byte_offset) for member, part in parts], nbytes)
    return None


def _structured(fields: list[tuple[str, Any, int]], nbytes: int) -> np.dtype[Any]:
    names = [name for name, _, _ in fields]
    formats, starts = [part for _, part, _ in fields], [start for _, _, start in fields]
    return np.dtype({"names": names, "formats": formats, "offsets": starts, "itemsize": nbytes})


class ValueReader:
    """Converts raw elements to values. Variable-length values come from the global heap."""

    def __init__(self, sizes: Sizes, heap: GlobalHeap) -> None:
        self._sizes = sizes
        self._heap = heap
        self._pointer = struct.Struct(f"<I{WIDTHS[sizes.offset_nbytes]}I")  # length, collection address, object index

    def read(self, datatype: Datatype, raw: bytes, count: int) -> Step[npt.NDArray[Any]]:
        """Return `count` elements. Reads the heap collections that they need, one generation after the other."""
        while True:
            try:
                return self.decode(datatype, raw, count)
            except CollectionsMissing as missing:
                yield from self._heap.read(missing.addresses)

    def collections(self, datatype: Datatype, raw: bytes) -> set[int]:
        """Return the collections that variable-length elements point to, not counting nested ones."""
        if not isinstance(datatype, _OF_VARIABLE_LENGTH) or len(raw) % self._pointer.size:
            return set()
        pointers = self._pointer.iter_unpack(raw)
        base, undefined = self._sizes.base, self._sizes.undefined
        return {stored + base for length, stored, _ in pointers if length and stored and stored != undefined}

    def decode(self, datatype: Datatype, raw: bytes, count: int) -> npt.NDArray[Any]:
        """Return `count` elements. The axes of an array type follow the first axis.

        Raises `CollectionsMissing` if parts of the global heap must be read first.
        """
        if len(raw) < count * datatype.nbytes:
            raise MalformedFile(f"{count} elements of {datatype.nbytes} bytes are truncated at {len(raw)} bytes")
        match datatype:  # first the types that are never plain and are common in attributes
            case VariableLengthString():
                return self._strings(datatype, raw, count)
            case String():
                return _fixed_strings(datatype, raw, count)
            case VariableLengthSequence():
                return self._sequences(datatype, raw, count)
            case Reference():
                return decode_references(datatype, raw, count, self._sizes, self._heap)
        dtype = plain_dtype(datatype)
        return np.frombuffer(raw, dtype, count) if dtype is not None else self._converted(datatype, raw, count)

    def _converted(self, datatype: Datatype, raw: bytes, count: int) -> npt.NDArray[Any]:
        """Return elements whose bytes differ from those of their numpy type."""
        match datatype:
            case FixedPoint() | Bitfield() | Time():
                return decode_integers(datatype, raw, count)
            case FloatingPoint():
                return decode_floats(datatype, raw, count)
            case Compound():
                return self._compound(datatype, raw, count)
            case Array(base=base, shape=shape):
                values = self.decode(base, raw, count * (datatype.nbytes // base.nbytes))
                return values.reshape(count, *shape, *values.shape[1:])
            case Enumeration(base=base):
                return self.decode(base, raw, count)
            case Complex(base=base):
                parts = self.decode(base, raw, 2 * count)
                values = np.empty(count, np.result_type(parts.dtype, np.complex64))
                values.real, values.imag = parts[0::2], parts[1::2]
                return values
        raise Unsupported(f"values of type {type(datatype).__name__} and {datatype.nbytes} bytes")

    def _compound(self, datatype: Compound, raw: bytes, count: int) -> npt.NDArray[Any]:
        """Return a structured array. Each member is decoded separately and packed, because its size may change."""
        rows = np.frombuffer(raw, np.uint8, count * datatype.nbytes).reshape(count, datatype.nbytes)
        columns: dict[str, npt.NDArray[Any]] = {}
        missing: set[int] = set()
        for member in datatype.members:
            part = rows[:, member.byte_offset : member.byte_offset + member.datatype.nbytes].tobytes()
            try:
                columns[member.name] = self.decode(member.datatype, part, count)
            except CollectionsMissing as those:  # so that the collections of all members are read together
                missing |= those.addresses
        if missing:
            raise CollectionsMissing(missing)
        values = np.empty(count, np.dtype([(name, part.dtype, part.shape[1:]) for name, part in columns.items()]))
        for name, column in columns.items():
            values[name] = column
        return values

    def _strings(self, datatype: VariableLengthString, raw: bytes, count: int) -> npt.NDArray[Any]:
        found = self._heap_objects(datatype.nbytes, raw, count)
        if datatype.padding is Padding.SPACE_PADDED:
            texts = [text.rstrip(b" ") for _, text in found]
        else:
            texts = [text.partition(b"\0")[0] for _, text in found]
        return np.array(texts, object)

    def _sequences(self, datatype: VariableLengthSequence, raw: bytes, count: int) -> npt.NDArray[Any]:
        """Return one array per element. The contents of all elements are decoded at once."""
        base = datatype.base
        found = self._heap_objects(datatype.nbytes, raw, count, base.nbytes)
        joined = b"".join([content for _, content in found])
        flat = self.decode(base, joined, len(joined) // base.nbytes)
        values = np.empty(count, object)
        start = 0
        for number, (length, _) in enumerate(found):
            values[number] = flat[start : start + length]
            start += length
        return values

    def _heap_objects(
        self, element_nbytes: int, raw: bytes, count: int, base_nbytes: int = 1
    ) -> list[tuple[int, bytes]]:
        """Return the length and content of each element. Empty elements have no content."""
        if element_nbytes != self._pointer.size:
            raise MalformedFile(f"variable-length elements have {element_nbytes} bytes")
        base, undefined, most = self._sizes.base, self._sizes.undefined, self._sizes.end
        heap, found, missing, total = self._heap, [], set[int](), 0
        for length, stored, index in self._pointer.iter_unpack(raw[: count * element_nbytes]):
            nbytes = length * base_nbytes
            total += nbytes
            if total > most:
                raise MalformedFile(f"variable-length elements take {total} bytes, more than the file has")
            if not length or not stored:
                found.append((0, b""))
            elif stored == undefined:
                raise MalformedFile(f"a variable-length element of length {length} has the undefined address")
            elif stored + base in heap:
                found.append((length, heap.object(stored + base, index, nbytes)))
            else:
                missing.add(stored + base)
        if missing:
            raise CollectionsMissing(missing)
        return found


def decode_elements(datatype: Datatype, raw: bytes, count: int) -> npt.NDArray[Any]:
    """Return `count` elements of a type that needs neither the global heap nor file addresses."""
    return _WITHOUT_FILE.decode(datatype, raw, count)


def _fixed_strings(datatype: String, raw: bytes, count: int) -> npt.NDArray[Any]:
    """Return strings without padding. Spec: IV.A.2.d, class 3."""
    if count == 1:  # most text attributes
        only = raw[: datatype.nbytes]
        only = only.rstrip(b" ") if datatype.padding is Padding.SPACE_PADDED else only
        only = only.partition(b"\0")[0] if datatype.padding is Padding.NULL_TERMINATED else only
        return np.array([only], f"S{datatype.nbytes}")
    values = np.frombuffer(raw, f"S{datatype.nbytes}", count)
    if datatype.padding is Padding.NULL_PADDED:  # numpy removes trailing NULs on access
        return values
    if datatype.padding is Padding.SPACE_PADDED:
        return np.strings.rstrip(values, b" ")
    letters = np.frombuffer(raw, np.uint8, count * datatype.nbytes).reshape(count, datatype.nbytes)
    ended = np.logical_or.accumulate(letters == 0, axis=1)
    if not letters[ended].any():
        return values
    return np.where(ended, np.uint8(0), letters).view(values.dtype)[:, 0]  # some bytes after the terminator are not NUL


_WITHOUT_FILE = ValueReader(Sizes(), GlobalHeap(Sizes()))
