from __future__ import annotations

import pytest

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.hdf5.header import ObjectHeader, read_object_header
from h5zarr.hdf5.messages.kinds import Kind
from h5zarr.io.steps import run
from tests.fake_file import (
    UNDEFINED,
    FakeFile,
    continuation,
    continuation_block_v2,
    header_v1,
    header_v2,
    message_v1,
    message_v2,
    with_checksum,
)

AT = 0x100
COMMENT = Kind.COMMENT


def read(file: FakeFile) -> ObjectHeader:
    return run(read_object_header(AT, file.sizes), file.read_many)


def contents(header: ObjectHeader) -> list[bytes]:
    return [message.content for message in header.messages]


# --- both versions


def test_messages_of_version_1_come_in_the_order_of_the_file() -> None:
    file = FakeFile({AT: header_v1(message_v1(3, b"datatype"), message_v1(1, b"space...", flags=2))}, nbytes=4096)
    header = read(file)
    assert [(one.kind, one.content, one.order) for one in header.messages] == [
        (3, b"datatype", None),
        (1, b"space...", None),
    ]
    assert [one.is_shared for one in header.messages] == [False, True]
    assert [one.address for one in header.messages] == [AT + 16 + 8, AT + 16 + 8 + 8 + 8]
    assert header.address == AT
    assert file.rounds == 1


def test_messages_of_version_2_come_in_the_order_of_the_file() -> None:
    file = FakeFile({AT: header_v2(message_v2(3, b"datatype"), message_v2(1, b"", flags=2))}, nbytes=4096)
    header = read(file)
    assert [(one.kind, one.flags, one.content) for one in header.messages] == [(3, 0, b"datatype"), (1, 2, b"")]
    assert [one.address for one in header.messages] == [AT + 7 + 4, AT + 7 + 4 + 8 + 4]
    assert file.rounds == 1


@pytest.mark.parametrize("flags", [0, 1, 2, 3, 0x10, 0x20, 0x31, 0x33])
def test_optional_fields_of_version_2_are_passed_over(flags: int) -> None:
    file = FakeFile({AT: header_v2(message_v2(3, b"datatype"), flags=flags)}, nbytes=4096)
    assert contents(read(file)) == [b"datatype"]


def test_version_2_may_track_the_order_of_messages() -> None:
    file = FakeFile(
        {AT: header_v2(message_v2(12, b"b", order=258), message_v2(12, b"a", order=0), flags=0x04)}, nbytes=4096
    )
    assert [(one.content, one.order) for one in read(file).messages] == [(b"b", 258), (b"a", 0)]


@pytest.mark.parametrize(
    "header",
    [
        header_v1(message_v1(0, b"removed!"), message_v1(3, b"datatype")),
        header_v2(message_v2(0, b"removed"), message_v2(3, b"datatype")),
    ],
)
def test_null_messages_are_passed_over(header: bytes) -> None:
    assert contents(read(FakeFile({AT: header}, nbytes=4096))) == [b"datatype"]


def test_of_kind_and_first_choose_messages() -> None:
    file = FakeFile({AT: header_v2(message_v2(12, b"a"), message_v2(3, b"t"), message_v2(12, b"b"))}, nbytes=4096)
    header = read(file)
    assert [one.content for one in header.of_kind(Kind.ATTRIBUTE)] == [b"a", b"b"]
    first = header.first(Kind.ATTRIBUTE)
    assert first is not None
    assert first.content == b"a"
    assert header.first(Kind.LAYOUT) is None


def test_a_header_without_messages_has_none() -> None:
    assert read(FakeFile({AT: header_v1()}, nbytes=4096)).messages == ()
    assert read(FakeFile({AT: header_v2()}, nbytes=4096)).messages == ()


@pytest.mark.parametrize("gap", [b"", b"\0", b"\0\0\0"])
def test_a_gap_at_the_end_of_a_version_2_header_is_skipped(gap: bytes) -> None:
    file = FakeFile({AT: header_v2(message_v2(3, b"datatype"), gap=gap)}, nbytes=4096)
    assert contents(read(file)) == [b"datatype"]


def test_a_gap_may_be_larger_where_messages_have_an_order() -> None:
    file = FakeFile({AT: header_v2(message_v2(3, b"datatype", order=1), flags=4, gap=bytes(5))}, nbytes=4096)
    assert contents(read(file)) == [b"datatype"]


