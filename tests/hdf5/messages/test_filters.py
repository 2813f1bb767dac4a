from __future__ import annotations

import struct

import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.messages.filters import decode_filters
from h5zarr.hdf5.model import Filter
from tests.fake_file import padded, uint

SHUFFLE = Filter(number=2, name="shuffle", optional=True, values=(4,))
DEFLATE = Filter(number=1, name="deflate", optional=True, values=(6,))
FLETCHER32 = Filter(number=3, name="fletcher32", optional=False, values=())
BLOSC = Filter(number=32_001, name="blosc", optional=True, values=(2, 2, 4, 1000, 5, 1, 0))


def version_1(*filters: Filter, pad_last: bool = True) -> bytes:
    message = bytes((1, len(filters))) + bytes(6)
    for number, one in enumerate(filters):
        name = padded(one.name.encode() + b"\0")
        message += struct.pack("<HHHH", one.number, len(name), one.optional, len(one.values))
        message += name + struct.pack(f"<{len(one.values)}I", *one.values)
        if len(one.values) % 2 and (pad_last or number < len(filters) - 1):
            message += bytes(4)
    return message


def version_2(*filters: Filter) -> bytes:
    message = bytes((2, len(filters)))
    for one in filters:
        name = one.name.encode() + b"\0" if one.number >= 256 else b""
        message += uint(one.number, 2) + (uint(len(name), 2) if one.number >= 256 else b"")
        message += struct.pack("<HH", one.optional, len(one.values)) + name
        message += struct.pack(f"<{len(one.values)}I", *one.values)
    return message


def unnamed(one: Filter) -> Filter:
    return Filter(number=one.number, name="", optional=one.optional, values=one.values)


def test_version_1_names_every_filter_and_pads_odd_values() -> None:
    filters = (SHUFFLE, DEFLATE, FLETCHER32, BLOSC)
    assert decode_filters(version_1(*filters)) == filters


def test_version_1_may_leave_out_the_last_padding() -> None:
    assert decode_filters(version_1(SHUFFLE, DEFLATE, pad_last=False)) == (SHUFFLE, DEFLATE)


def test_a_name_of_version_1_that_states_its_true_length_is_padded_all_the_same() -> None:
    message = bytes((1, 1)) + bytes(6) + struct.pack("<HHHH", 1, 7, 1, 2) + b"deflate\0" + struct.pack("<2I", 6, 7)
    assert decode_filters(message)[0].values == (6, 7)


def test_version_2_names_only_registered_filters() -> None:
    assert decode_filters(version_2(SHUFFLE, BLOSC, DEFLATE, FLETCHER32)) == (
        unnamed(SHUFFLE),
        BLOSC,
        unnamed(DEFLATE),
        unnamed(FLETCHER32),
    )


def test_the_number_from_which_filters_have_names_is_256() -> None:
    last = Filter(number=255, name="", optional=False, values=(1,))
    first = Filter(number=256, name="first", optional=False, values=(1,))
    assert decode_filters(version_2(last, first)) == (last, first)


@pytest.mark.parametrize("build", [version_1, version_2])
def test_a_pipeline_may_be_empty(build) -> None:
    assert decode_filters(build()) == ()


@pytest.mark.parametrize("build", [version_1, version_2])
def test_at_most_32_filters_are_allowed(build) -> None:
    assert len(decode_filters(build(*[FLETCHER32] * 32))) == 32
    with pytest.raises(MalformedFile, match="33 filters, but at most 32"):
        decode_filters(build(*[FLETCHER32] * 33))


@pytest.mark.parametrize("version", [0, 3])
def test_an_unknown_version_is_malformed(version: int) -> None:
    with pytest.raises(MalformedFile, match=f"filter pipeline message has unknown version {version}"):
        decode_filters(bytes((version,)) + version_2(SHUFFLE)[1:])


@pytest.mark.parametrize("message", [version_1(BLOSC, DEFLATE, pad_last=False), version_2(BLOSC, DEFLATE)])
def test_a_message_cut_short_anywhere_is_malformed(message: bytes) -> None:
    for nbytes in range(len(message)):
        with pytest.raises(MalformedFile):
            decode_filters(message[:nbytes])
