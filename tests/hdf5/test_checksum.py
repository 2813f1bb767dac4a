from __future__ import annotations

import random

import numpy as np
import pytest
from numcodecs.jenkins import jenkins_lookup3

from h5zarr.errors import MalformedFile
from h5zarr.hdf5 import checksum
from h5zarr.hdf5.checksum import check_checksum, check_checksums, interpreted_lookup3, lookup3


class Fresh:
    """A hasher that has not hashed anything yet, in place of the one that all tests share."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.hasher = checksum._FirstInterpreted()
        monkeypatch.setattr(checksum, "_hasher", self.hasher)
        monkeypatch.setattr(checksum, "_is_imported", lambda: False)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Fresh:
    return Fresh(monkeypatch)


def test_the_hash_of_nothing_is_the_published_one() -> None:
    assert interpreted_lookup3(b"") == 0xDEADBEEF  # lookup3.c, driver5


def test_the_hash_of_four_score_is_the_published_one() -> None:
    assert interpreted_lookup3(b"Four score and seven years ago") == 0x17770551  # lookup3.c, driver5


@pytest.mark.parametrize("nbytes", [*range(1, 40), 100, 1000])
def test_python_and_compiled_code_agree_at_every_length(nbytes: int) -> None:
    content = random.Random(nbytes).randbytes(nbytes)
    assert interpreted_lookup3(content) == jenkins_lookup3(content)


def test_a_memoryview_hashes_like_its_bytes() -> None:
    content = bytes(range(50))
    assert interpreted_lookup3(memoryview(content)[3:40]) == interpreted_lookup3(content[3:40])


def test_small_amounts_are_hashed_in_python_and_large_ones_in_compiled_code(fresh: Fresh) -> None:
    small, large = bytes(range(100)), bytes(100_000)
    assert lookup3(small) == jenkins_lookup3(small)
    assert fresh.hasher._compiled is None
    assert lookup3(large) == jenkins_lookup3(large)
    assert fresh.hasher._compiled is jenkins_lookup3
    assert lookup3(small) == jenkins_lookup3(small)
    assert lookup3(b"") == 0xDEADBEEF


def test_what_others_have_imported_is_used_at_once(fresh: Fresh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # this module has imported it
    assert fresh.hasher(b"") == 0xDEADBEEF
    assert fresh.hasher._compiled is jenkins_lookup3


def test_a_block_with_its_checksum_passes() -> None:
    block = b"OHDR and its messages"
    check_checksum(block + lookup3(block).to_bytes(4, "little"), "object header", 0x30)


@pytest.mark.parametrize("damaged", [0, 10, 20, 21, 24])
def test_one_wrong_byte_anywhere_fails_with_the_address(damaged: int) -> None:
    block = bytearray(b"OHDR and its messages")
    block += lookup3(bytes(block)).to_bytes(4, "little")
    block[damaged] ^= 0x40
    with pytest.raises(MalformedFile, match=r"object header fails its checksum \(byte 0x30\)") as caught:
        check_checksum(bytes(block), "object header", 0x30)
    assert caught.value.address == 0x30


@pytest.mark.parametrize("count", [3, 2000])
def test_many_rows_are_checked_like_one_block_in_python_and_compiled(fresh: Fresh, count: int) -> None:
    content = [random.Random(number).randbytes(20 + number % 10) for number in range(count)]
    blocks = [one + jenkins_lookup3(one).to_bytes(4, "little") for one in content]
    rows = np.array([list(block.ljust(40, b"\xee")) for block in blocks], np.uint8)
    nbytes, addresses = np.array([len(block) for block in blocks]), np.arange(count) + 0x100
    check_checksums(rows, nbytes, "node", addresses)
    for damaged in (0, 21, 25):  # the first and last byte of the third row's content, and its checksum's last
        rows[2, damaged] ^= 1
        with pytest.raises(MalformedFile, match="node fails its checksum") as caught:
            check_checksums(rows, nbytes, "node", addresses)
        assert caught.value.address == 0x102
        rows[2, damaged] ^= 1
    rows[:, 33:] = 0  # what is behind the checksum is not its concern
    check_checksums(rows, nbytes, "node", addresses)
