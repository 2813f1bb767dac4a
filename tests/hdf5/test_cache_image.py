from __future__ import annotations

import struct

import pytest

import h5zarr
from h5zarr.errors import MalformedFile
from h5zarr.hdf5.cache_image import CachedEntry, overlay, read_cache_image
from h5zarr.hdf5.header import Message
from h5zarr.hdf5.messages.kinds import Kind
from h5zarr.io.span import Span
from h5zarr.io.steps import Step, run
from tests.collections_of_files import SAMPLES
from tests.fake_file import UNDEFINED, FakeFile, uint, with_checksum
from tests.truth.scan_against_h5py import compare

AT = 0x1000


def entry(address: int, content: bytes, parents: tuple[int, ...] = ()) -> bytes:
    head = struct.pack("<BBBBHHHI", 1, 0, 1, 0, 0, 0, len(parents), 0)
    return head + uint(address) + uint(len(content)) + b"".join(map(uint, parents)) + content


def image(*entries: bytes, version: int = 0, count: int | None = None) -> bytes:
    body = b"".join(entries)
    head = b"MDCI" + bytes((version, 0)) + uint(18 + len(body) + 4)
    return with_checksum(head + uint(len(entries) if count is None else count, 4) + body)


def extension(address: int, nbytes: int, version: int = 0) -> tuple[Message, ...]:
    content = bytes((version,)) + uint(address) + uint(nbytes)
    return (Message(Kind.SHARED_TABLE, 0, b"", 0x40, None), Message(Kind.CACHE_IMAGE, 0, content, 0x50, None))


def read(block: bytes) -> list[CachedEntry]:
    file = FakeFile({AT: block})
    return run(read_cache_image(extension(AT, len(block)), file.sizes), file.read_many)


def test_most_files_have_no_image_and_need_no_round_for_it() -> None:
    file = FakeFile({0: b""}, nbytes=64)
    assert run(read_cache_image((), file.sizes), file.read_many) == []
    assert run(read_cache_image(extension(UNDEFINED, 0), file.sizes), file.read_many) == []
    assert file.rounds == 0


def test_entries_have_addresses_and_bytes() -> None:
    assert read(image(entry(0x30, b"header"), entry(0x800, b"heap", parents=(0x30, 0x90)))) == [
        CachedEntry(0x30, b"header"),
        CachedEntry(0x800, b"heap"),
    ]


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        (image(version=1), "cache image has unknown version 1"),
        (image(entry(0x30, b"header"))[:-1] + b"\0", "cache image fails its checksum"),
        (b"MDCX" + image()[4:], "signature"),
        (image(count=1), "inside a field"),
        (image(entry(UNDEFINED, b"header")), "entry without an address"),
        (image(entry(0x30, b"header")[:-1]), "inside a field"),
    ],
)
def test_a_broken_image_is_malformed(block: bytes, complaint: str) -> None:
    with pytest.raises(MalformedFile, match=complaint):
        read(block)


def test_a_message_of_another_version_or_outside_the_file_is_malformed() -> None:
    file = FakeFile({0: b""}, nbytes=64)
    with pytest.raises(MalformedFile, match="cache image message has unknown version 1"):
        run(read_cache_image(extension(AT, 30, version=1), file.sizes), file.read_many)
    with pytest.raises(MalformedFile, match="outside the file"):
        run(read_cache_image(extension(AT, 30), file.sizes), file.read_many)


def read_spans(*spans: Span) -> Step[list[bytes]]:
    found = []
    for span in spans:
        (buffer,) = yield [span]
        found.append(bytes(buffer))
    return found


def test_cached_entries_replace_the_bytes_of_the_file() -> None:
    file = FakeFile({0: b"0123456789"})
    entries = [CachedEntry(2, b"AB"), CachedEntry(6, b"CDE")]
    spans = [Span(0, 10), Span(3, 4), Span(4, 2), Span(7, 1), Span(0, 2), Span(9, 1)]
    found = run(overlay(read_spans(*spans), entries), file.read_many)
    assert found == [b"01AB45CDE9", b"B45C", b"45", b"D", b"01", b"9"]
    assert file.rounds == 6


def test_without_entries_nothing_changes() -> None:
    file = FakeFile({0: b"0123456789"})
    assert run(overlay(read_spans(Span(0, 10)), []), file.read_many) == [b"0123456789"]


def test_a_step_that_asks_for_nothing_may_be_overlaid() -> None:
    file = FakeFile({0: b"0123456789"})
    assert run(overlay(read_spans(), [CachedEntry(2, b"AB")]), file.read_many) == []


def test_a_file_with_an_image_is_what_h5py_says() -> None:
    path = SAMPLES / "metadata_cache_image.h5"
    found = compare(path)
    assert not found.differences
    assert not found.problems
    assert len(h5zarr.scan(str(path)).paths) > 1
