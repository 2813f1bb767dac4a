"""Map HDF5 datatypes to the numpy types that readers see."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from h5zarr.errors import Unrepresentable
from h5zarr.hdf5.datatype import (
    Array,
    Bitfield,
    ByteOrder,
    Complex,
    Compound,
    Datatype,
    Enumeration,
    FixedPoint,
    FloatingPoint,
    Normalization,
    Opaque,
    Padding,
    Reference,
    ReferenceKind,
    String,
    Time,
    VariableLengthSequence,
    VariableLengthString,
)
from h5zarr.hdf5.numbers import float_dtype, integer_dtype

TEXT = np.dtype(object)
_NUMPY_TAG = "NUMPY:"
_COMPLEX_NAMES = frozenset({("r", "i"), ("real", "imag")})
_BOOLEAN = {"FALSE": 0, "TRUE": 1}


@dataclass(frozen=True, slots=True)
class ElementForm:
    """The numpy type that readers see, and the axes that an array type adds after those of the dataset.

    If `is_plain`, the bytes in the file already have this type, so references can point to them.
    """

    dtype: np.dtype[Any]
    is_plain: bool
    shape: tuple[int, ...] = ()


@lru_cache(maxsize=4096)
def interpret_element(datatype: Datatype) -> ElementForm:
    """Return the form of a datatype's elements. Raises Unrepresentable if Zarr has no type for them."""
    match datatype:
        case FixedPoint() | Bitfield() | Time():
            return _integer(datatype)
        case FloatingPoint():
            return _float(datatype)
        case String(nbytes=nbytes, padding=padding):
            # Readers of fixed-length strings remove only trailing NULs. Trailing spaces and any bytes after a
            # terminating NUL must be removed before.
            is_plain = padding is Padding.NULL_PADDED or (padding is Padding.NULL_TERMINATED and nbytes == 1)
            return ElementForm(np.dtype(f"S{nbytes}"), is_plain)
        case VariableLengthString():
            return ElementForm(TEXT, False)
        case Reference(kind=ReferenceKind.OBJECT | ReferenceKind.OBJECT2):
            return ElementForm(TEXT, False)
        case Enumeration(base=base):
            form = interpret_element(base)
            is_byte = form.is_plain and form.dtype.itemsize == 1
            return ElementForm(np.dtype(bool), True) if is_byte and is_boolean(datatype) else form
        case Complex(base=base):
            return _complex(interpret_element(base))
        case Array(base=base, shape=shape):
            form = interpret_element(base)
            return ElementForm(form.dtype, form.is_plain, shape + form.shape)
        case Opaque():
            return _opaque(datatype)
        case Compound():
            return _compound(datatype)
        case VariableLengthSequence():
            raise Unrepresentable("Zarr has no type for variable-length sequences")
    assert isinstance(datatype, Reference)
    raise Unrepresentable(f"Zarr has no type for references to {datatype.kind.name.lower().rstrip('2')}s")


def is_boolean(datatype: Datatype) -> bool:
    """Return whether this is the enumeration of FALSE and TRUE as which h5py stores booleans, of any size."""
    return isinstance(datatype, Enumeration) and dict(datatype.members) == _BOOLEAN


def is_complex(datatype: Datatype) -> bool:
    """Return whether elements are complex numbers: of that class, or records of a real and an imaginary part."""
    if not isinstance(datatype, Complex | Compound):
        return False
    try:
        return interpret_element(datatype).dtype.kind == "c"
    except Unrepresentable:
        return False


def _integer(datatype: FixedPoint | Bitfield | Time) -> ElementForm:
    if (dtype := integer_dtype(datatype)) is not None:
        return ElementForm(dtype, True)
    if datatype.nbytes > 8:
        raise Unrepresentable(f"Zarr has no type for integers of {datatype.nbytes} bytes")
    width = next(width for width in (1, 2, 4, 8) if width >= datatype.nbytes)
    signed = isinstance(datatype, FixedPoint) and datatype.signed
    return ElementForm(np.dtype(f"<{'i' if signed else 'u'}{width}"), False)


