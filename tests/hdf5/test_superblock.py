from __future__ import annotations

import pytest

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.hdf5.header import Message
from h5zarr.hdf5.messages.kinds import Kind
from h5zarr.hdf5.sizes import Sizes
from h5zarr.hdf5.superblock import Superblock, apply_extension, read_driver_block, read_superblock
from h5zarr.io.steps import run
from tests.fake_file import FakeFile, superblock_v0, superblock_v2, uint, with_checksum


def read(file: FakeFile) -> Superblock:
    return run(read_superblock(file.nbytes), file.read_many)


def test_version_0_has_the_ranks_of_groups_and_the_default_rank_of_chunks() -> None:
    file = FakeFile({0: superblock_v0(ranks=(5, 17, 99), end=4096, root=0x60)}, nbytes=4096)
    found = read(file)
    assert (found.version, found.root, found.extension, found.stated_end) == (0, 0x60, None, 4096)
    assert found.sizes == Sizes(end=4096, group_leaf_rank=5, group_internal_rank=17, chunk_rank=32)
    assert file.rounds == 1


def test_version_1_has_a_rank_of_chunks_too() -> None:
    found = read(FakeFile({0: superblock_v0(version=1, ranks=(5, 17, 99))}, nbytes=4096))
    assert (found.version, found.root) == (1, 96)
    assert found.sizes == Sizes(end=4096, group_leaf_rank=5, group_internal_rank=17, chunk_rank=99)


@pytest.mark.parametrize("version", [2, 3])
def test_versions_2_and_3_may_have_an_extension(version: int) -> None:
    file = FakeFile({0: superblock_v2(version=version, extension=0x200, end=4096, root=0x30)}, nbytes=4096)
    found = read(file)
    assert (found.version, found.root, found.extension, found.stated_end) == (version, 0x30, 0x200, 4096)
    assert found.sizes == Sizes(end=4096)
    assert file.rounds == 1


def test_an_undefined_extension_is_none() -> None:
    assert read(FakeFile({0: superblock_v2()}, nbytes=4096)).extension is None


@pytest.mark.parametrize("build", [superblock_v0, superblock_v2])
@pytest.mark.parametrize("offset_nbytes", [2, 4, 8])
@pytest.mark.parametrize("length_nbytes", [2, 4, 8])
def test_addresses_and_lengths_of_2_4_and_8_bytes_are_read(build, offset_nbytes: int, length_nbytes: int) -> None:
    block = build(offset_nbytes=offset_nbytes, length_nbytes=length_nbytes, end=1000, root=0x70)
    found = read(FakeFile({0: block}, nbytes=1000))
    assert (found.sizes.offset_nbytes, found.sizes.length_nbytes) == (offset_nbytes, length_nbytes)
    assert (found.root, found.stated_end) == (0x70, 1000)


@pytest.mark.parametrize("build", [superblock_v0, superblock_v2])
@pytest.mark.parametrize(("offset_nbytes", "length_nbytes"), [(16, 8), (8, 16), (3, 8), (8, 0)])
def test_other_widths_are_unsupported(build, offset_nbytes: int, length_nbytes: int) -> None:
    file = FakeFile({0: build(offset_nbytes=offset_nbytes, length_nbytes=length_nbytes)}, nbytes=4096)
    with pytest.raises(Unsupported, match="h5zarr supports 2, 4 and 8"):
        read(file)


@pytest.mark.parametrize("build", [superblock_v0, superblock_v2])
@pytest.mark.parametrize(("place", "rounds"), [(512, 1), (1024, 1), (2048, 2), (4096, 2), (1 << 20, 2)])
def test_the_place_of_a_superblock_is_address_zero(build, place: int, rounds: int) -> None:
    file = FakeFile({place: build(base=place, end=place + 4096, root=0x60)}, nbytes=place + 4096)
    found = read(file)
    assert (found.sizes.base, found.root, found.stated_end) == (place, place + 0x60, place + 4096)
    assert file.rounds == rounds


@pytest.mark.parametrize("build", [superblock_v0, superblock_v2])
def test_a_file_that_was_moved_behind_something_is_read_from_its_place(build) -> None:
    """The stated base is that of the file before it was moved."""
    found = read(FakeFile({1024: build(base=0, end=4096, root=0x60)}, nbytes=1024 + 4096))
    assert (found.sizes.base, found.root, found.stated_end) == (1024, 1024 + 0x60, 1024 + 4096)


@pytest.mark.parametrize("build", [superblock_v0, superblock_v2])
def test_a_stated_base_in_a_file_that_lost_its_user_block_is_ignored(build) -> None:
    found = read(FakeFile({0: build(base=512, end=512 + 4096, root=0x60)}, nbytes=4096))
    assert (found.sizes.base, found.root, found.stated_end) == (0, 0x60, 4096)


def test_the_first_signature_counts() -> None:
    parts = {512: superblock_v2(root=0x111), 1024: superblock_v2(root=0x222)}
    assert read(FakeFile(parts, nbytes=4096)).root == 512 + 0x111


def test_a_signature_between_the_places_does_not_count() -> None:
    with pytest.raises(MalformedFile, match="not an HDF5 or netCDF file"):
        read(FakeFile({768: superblock_v2()}, nbytes=4096))


