"""The header of a netCDF classic file. Spec: "The NetCDF Classic Format Specification", and CDF-5 of PnetCDF.

    header = magic numrecs dim_list gatt_list var_list

The header does not state its own size. So the parser reads the beginning of the file, and more if the header continues.
It estimates the remaining size from the part decoded so far, and never reads beyond the first byte of variable data.
"""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import normalize

import numpy as np

from h5zarr.errors import MalformedFile, Problem
from h5zarr.io.span import Span
from h5zarr.io.steps import Step
from h5zarr.netcdf3.classic_file import (
    ClassicAttribute,
    ClassicDimension,
    ClassicVariable,
    Header,
    decode_text,
    native,
)
from h5zarr.netcdf3.cursor import Cursor, HeaderCut
from h5zarr.netcdf3.nc_types import NcType

VERSIONS = {1: "CDF-1", 2: "CDF-2, 64-bit offset", 5: "CDF-5, 64-bit data"}
_MAGIC = b"CDF"
_DIMENSIONS, _VARIABLES, _ATTRIBUTES = 10, 11, 12
_LEAST_READ_NBYTES = 64 << 10
_GREATEST = (1 << 63) - 1
_MOST_NAMED = 20  # attributes per file whose omission is reported


def is_classic(beginning: bytes) -> bool:
    """Return whether a file with these first bytes is a netCDF classic file of a known version."""
    return len(beginning) >= 4 and beginning[:3] == _MAGIC and beginning[3] in VERSIONS


def read_header(nbytes: int, beginning: bytes = b"") -> Step[Header]:
    """Return the header of a file of `nbytes` bytes. `beginning` holds the bytes that have already been read."""
    content = beginning
    while True:
        decoding = _Decoding(memoryview(content), nbytes)
        try:
            return decoding.decode()
        except HeaderCut as cut:
            if cut.needed > nbytes:
                what = f"the file ends inside its header, which needs at least {cut.needed} bytes"
                raise MalformedFile(what, at=nbytes) from None
            wanted = max(cut.needed, decoding.expected_nbytes())
        (more,) = yield [Span(len(content), min(nbytes, wanted) - len(content))]
        content += bytes(more)