def _float(datatype: FloatingPoint) -> ElementForm:
    dtype = float_dtype(datatype)
    if dtype is not None and dtype.itemsize <= 8:
        return ElementForm(dtype, True)
    if datatype.normalization is Normalization.IMPLIED:
        for name in ("f2", "f4", "f8"):
            limits = np.finfo(name)
            # Check both ends of the range: with a small bias, few exponent bits reach large values.
            least, greatest = 1 - datatype.exponent_bias, (1 << datatype.exponent_nbits) - 1 - datatype.exponent_bias
            fits_range = limits.minexp <= least and greatest <= limits.maxexp
            dtype = np.dtype(f"<{name}")
            if fits_range and datatype.mantissa_nbits <= limits.nmant and datatype.nbytes <= dtype.itemsize:
                return ElementForm(dtype, False)
    order = " in VAX order" if datatype.order is ByteOrder.VAX else ""  # without this, it reads like a float64
    raise Unrepresentable(
        f"Zarr has no type for floating-point numbers of {datatype.nbytes} bytes with {datatype.mantissa_nbits} "
        f"mantissa bits and {datatype.exponent_nbits} exponent bits{order}"
    )


def _complex(part: ElementForm) -> ElementForm:
    if part.dtype.itemsize == 2:
        return ElementForm(np.dtype("<c8"), False)
    order = part.dtype.byteorder
    return ElementForm(np.dtype(f"c{2 * part.dtype.itemsize}").newbyteorder(order), part.is_plain)


def _opaque(datatype: Opaque) -> ElementForm:
    """Return the form of opaque bytes. Dates and times from h5py have a tag with their numpy type."""
    if datatype.tag.startswith(_NUMPY_TAG):
        try:
            dtype = np.dtype(datatype.tag.removeprefix(_NUMPY_TAG))
        except (TypeError, ValueError):
            dtype = np.dtype("V")
        # zarr rejects times without a unit, and then opens nothing in the file.
        if dtype.kind in "mM" and dtype.itemsize == datatype.nbytes and np.datetime_data(dtype)[0] != "generic":
            return ElementForm(dtype, True)
    return ElementForm(np.dtype(f"V{datatype.nbytes}"), True)


def _compound(datatype: Compound) -> ElementForm:
    if (pair := _complex_pair(datatype)) is not None:
        return pair
    forms = [(member, interpret_element(member.datatype)) for member in datatype.members]
    if not forms:
        raise Unrepresentable("Zarr has no type for records without members")
    for member, form in forms:
        if form.shape:
            raise Unrepresentable(f"Zarr has no type for records that contain an array (member {member.name!r})")
        if form.dtype.hasobject:
            what = "references" if isinstance(member.datatype, Reference) else "variable-length text"
            raise Unrepresentable(f"Zarr has no type for records that contain {what} (member {member.name!r})")
    # Current readers treat big-endian numbers in records as little-endian, so such records are not plain.
    packed = np.dtype([(member.name, form.dtype.newbyteorder("<")) for member, form in forms])
    is_plain = all(form.is_plain and form.dtype == form.dtype.newbyteorder("<") for _, form in forms)
    ends = [(member.byte_offset, member.byte_offset + form.dtype.itemsize) for member, form in forms]
    if not is_plain or any(end > start for (_, end), (start, _) in pairwise(ends)):
        return ElementForm(packed, False)
    return ElementForm(_with_gaps(datatype, forms), True)


def _with_gaps(datatype: Compound, forms: list[Any]) -> np.dtype[Any]:
    """Return a structured type in which the gaps between members are fields too."""
    fields: list[tuple[str, Any]] = []
    position = 0
    for member, form in forms:
        if member.byte_offset > position:
            fields.append((f"_gap{len(fields)}", f"V{member.byte_offset - position}"))
        fields.append((member.name, form.dtype))
        position = member.byte_offset + form.dtype.itemsize
    if datatype.nbytes > position:
        fields.append((f"_gap{len(fields)}", f"V{datatype.nbytes - position}"))
    return np.dtype(fields)


def _complex_pair(datatype: Compound) -> ElementForm | None:
    """Return the form of a compound of two equal floats, as h5py and others store complex numbers."""
    if tuple(member.name for member in datatype.members) not in _COMPLEX_NAMES:
        return None
    real, imaginary = datatype.members
    if not isinstance(real.datatype, FloatingPoint) or real.datatype != imaginary.datatype:
        return None
    form = interpret_element(real.datatype)
    width = form.dtype.itemsize
    is_packed = (real.byte_offset, imaginary.byte_offset, datatype.nbytes) == (0, width, 2 * width)
    return _complex(form) if is_packed and form.is_plain and width > 2 else None
