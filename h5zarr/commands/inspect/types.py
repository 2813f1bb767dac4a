"""Short, readable names of datatypes."""

from __future__ import annotations

from h5zarr.display import quoted, readable
from h5zarr.hdf5.datatype import (
    Array,
    Bitfield,
    ByteOrder,
    Charset,
    Complex,
    Compound,
    Datatype,
    Enumeration,
    FixedPoint,
    FloatingPoint,
    Normalization,
    Opaque,
    Reference,
    ReferenceKind,
    String,
    Time,
    VariableLengthSequence,
    VariableLengthString,
)

# (nbytes, precision, exponent bits, mantissa bits, exponent bias) of the formats that have a name
KNOWN_FLOATS = {
    (2, 16, 5, 10, 15): "float16",
    (2, 16, 8, 7, 127): "bfloat16",
    (4, 32, 8, 23, 127): "float32",
    (8, 64, 11, 52, 1023): "float64",
    (16, 128, 15, 112, 16383): "float128",
    (1, 8, 4, 3, 7): "float8_e4m3",
    (1, 8, 5, 2, 15): "float8_e5m2",
}
X87 = (80, 15, 64, 16383)  # in 12 or 16 bytes, without an implied bit
REFERENCE_NAMES = {
    ReferenceKind.OBJECT: "object",
    ReferenceKind.REGION: "region",
    ReferenceKind.OBJECT2: "object",
    ReferenceKind.REGION2: "region",
    ReferenceKind.ATTRIBUTE: "attribute",
}


def type_name(datatype: Datatype, *, limit: int | None = None) -> str:
    """Return the short name of a datatype. Compounds and enumerations list about `limit` characters of members."""
    match datatype:
        case FixedPoint():
            return _integer_name(datatype)
        case FloatingPoint():
            return _float_name(datatype)
        case String() | VariableLengthString():
            return _string_name(datatype)
        case Bitfield():
            return f"bitfield{datatype.nbytes * 8}{_notes(_bits(datatype), _order(datatype))}"
        case Time():
            return f"time{datatype.precision}{_notes(_order(datatype))}"
        case Opaque():
            tag = quoted(datatype.tag) if datatype.tag else ""
            return f"opaque{_notes(_bytes(datatype.nbytes), tag)}"
        case Reference():
            return f"{REFERENCE_NAMES[datatype.kind]} reference"
        case Complex():
            return _complex_name(datatype, limit)
        case Compound() | Enumeration():
            return _member_name(datatype, limit)
        case VariableLengthSequence():
            return f"sequence of {type_name(datatype.base, limit=limit)}"
        case Array():
            extents = ", ".join(str(extent) for extent in datatype.shape)
            return f"{type_name(datatype.base, limit=limit)} [{extents}]"


def outline_name(datatype: Datatype) -> str:
    """Return the name without its members: `compound of 12 members`, `enum int8 of 3 names`."""
    match datatype:
        case Compound():
            return f"compound of {len(datatype.members)} members"
        case Enumeration():
            return f"enum {type_name(datatype.base)} of {len(datatype.members)} names"
        case VariableLengthSequence():
            return f"sequence of {outline_name(datatype.base)}"
        case Array():
            return f"{outline_name(datatype.base)} {list(datatype.shape)}"
    return type_name(datatype)


def has_members(datatype: Datatype) -> bool:
    """Return whether the name of a type lists the members of a compound or an enumeration."""
    while isinstance(datatype, Array | VariableLengthSequence):
        datatype = datatype.base
    return isinstance(datatype, Compound | Enumeration)


def member_names(datatype: Compound | Enumeration, *, limit: int | None = None) -> list[str]:
    """Return one text per member: `name: type` for a compound, `NAME=value` for an enumeration."""
    if isinstance(datatype, Enumeration):
        return [f"{readable(name)}={value}" for name, value in datatype.members]
    return [f"{readable(member.name)}: {type_name(member.datatype, limit=limit)}" for member in datatype.members]


def _integer_name(datatype: FixedPoint) -> str:
    name = f"{'int' if datatype.signed else 'uint'}{datatype.nbytes * 8}"
    return name + _notes("" if datatype.is_plain else _bits(datatype), _order(datatype))


def _float_name(datatype: FloatingPoint) -> str:
    form = (
        datatype.nbytes,
        datatype.precision,
        datatype.exponent_nbits,
        datatype.mantissa_nbits,
        datatype.exponent_bias,
    )
    if datatype.order is ByteOrder.VAX:
        return f"float{datatype.nbytes * 8} (VAX)"
    if datatype.normalization is Normalization.IMPLIED and datatype.bit_offset == 0 and form in KNOWN_FLOATS:
        return KNOWN_FLOATS[form] + _notes(_order(datatype))
    if datatype.normalization is Normalization.NONE and form[1:] == X87:
        return f"float{datatype.nbytes * 8} (80 bits)"
    parts = f"{datatype.exponent_nbits} exponent, {datatype.mantissa_nbits} mantissa"
    return f"float{datatype.nbytes * 8}{_notes(_bits(datatype), parts, _order(datatype))}"


def _string_name(datatype: String | VariableLengthString) -> str:
    charset = "utf-8" if datatype.charset is Charset.UTF8 else "ascii"
    if isinstance(datatype, VariableLengthString):
        return f"string ({charset}, variable)"
    if datatype.nbytes == 1:
        return "char" if datatype.charset is Charset.ASCII else "char (utf-8)"
    return f"string ({charset}, {_bytes(datatype.nbytes)})"


def _complex_name(datatype: Complex, limit: int | None) -> str:
    base = type_name(datatype.base, limit=limit)
    for half, name in (("float16", "complex32"), ("float32", "complex64"), ("float64", "complex128")):
        if base == half or base.startswith(f"{half} "):
            return name + base.removeprefix(half)
    return f"complex of {base}"


def _member_name(datatype: Compound | Enumeration, limit: int | None) -> str:
    head = f"enum {type_name(datatype.base)}" if isinstance(datatype, Enumeration) else "compound"
    members = member_names(datatype, limit=limit)
    shown = fitting(members, limit)
    if shown < len(members):
        members = [*members[:shown], f"… {len(members) - shown} more"]
    return f"{head} {{{', '.join(members)}}}"


def fitting(parts: list[str], limit: int | None) -> int:
    """Return how many of `parts`, joined by commas, fit in `limit` characters: at least one, all when it is None."""
    used = 0
    for count, part in enumerate(parts):
        used += len(part) + 2
        if limit is not None and count > 0 and used > limit + 2:
            return count
    return len(parts)


def _bits(datatype: FixedPoint | FloatingPoint | Bitfield) -> str:
    if datatype.bit_offset == 0 and datatype.precision == datatype.nbytes * 8:
        return ""
    return f"{datatype.precision} bits" + (f" at {datatype.bit_offset}" if datatype.bit_offset else "")


def _order(datatype: FixedPoint | FloatingPoint | Bitfield | Time) -> str:
    return "big-endian" if datatype.order is ByteOrder.BIG and datatype.nbytes > 1 else ""


def _bytes(nbytes: int) -> str:
    return "1 byte" if nbytes == 1 else f"{nbytes:,} bytes"


def _notes(*notes: str) -> str:
    said = ", ".join(note for note in notes if note)
    return f" ({said})" if said else ""
