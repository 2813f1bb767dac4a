from __future__ import annotations

import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.messages.fill_value import decode_fill, decode_old_fill
from h5zarr.hdf5.model import WRITE_FILL_NEVER, FillKind, FillValue
from tests.fake_file import uint

EARLY, LATE, INCREMENTAL = 1, 2, 3
ON_ALLOCATION, NEVER, IF_SET = 0, 1, 2
ELEMENT = b"\x18\xfc\xff\xff"


def version_1(element: bytes | None, allocation: int = LATE, write: int = IF_SET, defined: int = 1) -> bytes:
    nbytes = uint(0xFFFFFFFF, 4) if element is None else uint(len(element), 4)
    return bytes((1, allocation, write, defined)) + nbytes + (element or b"")


def version_2(element: bytes | None, allocation: int = LATE, write: int = IF_SET) -> bytes:
    head = bytes((2, allocation, write, element is not None))
    return head if element is None else head + uint(len(element), 4) + element


def version_3(element: bytes | None, allocation: int = LATE, write: int = IF_SET, undefined: bool = False) -> bytes:
    flags = allocation | write << 2 | undefined << 4 | (element is not None) << 5
    return bytes((3, flags)) + (b"" if element is None else uint(len(element), 4) + element)


@pytest.mark.parametrize("build", [version_1, version_2, version_3])
@pytest.mark.parametrize("allocation", [EARLY, LATE, INCREMENTAL])
@pytest.mark.parametrize("write", [ON_ALLOCATION, NEVER, IF_SET])
def test_a_fill_value_and_its_times(build, allocation: int, write: int) -> None:
    assert decode_fill(build(ELEMENT, allocation, write)) == FillValue(
        kind=FillKind.USER_DEFINED, element=ELEMENT, allocation_time=allocation, write_time=write
    )


@pytest.mark.parametrize("build", [version_1, version_2])
def test_no_bytes_are_the_default_of_the_library(build) -> None:
    found = decode_fill(build(b""))
    assert (found.kind, found.element) == (FillKind.LIBRARY_DEFAULT, None)


def test_no_field_is_the_default_of_the_library_in_version_3() -> None:
    assert decode_fill(version_3(None)).kind is FillKind.LIBRARY_DEFAULT


@pytest.mark.parametrize(
    "message", [version_1(None), version_1(None, defined=0), version_2(None), version_3(None, undefined=True)]
)
def test_an_undefined_fill_value_is_recognised(message: bytes) -> None:
    found = decode_fill(message)
    assert (found.kind, found.element) == (FillKind.UNDEFINED, None)
    assert (found.allocation_time, found.write_time) == (LATE, IF_SET)


def test_what_is_never_written_is_not_read() -> None:
    assert decode_fill(version_3(ELEMENT, write=NEVER)).unwritten is None
    assert decode_fill(version_3(ELEMENT, write=IF_SET)).unwritten == ELEMENT
    assert decode_fill(version_3(None)).unwritten is None
    assert NEVER == WRITE_FILL_NEVER


def test_the_old_message_has_a_size_and_no_times() -> None:
    assert decode_old_fill(uint(4, 4) + ELEMENT) == FillValue(kind=FillKind.USER_DEFINED, element=ELEMENT)
    assert decode_old_fill(uint(0, 4)) == FillValue(kind=FillKind.LIBRARY_DEFAULT)


@pytest.mark.parametrize("version", [0, 4])
def test_an_unknown_version_is_malformed(version: int) -> None:
    with pytest.raises(MalformedFile, match=f"fill value message has unknown version {version}"):
        decode_fill(bytes((version,)) + version_2(ELEMENT)[1:])


@pytest.mark.parametrize("flags", [0x40, 0x80, 0x30])
def test_impossible_flags_of_version_3_are_malformed(flags: int) -> None:
    with pytest.raises(MalformedFile, match=f"impossible flags {flags:#x}"):
        decode_fill(bytes((3, flags)) + uint(4, 4) + ELEMENT)


@pytest.mark.parametrize("message", [version_1(ELEMENT), version_2(ELEMENT), version_3(ELEMENT)])
def test_a_message_cut_short_anywhere_is_malformed(message: bytes) -> None:
    for nbytes in range(len(message)):
        with pytest.raises(MalformedFile):
            decode_fill(message[:nbytes])


def test_an_old_message_cut_short_anywhere_is_malformed() -> None:
    message = uint(4, 4) + ELEMENT
    for nbytes in range(len(message)):
        with pytest.raises(MalformedFile):
            decode_old_fill(message[:nbytes])