@pytest.mark.parametrize("build", [(header_v1, message_v1), (header_v2, message_v2)])
def test_a_message_that_must_be_understood_is_unsupported_when_it_is_not_known(build) -> None:
    header, message = build
    known = FakeFile({AT: header(message(13, b"comment.", flags=0x80))}, nbytes=4096)
    assert contents(read(known)) == [b"comment."]
    harmless = FakeFile({AT: header(message(0x70, b"unknown!"))}, nbytes=4096)
    assert contents(read(harmless)) == [b"unknown!"]
    with pytest.raises(Unsupported, match="message of unknown type 0x70"):
        read(FakeFile({AT: header(message(0x70, b"unknown!", flags=0x80))}, nbytes=4096))


# --- rounds


@pytest.mark.parametrize(
    ("nbytes", "rounds"),
    [(1024 - 16 - 8, 1), (1024 - 16 - 8 + 1, 2), (60_000, 2)],
)
def test_a_header_of_version_1_takes_one_round_while_it_is_small(nbytes: int, rounds: int) -> None:
    file = FakeFile({AT: header_v1(message_v1(13, b"x" * nbytes))}, nbytes=80_000)
    assert contents(read(file)) == [b"x" * nbytes]
    assert file.rounds == rounds


@pytest.mark.parametrize(
    ("nbytes", "rounds"),
    [(1024 - 8 - 4 - 4, 1), (1024 - 8 - 4 - 4 + 1, 2), (60_000, 2)],
)
def test_a_header_of_version_2_takes_one_round_while_it_is_small(nbytes: int, rounds: int) -> None:
    file = FakeFile({AT: header_v2(message_v2(13, b"x" * nbytes), flags=1)}, nbytes=80_000)
    assert contents(read(file)) == [b"x" * nbytes]
    assert file.rounds == rounds


@pytest.mark.parametrize(
    "header", [header_v1(message_v1(3, b"datatype")), header_v2(message_v2(3, b"datatype"), flags=0x31)]
)
def test_a_header_may_end_with_the_file(header: bytes) -> None:
    file = FakeFile({AT: header})
    assert contents(read(file)) == [b"datatype"]
    assert file.rounds == 1


# --- continuations


def test_continuations_of_version_1_take_a_round_for_each_generation() -> None:
    second, third, fourth = message_v1(13, b"second.."), message_v1(13, b"third..."), message_v1(13, b"fourth..")
    to_third = message_v1(16, continuation(0x1600, len(third)))
    file = FakeFile(
        {
            AT: header_v1(
                message_v1(13, b"first..."),
                message_v1(16, continuation(0x1400, len(second + to_third))),
                message_v1(16, continuation(0x1800, len(fourth))),
                message_v1(13, b"last...."),
            ),
            0x1400: second + to_third,
            0x1600: third,
            0x1800: fourth,
        },
        nbytes=0x2000,
    )
    assert contents(read(file)) == [b"first...", b"last....", b"second..", b"fourth..", b"third..."]
    assert [len(spans) for spans in file.requests] == [1, 2, 1]


