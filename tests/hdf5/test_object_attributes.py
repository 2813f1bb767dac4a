from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import h5zarr
from h5zarr.hdf5.context import Context
from h5zarr.hdf5.header import Message, ObjectHeader
from h5zarr.hdf5.messages.kinds import Kind
from h5zarr.hdf5.object_attributes import read_attributes
from h5zarr.hdf5.shared import SharedMessages
from h5zarr.io.steps import run
from tests.fake_file import FakeFile, uint

I4 = b"\x10\x08\0\0" + uint(4, 4) + uint(0, 2) + uint(32, 2)
SCALAR = b"\x02\0\0\0"


def attribute(name: bytes, value: bytes, datatype: bytes = I4, dataspace: bytes = SCALAR) -> bytes:
    """Return an attribute message of version 3."""
    head = b"\x03\0" + uint(len(name), 2) + uint(len(datatype), 2) + uint(len(dataspace), 2) + b"\x01"
    return head + name + datatype + dataspace + value


def read(*contents: bytes):
    messages = tuple(Message(Kind.ATTRIBUTE, 0, content, 0x50, order) for order, content in enumerate(contents))
    file = FakeFile({0: b""}, nbytes=64)
    context = Context.of(file.sizes, SharedMessages(file.sizes))
    return run(read_attributes(ObjectHeader(0x40, messages), context), file.read_many)


def test_attributes_of_a_header_keep_their_order() -> None:
    attributes, broken = read(attribute(b"b\0", uint(7, 4)), attribute(b"a\0", uint(8, 4)))
    assert [(one.name, one.value.tolist(), one.creation_order) for one in attributes.values()] == [
        ("b", 7, 0),
        ("a", 8, 1),
    ]
    assert not broken


@pytest.mark.parametrize(
    "content",
    [
        attribute(b"a\0", uint(8, 3)),
        attribute(b"a\0", uint(8, 4), datatype=b"\x70" + I4[1:]),
        attribute(b"a\0", uint(8, 4), dataspace=b"\x09\0\0\0"),
    ],
)
def test_a_broken_attribute_is_named_and_leaves_the_others_whole(content: bytes) -> None:
    attributes, broken = read(content, attribute(b"b\0", uint(7, 4)))
    assert list(attributes) == ["b"]
    assert [one.name for one in broken] == ["a"]


def test_the_second_of_two_attributes_of_one_name_is_left_out() -> None:
    attributes, broken = read(attribute(b"a\0", uint(7, 4)), attribute(b"a\0", uint(8, 4)))
    value = attributes["a"].value
    assert value is not None
    assert value.tolist() == 7
    assert [one.name for one in broken] == ["a"]


@pytest.mark.parametrize("count", [3, 40])
@pytest.mark.parametrize("track_order", [False, True])
def test_creation_order_is_known_where_it_is_tracked(tmp_path: Path, count: int, track_order: bool) -> None:
    """Few attributes are in the header, many in a heap."""
    path = tmp_path / "attributes.h5"
    names = [f"{number * 7 % count} of {count}" for number in range(count)]
    with h5py.File(path, "w", libver="latest") as file:
        group = file.create_group("group", track_order=track_order)
        for number, name in enumerate(names):
            group.attrs[name] = np.int64(number)
    found = dict(h5zarr.scan(str(path)).walk())["/group"].attributes
    assert set(found) == set(names)
    for number, name in enumerate(names):
        value = found[name].value
        assert value is not None
        assert value.tolist() == number
        assert found[name].creation_order == (number if track_order else None)
