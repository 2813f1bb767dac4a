"""The layout of the values: record size, record count, and checks for impossible addresses.

Spec: "Notes on Computing File Offsets". The stored `vsize` is not used: it repeats the shape, except where it overflows
32 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from h5zarr.errors import MalformedFile, Problem
from h5zarr.io.steps import Step
from h5zarr.limits import USUAL, Limits
from h5zarr.netcdf3.classic_file import ClassicFile, ClassicVariable, Header
from h5zarr.netcdf3.header import read_header


class _Place(NamedTuple):
    """The byte range of a variable's values, or of its first record."""

    begin: int
    end: int
    number: int


def read_classic(url: str, nbytes: int, beginning: bytes = b"", limits: Limits = USUAL) -> Step[ClassicFile]:
    """Return the content of the file at `url`, of `nbytes` bytes. `beginning` holds bytes that were already read."""
    header = yield from read_header(nbytes, beginning)
    count = len(header.dimensions) + len(header.variables)
    limits.check("object_count", count, f"the file has {count:,} dimensions and variables")
    return interpret_header(url, nbytes, header)


def interpret_header(url: str, nbytes: int, header: Header) -> ClassicFile:
    """Return the file that a header describes, with its record count and the variables at impossible addresses."""
    record_nbytes = find_record_nbytes(header)
    count, cut = _count_records(header, record_nbytes, nbytes)
    return ClassicFile(
        url=url,
        nbytes=nbytes,
        header=header,
        record_count=count,
        record_nbytes=record_nbytes,
        refused=_refuse(header, count, record_nbytes),
        problems=header.problems + cut,
    )


def find_record_nbytes(header: Header) -> int:
    """Return the distance between records: the sum of all slabs, each padded to four bytes.

    A single slab has no padding.
    """
    slabs = [variable.slab_nbytes for variable in header.variables if variable.is_record]
    return slabs[0] if len(slabs) == 1 else sum(nbytes + -nbytes % 4 for nbytes in slabs)


def _count_records(header: Header, record_nbytes: int, nbytes: int) -> tuple[int, tuple[Problem, ...]]:
    """Return the record count: as stored, or the number of complete records. Spec: "Note on streaming data"."""
    if header.stated_records is not None:
        return header.stated_records, ()
    records = [variable for variable in header.variables if variable.is_record]
    if not records or not record_nbytes:
        return 0, ()
    begin = min(variable.begin for variable in records)
    end = max(variable.begin + variable.slab_nbytes for variable in records)  # end of the first record, without padding
    count = max(0, (nbytes - end) // record_nbytes + 1)
    rest = nbytes - begin - count * record_nbytes
    if rest <= 0:
        return count, ()
    what = f"the file ends inside record {count}: {rest} of {record_nbytes} bytes are there, and are left out"
    return count, (Problem.from_error("/", MalformedFile(what, at=nbytes - rest)),)


def _refuse(header: Header, count: int, record_nbytes: int) -> dict[int, str]:
    """Return the variables that cannot be read, by number, with the reason.

    Their values would belong to something else. netCDF-C rejects such a file as a whole.
    """
    refused = {}
    spans: list[_Place] = []
    for number, variable in enumerate(header.variables):
        if 0 in variable.shape[1:]:
            refused[number] = "the record dimension is not its first dimension"
        elif not variable.slab_nbytes or (variable.is_record and not count):
            continue
        elif variable.begin < header.nbytes:
            refused[number] = f"its values start at byte {variable.begin}, inside the header of {header.nbytes} bytes"
        else:
            spans.append(_Place(variable.begin, variable.begin + variable.slab_nbytes, number))
    for one, other in _overlaps(sorted(spans), header.variables, count, record_nbytes):
        for number, beside in ((one, other), (other, one)):
            name = header.variables[beside].name
            refused.setdefault(number, f"its values overlap those of {name!r}: one of the two has a wrong address")
    return refused


def _overlaps(
    spans: Sequence[_Place], variables: Sequence[ClassicVariable], count: int, record_nbytes: int
) -> Iterator[tuple[int, int]]:
    """Yield pairs of variables that share bytes.

    `spans` are sorted, and hold the first record of each record variable.
    """
    furthest = _Place(0, 0, -1)
    for span in spans:
        if span.begin < furthest.end:
            yield span.number, furthest.number
        furthest = max(span, furthest, key=lambda each: each.end)
    records = [span for span in spans if variables[span.number].is_record]
    if not records or count < 2:
        return
    begin, end = records[0].begin, records[0].begin + count * record_nbytes
    last = max(records, key=lambda each: each.end)
    if last.end > begin + record_nbytes:  # its first record ends after the second record starts
        yield last.number, records[0].number
    among = [span for span in spans if not variables[span.number].is_record and span.begin < end and span.end > begin]
    yield from ((span.number, records[0].number) for span in among)
    yield from ((record.number, among[0].number) for record in records if among)
