from __future__ import annotations

import struct

import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.on_disk import U8, U16, U32, Address, Length, OnDisk, Reserved3, check_signature, on_disk
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.span import Span
from tests.fake_file import uint, with_checksum


@on_disk(b"DEMO", versions=(1, 3))
class DemoHeader(OnDisk):
    version: U8
    count: U16
    reserved: Reserved3
    number: U32
    nbytes_in_all: Length
    child: Address
    checksum: U32


@on_disk(b"BARE")
class BareBlock(OnDisk):
    child: Address


def demo(version: int = 1, offset_nbytes: int = 8, length_nbytes: int = 8, child: int = 0x40) -> bytes:
    block = b"DEMO" + struct.pack("<BH3sI", version, 7, b"\0\0\0", 70_000)
    return with_checksum(block + uint(500, length_nbytes) + uint(child, offset_nbytes))


@pytest.mark.parametrize("offset_nbytes", [2, 4, 8])
@pytest.mark.parametrize("length_nbytes", [2, 4, 8])
def test_fields_follow_one_another_in_the_file_s_own_widths(offset_nbytes: int, length_nbytes: int) -> None:
    sizes = Sizes(offset_nbytes=offset_nbytes, length_nbytes=length_nbytes)
    block = demo(offset_nbytes=offset_nbytes, length_nbytes=length_nbytes)
    found = DemoHeader.decode(block, sizes, at=0)
    assert (found.version, found.count, found.number, found.nbytes_in_all, found.child) == (1, 7, 70_000, 500, 0x40)
    assert DemoHeader.nbytes(sizes) == len(block)


def test_addresses_come_out_absolute() -> None:
    assert DemoHeader.decode(demo(), Sizes(base=512), at=0).child == 512 + 0x40


@pytest.mark.parametrize("width", [2, 4, 8])
def test_the_undefined_address_comes_out_as_none(width: int) -> None:
    block = b"BARE" + b"\xff" * width
    assert BareBlock.decode(block, Sizes(offset_nbytes=width, base=512), at=0).child is None


def test_bytes_behind_the_structure_do_not_matter() -> None:
    assert DemoHeader.decode(memoryview(demo() + b"more"), Sizes(), at=0).count == 7


def test_a_truncated_structure_is_reported_with_its_address() -> None:
    with pytest.raises(MalformedFile, match=r"demo header is truncated \(byte 0x200\)"):
        DemoHeader.decode(demo()[:-1], Sizes(), at=0x200)


def test_a_wrong_signature_is_shown() -> None:
    with pytest.raises(MalformedFile, match=r"demo header has signature b'DEMI', expected b'DEMO' \(byte 0x200\)"):
        DemoHeader.decode(b"DEMI" + demo()[4:], Sizes(), at=0x200)


def test_every_declared_version_is_read() -> None:
    assert DemoHeader.decode(demo(version=3), Sizes(), at=0).version == 3


@pytest.mark.parametrize("version", [0, 2, 4])
def test_an_unknown_version_is_refused(version: int) -> None:
    with pytest.raises(MalformedFile, match=f"demo header has unknown version {version}"):
        DemoHeader.decode(demo(version=version), Sizes(), at=0)


def test_a_wrong_checksum_is_refused() -> None:
    block = bytearray(demo())
    block[6] ^= 1
    with pytest.raises(MalformedFile, match="demo header fails its checksum"):
        DemoHeader.decode(bytes(block), Sizes(), at=0)


def test_a_span_covers_the_structure_and_stays_inside_the_file() -> None:
    sizes = Sizes(end=0x100)
    assert BareBlock.span(0xF4, sizes) == Span(0xF4, 12)
    with pytest.raises(MalformedFile, match="bare block of 12 bytes reaches outside the file"):
        BareBlock.span(0xF5, sizes)


def test_check_signature_compares_the_first_bytes_only() -> None:
    check_signature(b"FHDB and more", b"FHDB", "block", 0)
    with pytest.raises(MalformedFile, match="block has signature"):
        check_signature(b"FHD", b"FHDB", "block", 0)
