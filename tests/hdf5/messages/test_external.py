from __future__ import annotations

import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.messages.external import ExternalFiles, ExternalSlot, decode_external_files
from h5zarr.hdf5.sizes import Sizes
from tests.fake_file import UNDEFINED, uint


def message(*slots: tuple[int, int, int], version: int = 1, heap: int = 0x100, width: int = 8) -> bytes:
    head = bytes((version, 0, 0, 0)) + uint(len(slots), 2) + uint(len(slots), 2) + uint(heap)
    return head + b"".join(uint(number, width) for slot in slots for number in slot)


def test_segments_follow_one_another() -> None:
    found = decode_external_files(message((8, 0, 100), (24, 4096, 50)), Sizes(base=512))
    assert found == ExternalFiles(0x300, (ExternalSlot(8, 0, 100), ExternalSlot(24, 4096, 50)))


@pytest.mark.parametrize("width", [2, 4, 8])
def test_all_ones_means_to_the_end_of_the_file(width: int) -> None:
    unlimited = (1 << 8 * width) - 1
    found = decode_external_files(message((8, 0, unlimited), width=width), Sizes(length_nbytes=width))
    assert found.slots == (ExternalSlot(8, 0, None),)


def test_an_impossible_message_is_malformed() -> None:
    with pytest.raises(MalformedFile, match="unknown version 2"):
        decode_external_files(message(version=2), Sizes())
    with pytest.raises(MalformedFile, match="no heap for the file names"):
        decode_external_files(message(heap=UNDEFINED), Sizes())
    whole = message((8, 0, 100))
    for nbytes in range(len(whole)):
        with pytest.raises(MalformedFile):
            decode_external_files(whole[:nbytes], Sizes())