@pytest.mark.parametrize("build", [superblock_v0, superblock_v2])
def test_a_file_that_ends_with_its_superblock_is_read(build) -> None:
    """A superblock crosses the end of the first read, or the file ends after it."""
    assert read(FakeFile({0: build(root=0x30)})).root == 0x30
    assert read(FakeFile({1024: build(root=0x30)})).root == 1024 + 0x30


@pytest.mark.parametrize("version", [4, 5, 255])
def test_an_unknown_version_is_refused_with_its_place(version: int) -> None:
    block = bytearray(superblock_v2())
    block[8] = version
    with pytest.raises(MalformedFile, match=f"superblock has unknown version {version}") as caught:
        read(FakeFile({512: bytes(block)}, nbytes=4096))
    assert caught.value.address == 512


@pytest.mark.parametrize("content", [b"", b"\x89HDF\r\n\x1a", b"\x89PNG\r\n\x1a\n" + bytes(3000)])
def test_other_files_than_hdf5_are_reported(content: bytes) -> None:
    with pytest.raises(MalformedFile, match="not an HDF5 or netCDF file"):
        read(FakeFile({0: content}))


def test_a_classic_netcdf_file_is_recognised() -> None:
    with pytest.raises(Unsupported, match="netCDF-3"):
        read(FakeFile({0: b"CDF\x01"}))


@pytest.mark.parametrize("nbytes", [8, 9, 20, 47])
@pytest.mark.parametrize("build", [superblock_v0, superblock_v2])
def test_a_superblock_cut_short_is_malformed(build, nbytes: int) -> None:
    with pytest.raises(MalformedFile):
        read(FakeFile({0: build()[:nbytes]}))


def test_a_wrong_checksum_is_malformed() -> None:
    block = bytearray(superblock_v2())
    block[13] ^= 1
    with pytest.raises(MalformedFile, match="superblock fails its checksum"):
        read(FakeFile({0: bytes(block)}, nbytes=4096))


@pytest.mark.parametrize("build", [superblock_v0, superblock_v2])
def test_a_superblock_without_a_root_is_malformed(build) -> None:
    with pytest.raises(MalformedFile, match="superblock has no root group"):
        read(FakeFile({0: build(root=None)}, nbytes=4096))


@pytest.mark.parametrize("ranks", [(0, 16, 32), (4, 0, 32), (4, 16, 0)])
def test_a_rank_of_zero_is_malformed(ranks: tuple[int, int, int]) -> None:
    with pytest.raises(MalformedFile, match="B-tree rank is zero"):
        read(FakeFile({0: superblock_v0(version=1, ranks=ranks)}, nbytes=4096))


# --- drivers and the extension


def driver_block(name: bytes) -> bytes:
    return bytes(4) + uint(0, 4) + name


@pytest.mark.parametrize(("name", "kind"), [(b"NCSAfami", "family"), (b"NCSAmult", "multi or split")])
def test_parts_of_a_file_are_refused_by_their_driver_block(name: bytes, kind: str) -> None:
    file = FakeFile({0: superblock_v0(driver=0x300), 0x300: driver_block(name)}, nbytes=4096)
    with pytest.raises(Unsupported, match=f"{kind} driver"):
        run(read_driver_block(read(file)), file.read_many)


def test_other_drivers_keep_a_file_as_it_is() -> None:
    file = FakeFile({0: superblock_v0(driver=0x300), 0x300: driver_block(b"UNKNOWN_")}, nbytes=4096)
    assert run(read_driver_block(read(file)), file.read_many) is None
    assert file.rounds == 2


def test_a_file_without_a_driver_block_needs_no_round_for_it() -> None:
    file = FakeFile({0: superblock_v0()}, nbytes=4096)
    run(read_driver_block(read(file)), file.read_many)
    assert file.rounds == 1


def extension(kind: int, content: bytes) -> tuple[Message, ...]:
    return (Message(0x17, 0, b"", 0x40, None), Message(kind, 0, content, 0x50, None))


def test_an_extension_changes_the_ranks() -> None:
    content = b"\0" + uint(77, 2) + uint(33, 2) + uint(9, 2)
    found = apply_extension(Sizes(base=512, end=9999), extension(Kind.BTREE_RANKS, content))
    assert found == Sizes(base=512, end=9999, chunk_rank=77, group_internal_rank=33, group_leaf_rank=9)


@pytest.mark.parametrize("content", [b"\1" + bytes(6), b"\0" + bytes(6), b"\0\1\0"])
def test_impossible_ranks_of_an_extension_are_malformed(content: bytes) -> None:
    with pytest.raises(MalformedFile):
        apply_extension(Sizes(), extension(Kind.BTREE_RANKS, content))


@pytest.mark.parametrize("name", [b"NCSAfami", b"NCSAmult", b"Subfilin"])
def test_an_extension_refuses_parts_of_files(name: bytes) -> None:
    with pytest.raises(Unsupported, match="one part of a file"):
        apply_extension(Sizes(), extension(Kind.DRIVER_INFO, b"\0" + name + uint(0, 2)))


def test_an_empty_extension_changes_nothing() -> None:
    assert apply_extension(Sizes(base=512), ()) == Sizes(base=512)


def test_the_builders_of_this_test_write_checksums_that_count() -> None:
    assert with_checksum(superblock_v2()[:-4]) == superblock_v2()