class _Decoding:
    """Decodes a header. The part decoded so far serves to estimate the size of the whole."""

    def __init__(self, content: memoryview, nbytes: int) -> None:
        self._cursor = Cursor(content)
        self._read_nbytes = len(content)
        self._nbytes = nbytes
        self._version = 0
        self._first_begin = nbytes
        self._list_start = self._list_count = self._done_count = self._done_end = 0
        self._problems: list[Problem] = []

    def expected_nbytes(self) -> int:
        """Return how many bytes to read in total: at least twice as many as so far, or more for a long list."""
        guess = max(2 * self._read_nbytes, _LEAST_READ_NBYTES)
        if self._done_count:
            each = (self._done_end - self._list_start) / self._done_count
            guess = max(guess, self._list_start + int(1.25 * each * self._list_count))
        # Data starts after the header. The first variable may be a record variable, whose data can start much later.
        return min(guess, self._first_begin) if self._first_begin > self._read_nbytes else guess

    def decode(self) -> Header:
        cursor = self._cursor
        magic = bytes(cursor.take(4))
        if not is_classic(magic):
            raise MalformedFile(f"not a netCDF classic file of a known version: it begins with {magic!r}", at=0)
        self._version = magic[3]
        cursor.wide = self._version == 5
        stated = cursor.count()
        dimensions = tuple(self._dimension() for _ in self._list(_DIMENSIONS, "dimensions", 2))
        attributes = self._attributes("/")
        variables = tuple(self._variable(dimensions) for _ in self._list(_VARIABLES, "variables", 6))
        return Header(
            version=self._version,
            stated_records=None if stated == (1 << (64 if cursor.wide else 32)) - 1 else stated,
            dimensions=dimensions,
            attributes=attributes,
            variables=variables,
            nbytes=cursor.position,
            problems=tuple(self._problems),
        )

    def _list(self, tag: int, what: str, least_fields: int) -> Sequence[int]:
        """Return the indexes of a list's elements. Each element takes at least `least_fields` fields of four bytes."""
        cursor, at = self._cursor, self._cursor.position
        found = cursor.u32()
        count = cursor.count()
        if count and found != tag:
            raise MalformedFile(f"list of {what} has tag {found}, expected {tag}", at=at)
        if count * least_fields * 4 > self._nbytes - cursor.position:
            raise MalformedFile(f"list of {count} {what} is longer than the file", at=at)
        if tag != _ATTRIBUTES:
            self._list_start, self._list_count, self._done_count = cursor.position, count, 0
        return range(count)

    def _element_done(self) -> None:
        self._done_count += 1
        self._done_end = self._cursor.position

    def _name(self) -> str:
        """Return a name in Unicode normal form C, in which netCDF-C stores and looks up names. A NUL ends the name."""
        at = self._cursor.position
        stored = bytes(self._cursor.take_padded(self._bounded(self._cursor.count(), at)))
        return normalize("NFC", decode_text(stored.partition(b"\0")[0]))

    def _bounded(self, nbytes: int, at: int) -> int:
        """Return `nbytes`. Raises MalformedFile if it exceeds the rest of the file: that is damage, not truncation."""
        if nbytes > self._nbytes - self._cursor.position:
            raise MalformedFile(f"a name or value of {nbytes} bytes is longer than the rest of the file", at=at)
        return nbytes

    def _dimension(self) -> ClassicDimension:
        name, at = self._name(), self._cursor.position
        length = self._cursor.count()
        if length > _GREATEST:
            raise MalformedFile(f"dimension {name!r} has length {length}", at=at)
        self._element_done()
        return ClassicDimension(name, length or None)

    def _attributes(self, owner: str) -> dict[str, ClassicAttribute]:
        found: dict[str, ClassicAttribute] = {}
        for _ in self._list(_ATTRIBUTES, "attributes", 3):
            at = self._cursor.position
            attribute = self._attribute()
            if not attribute.name or attribute.name in found:
                self._note(
                    f"{owner}@{attribute.name}",
                    "the attribute name is empty or occurs twice; the attribute is left out",
                    at,
                )
            else:
                found[attribute.name] = attribute
        return found

    def _note(self, path: str, what: str, at: int) -> None:
        if len(self._problems) < _MOST_NAMED:
            self._problems.append(Problem.from_error(path, MalformedFile(what, at=at)))

    def _attribute(self) -> ClassicAttribute:
        name = self._name()
        type = self._type(f"attribute {name!r}")
        at = self._cursor.position
        count = self._cursor.count()
        stored = self._cursor.take_padded(self._bounded(count * type.nbytes, at))
        return ClassicAttribute(name=name, type=type, values=native(np.frombuffer(stored, type.dtype)))

    def _type(self, what: str) -> NcType:
        at = self._cursor.position
        number = self._cursor.u32()
        try:
            return NcType(number)
        except ValueError:
            raise MalformedFile(f"{what} has unknown type {number}", at=at) from None

    def _variable(self, dimensions: Sequence[ClassicDimension]) -> ClassicVariable:
        cursor, name = self._cursor, self._name()
        at = cursor.position
        rank = cursor.count()
        if rank * 4 > self._nbytes - cursor.position:
            raise MalformedFile(f"variable {name!r} has {rank} dimensions, more than fit into the file", at=at)
        ids = tuple(cursor.count() for _ in range(rank))
        if any(number >= len(dimensions) for number in ids):
            what = f"variable {name!r} uses dimension {max(ids)}, but the file has only {len(dimensions)}"
            raise MalformedFile(what, at=at)
        lengths = [dimensions[number].length for number in ids]
        attributes = self._attributes(f"/{name}")
        variable = ClassicVariable(
            name=name,
            dimension_ids=ids,
            shape=tuple(length or 0 for length in lengths),
            is_record=bool(lengths) and lengths[0] is None,
            attributes=attributes,
            type=self._type(f"variable {name!r}"),
            vsize=cursor.count(),
            begin=cursor.u32() if self._version == 1 else cursor.u64(),
        )
        self._first_begin = min(self._first_begin, variable.begin)
        self._element_done()
        return variable