def test_continuations_of_version_2_are_checked_and_have_gaps_and_orders() -> None:
    block = continuation_block_v2(message_v2(13, b"second", order=7), gap=bytes(5))
    first = header_v2(
        message_v2(13, b"first", order=1), message_v2(16, continuation(0x1400, len(block)), order=0), flags=4
    )
    header = read(FakeFile({AT: first, 0x1400: block}, nbytes=0x2000))
    assert [(one.content, one.order, one.address) for one in header.messages] == [
        (b"first", 1, AT + 7 + 6),
        (b"second", 7, 0x1400 + 4 + 6),
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_a_continuation_that_comes_back_to_itself_is_malformed(version: int) -> None:
    if version == 1:
        block = message_v1(16, continuation(0x1400, 24))
        first = header_v1(message_v1(16, continuation(0x1400, len(block))))
    else:
        block = continuation_block_v2(message_v2(16, continuation(0x1400, 28)))
        first = header_v2(message_v2(16, continuation(0x1400, len(block))))
    file = FakeFile({AT: first, 0x1400: block}, nbytes=0x2000)
    with pytest.raises(MalformedFile, match="object header reaches the same node twice"):
        read(file)
    assert file.rounds == 2


def test_a_continuation_that_comes_back_to_the_header_is_malformed() -> None:
    file = FakeFile({AT: header_v1(message_v1(16, continuation(AT, 64)))}, nbytes=0x2000)
    with pytest.raises(MalformedFile, match="twice"):
        read(file)


def test_two_continuations_to_the_same_block_are_malformed() -> None:
    to_block = message_v1(16, continuation(0x1400, 16))
    file = FakeFile({AT: header_v1(to_block, to_block), 0x1400: message_v1(13, b"12345678")}, nbytes=0x2000)
    with pytest.raises(MalformedFile, match="twice"):
        read(file)


@pytest.mark.parametrize(("address", "nbytes"), [(UNDEFINED, 8), (0x1400, 0), (0x1FF8, 16), (0x1400, 1 << 60)])
def test_a_continuation_that_points_nowhere_is_malformed(address: int, nbytes: int) -> None:
    file = FakeFile({AT: header_v1(message_v1(16, continuation(address, nbytes)))}, nbytes=0x2000)
    with pytest.raises(MalformedFile, match=r"has no address|outside the file"):
        read(file)
    assert file.rounds == 1


def test_a_continuation_without_room_for_its_fields_is_malformed() -> None:
    file = FakeFile({AT: header_v1(message_v1(16, bytes(8)))}, nbytes=0x2000)
    with pytest.raises(MalformedFile, match="continuation message is truncated"):
        read(file)


@pytest.mark.parametrize("damage", [0, 5, -1])
def test_a_damaged_continuation_of_version_2_is_malformed(damage: int) -> None:
    block = bytearray(continuation_block_v2(message_v2(13, b"second")))
    block[damage] ^= 1
    first = header_v2(message_v2(16, continuation(0x1400, len(block))))
    with pytest.raises(MalformedFile, match="object header continuation") as caught:
        read(FakeFile({AT: first, 0x1400: bytes(block)}, nbytes=0x2000))
    assert caught.value.address == 0x1400


# --- damage


@pytest.mark.parametrize("damage", [6, 10, -1])
def test_a_damaged_header_of_version_2_fails_its_checksum(damage: int) -> None:
    block = bytearray(header_v2(message_v2(3, b"datatype")))
    block[damage] ^= 1
    with pytest.raises(MalformedFile, match="object header fails its checksum") as caught:
        read(FakeFile({AT: bytes(block)}, nbytes=0x2000))
    assert caught.value.address == AT


@pytest.mark.parametrize(
    ("header", "at"),
    [
        (header_v1(b"\x03\x00\x09\x00\0\0\0\0" + b"datatype"), AT + 16 + 8),
        (header_v2(b"\x03\x09\x00\x00" + b"datatype"), AT + 7 + 4),
    ],
)
def test_a_message_past_the_end_of_its_header_is_malformed(header: bytes, at: int) -> None:
    with pytest.raises(MalformedFile, match="message of type 0x3 extends beyond its header") as caught:
        read(FakeFile({AT: header}, nbytes=0x2000))
    assert caught.value.address == at


def test_a_header_that_is_larger_than_the_file_is_malformed() -> None:
    file = FakeFile({AT: header_v1(message_v1(3, b"datatype"), nbytes=0x2000)}, nbytes=0x2000)
    with pytest.raises(MalformedFile, match="object header of 8192 bytes reaches outside the file"):
        read(file)
    assert file.rounds == 1


@pytest.mark.parametrize("version", [0, 1, 3])
def test_an_unknown_version_behind_the_signature_is_malformed(version: int) -> None:
    block = with_checksum(b"OHDR" + bytes((version, 0, 0)))
    with pytest.raises(MalformedFile, match=f"object header has unknown version {version}"):
        read(FakeFile({AT: block}, nbytes=0x2000))


def test_an_invalid_header_is_reported() -> None:
    with pytest.raises(MalformedFile, match=r"neither a signature nor version 1, but begins with b'TREE'"):
        read(FakeFile({AT: b"TREE"}, nbytes=0x2000))


def test_a_header_cut_short_by_the_end_of_the_file_is_malformed() -> None:
    with pytest.raises(MalformedFile):
        read(FakeFile({AT: header_v1()[:15]}))
    with pytest.raises(MalformedFile):
        read(FakeFile({AT: header_v2(message_v2(3, b"datatype"), flags=0x33)[:30]}))
