"""A writer of netCDF classic files that can also do what the netCDF library does not: streaming, odd padding, any cut.

It follows the specification byte by byte, and shares nothing with the reader that it is made to test.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CODES = {"i1": 1, "S1": 2, "i2": 3, "i4": 4, "f4": 5, "f8": 6, "u1": 7, "u2": 8, "u4": 9, "i8": 10, "u8": 11}
DIMENSIONS, VARIABLES, ATTRIBUTES = 10, 11, 12


@dataclass(frozen=True, kw_only=True)
class Var:
    """A variable of type `code`, such as "i2" or "S1". The first axis of `values` are its records, if it has any."""

    name: str
    code: str
    dimensions: Sequence[str]
    values: Any
    attributes: Mapping[str, Any] = field(default_factory=dict)


def encode_classic(
    version: int,
    dimensions: Mapping[str, int | None],
    variables: Sequence[Var],
    attributes: Mapping[str, Any] | None = None,
    *,
    records: int | None = None,
    stated_records: int | None = None,
    header_padding: int = 0,
    alignment: int = 4,
) -> bytes:
    """Return a file. A dimension of length None is the record dimension.

    `stated_records` is what the header says of their number, -1 for streaming. Values begin `header_padding` bytes
    behind the header, and each variable at a multiple of `alignment`.
    """
    numbers = list(dimensions)
    is_record = [bool(one.dimensions) and dimensions[one.dimensions[0]] is None for one in variables]
    found = [len(np.asarray(one.values)) for one, yes in zip(variables, is_record, strict=True) if yes]
    count = (found[0] if found else 0) if records is None else records
    stated = count if stated_records is None else stated_records

    def header(begins: Sequence[int]) -> bytes:
        parts = [b"CDF" + bytes([version]), b"\xff" * (8 if version == 5 else 4) if stated < 0 else size(stated)]
        parts += [listed(DIMENSIONS, [name(one) + size(length or 0) for one, length in dimensions.items()])]
        parts += [encode_attributes(attributes or {})]
        entries = []
        for one, begin, slab in zip(variables, begins, slabs, strict=True):
            ids = b"".join(size(numbers.index(dimension)) for dimension in one.dimensions)
            offset = struct.pack(">I" if version == 1 else ">Q", begin)
            vsize = slab + -slab % 4
            entry = name(one.name) + size(len(one.dimensions)) + ids + encode_attributes(one.attributes)
            most = vsize if version == 5 else min(vsize, 2**32 - 1)
            entries.append(entry + struct.pack(">I", CODES[one.code]) + size(most) + offset)
        return b"".join([*parts, listed(VARIABLES, entries)])

    def size(number: int) -> bytes:
        return struct.pack(">Q" if version == 5 else ">I", number)

    def name(text: str | bytes) -> bytes:
        content = text if isinstance(text, bytes) else text.encode()
        return size(len(content)) + padded(content)

    def listed(tag: int, entries: Sequence[bytes]) -> bytes:
        return struct.pack(">I", tag if entries else 0) + size(len(entries)) + b"".join(entries)

    def encode_attributes(given: Mapping[str, Any]) -> bytes:
        entries = []
        for key, value in given.items():
            content = value.encode() if isinstance(value, str) else value
            values = np.frombuffer(content, "S1") if isinstance(content, bytes) else np.atleast_1d(np.asarray(value))
            code = "S1" if isinstance(content, bytes) else values.dtype.str[1:]
            stored = content if isinstance(content, bytes) else big(values, code)
            count = len(stored) // int(code[1:])
            entries.append(name(key) + struct.pack(">I", CODES[code]) + size(count) + padded(stored))
        return listed(ATTRIBUTES, entries)

    slabs = [slab_nbytes(one, dimensions, yes) for one, yes in zip(variables, is_record, strict=True)]
    place = len(header([0] * len(variables))) + header_padding
    begins = [0] * len(variables)
    for record_turn in (False, True):
        for number, slab in enumerate(slabs):
            if is_record[number] is record_turn:
                place += -place % alignment if not record_turn or not any(begins) else 0
                begins[number] = place
                place += slab + -slab % 4
    return header(begins) + values_of(variables, is_record, begins, slabs, count, len(header(begins)))


def values_of(
    variables: Sequence[Var],
    is_record: Sequence[bool],
    begins: Sequence[int],
    slabs: Sequence[int],
    count: int,
    header_nbytes: int,
) -> bytes:
    """Return what stands behind the header: gaps and padding are filled with 0xAA, which nobody should ever see."""
    alone = sum(is_record) == 1
    steps = [slab if alone else slab + -slab % 4 for slab, yes in zip(slabs, is_record, strict=True) if yes]
    stride = sum(steps)
    end = max(
        [
            header_nbytes,
            *(begin + slab + -slab % 4 for begin, slab, yes in zip(begins, slabs, is_record, strict=True) if not yes),
        ]
    )
    starts = [begin for begin, yes in zip(begins, is_record, strict=True) if yes]
    end = max([end, *([min(starts) + count * stride] if starts else [])])
    content = bytearray(b"\xaa" * end)
    for one, yes, begin, slab in zip(variables, is_record, begins, slabs, strict=True):
        stored = big(np.asarray(one.values), one.code)
        for number in range(count if yes else 1):
            start = begin + number * stride * yes
            content[start : start + slab] = stored[number * slab : (number + 1) * slab]
    return bytes(content[header_nbytes:])


def slab_nbytes(one: Var, dimensions: Mapping[str, int | None], is_record: bool) -> int:
    lengths = [dimensions[dimension] or 0 for dimension in one.dimensions][1 if is_record else 0 :]
    return int(one.code[1:]) * int(np.prod(lengths, dtype=np.int64))


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 4)


def big(values: np.ndarray, code: str) -> bytes:
    return values.astype(code if code in ("S1", "i1", "u1") else f">{code}").tobytes()
