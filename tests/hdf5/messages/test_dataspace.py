from __future__ import annotations

import pytest

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.messages.dataspace import decode_dataspace
from h5zarr.hdf5.model import Dataspace, SpaceKind
from tests.fake_file import uint


def version_1(*extents: int, rank: int | None = None, flags: int = 0, width: int = 8) -> bytes:
    rank = len(extents) if rank is None else rank
    return bytes((1, rank, flags, 0, 0, 0, 0, 0)) + b"".join(uint(extent, width) for extent in extents)


def version_2(*extents: int, rank: int | None = None, flags: int = 0, kind: int = 1, width: int = 8) -> bytes:
    rank = len(extents) if rank is None else rank
    return bytes((2, rank, flags, kind)) + b"".join(uint(extent, width) for extent in extents)


@pytest.mark.parametrize("build", [version_1, version_2])
@pytest.mark.parametrize("width", [2, 4, 8])
def test_without_a_maximum_the_shape_is_the_maximum(build, width: int) -> None:
    found = decode_dataspace(build(3, 0, 500, width=width), width)
    assert found == Dataspace(SpaceKind.SIMPLE, (3, 0, 500), (3, 0, 500))
    assert (found.rank, found.count) == (3, 0)


@pytest.mark.parametrize("build", [version_1, version_2])
def test_all_ones_in_the_maximum_is_unlimited(build) -> None:
    message = build(3, 4, 3, (1 << 64) - 1, rank=2, flags=1)
    assert decode_dataspace(message, 8) == Dataspace(SpaceKind.SIMPLE, (3, 4), (3, None))


@pytest.mark.parametrize("build", [version_1, version_2])
@pytest.mark.parametrize("width", [2, 4])
def test_all_ones_of_shorter_lengths_is_a_number_as_it_is_for_the_library(build, width: int) -> None:
    largest = (1 << 8 * width) - 1
    message = build(3, 4, 3, largest, rank=2, flags=1, width=width)
    assert decode_dataspace(message, width) == Dataspace(SpaceKind.SIMPLE, (3, 4), (3, largest))


def test_rank_zero_is_a_scalar() -> None:
    for message in (version_1(), version_2(kind=0)):
        found = decode_dataspace(message, 8)
        assert found == Dataspace(SpaceKind.SCALAR, (), ())
        assert found.count == 1


def test_a_null_dataspace_has_no_elements() -> None:
    found = decode_dataspace(version_2(kind=2), 8)
    assert found.kind is SpaceKind.NULL
    assert found.count == 0


def test_the_largest_rank_is_32() -> None:
    assert decode_dataspace(version_2(*(1,) * 32), 8).rank == 32
    with pytest.raises(MalformedFile, match="rank 33"):
        decode_dataspace(version_2(*(1,) * 33), 8)


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (b"\0" + version_1(3)[1:], "unknown version 0"),
        (b"\3" + version_2(3)[1:], "unknown version 3"),
        (version_2(3, kind=3), "unknown type 3"),
        (version_2(3, kind=0), "type SCALAR has rank 1"),
        (version_2(3, kind=2), "type NULL has rank 1"),
        (version_2(3, 2, rank=1, flags=1), "larger than its maximum"),
    ],
)
def test_an_impossible_extent_is_malformed(message: bytes, complaint: str) -> None:
    with pytest.raises(MalformedFile, match=complaint):
        decode_dataspace(message, 8)


@pytest.mark.parametrize(
    "message", [version_1(3, 4), version_2(3, 4), version_1(3, 9, rank=1, flags=1), version_2(3, 9, rank=1, flags=1)]
)
def test_a_message_cut_short_anywhere_is_malformed(message: bytes) -> None:
    decode_dataspace(message, 8)
    for nbytes in range(len(message)):
        with pytest.raises(MalformedFile):
            decode_dataspace(message[:nbytes], 8)
