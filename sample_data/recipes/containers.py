"""The file as a whole: superblocks, user blocks, address widths, B-tree ranks, shared messages, file space."""

from __future__ import annotations

import ctypes
from pathlib import Path

import h5py
import numpy as np
from h5py import h5f, h5p

from . import libhdf5
from .catalogue import sample
from .writing import EARLIEST_AND_LATEST, dataset_properties, new_dataset, new_file, numbers

DATASPACE, DATATYPE, FILL, PIPELINE, ATTRIBUTE = 0x02, 0x08, 0x20, 0x800, 0x1000
ANY_MESSAGE = DATASPACE | DATATYPE | FILL | PIPELINE | ATTRIBUTE


def fill_with_a_bit_of_everything(file: h5py.File) -> None:
    """Write a group, a contiguous and a chunked dataset, strings in the global heap and attributes."""
    group = file.create_group("group")
    group["contiguous"] = numbers((6,), "<f4")
    chunked = group.create_dataset(
        "chunked", data=numbers((8, 6), "<i2"), chunks=(4, 3), compression="gzip", shuffle=True
    )
    chunked.attrs["units"] = "m s-1"
    chunked.attrs["valid_range"] = np.array([0, 47], "<i2")
    group["strings"] = np.array(["one", "zwei", "três"], dtype=h5py.string_dtype())
    file.attrs["title"] = "a bit of everything"


@sample("superblock_v0.h5", "superblock version 0 (libver earliest)", libver="earliest")
@sample("superblock_v2.h5", "superblock version 2 (libver v108)", libver="v108")
@sample("superblock_v3.h5", "superblock version 3, data layout version 4 (libver v110)", libver="v110")
@sample(
    "superblock_v3_libver_latest.h5", "superblock version 3, data layout version 5 (libver latest)", libver="latest"
)
def superblock(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        fill_with_a_bit_of_everything(file)


@sample("user_block_512_earliest.h5", "a user block of 512 bytes (libver earliest)", libver="earliest", nbytes=512)
@sample("user_block_1024_latest.h5", "a user block of 1024 bytes (libver latest)", libver="latest", nbytes=1024)
def user_block(path: Path, libver: str, nbytes: int) -> None:
    with new_file(path, libver, creation=lambda fcpl: fcpl.set_userblock(nbytes)) as file:
        fill_with_a_bit_of_everything(file)
    with path.open("r+b") as stream:
        stream.write(b"#!/bin/sh\n# this text is the user block\n")


@sample(
    "prepended_32768.h5",
    "32 KiB put in front of the file; the base address still says 0",
    libver="earliest",
    nbytes=32768,
)
@sample(
    "prepended_512_latest.h5",
    "512 bytes put in front of the file; the base address still says 0",
    libver="latest",
    nbytes=512,
)
def prepended(path: Path, libver: str, nbytes: int) -> None:
    with new_file(path, libver) as file:
        fill_with_a_bit_of_everything(file)
    path.write_bytes(b"put in front afterwards\n".ljust(nbytes, b"\0") + path.read_bytes())


@sample(
    "sizes_2_2_{libver}.h5",
    "addresses and lengths of 2 bytes (libver {libver})",
    libver=EARLIEST_AND_LATEST,
    sizes=(2, 2),
)
@sample(
    "sizes_4_4_{libver}.h5",
    "addresses and lengths of 4 bytes (libver {libver})",
    libver=EARLIEST_AND_LATEST,
    sizes=(4, 4),
)
@sample("sizes_4_8.h5", "addresses of 4 bytes, lengths of 8", libver="earliest", sizes=(4, 8))
@sample("sizes_8_4_latest.h5", "addresses of 8 bytes, lengths of 4 (libver latest)", libver="latest", sizes=(8, 4))
def address_and_length_sizes(path: Path, libver: str, sizes: tuple[int, int]) -> None:
    with new_file(path, libver, creation=lambda fcpl: fcpl.set_sizes(*sizes)) as file:
        fill_with_a_bit_of_everything(file)


@sample(
    "superblock_v1_btree_ranks.h5",
    "B-tree ranks other than the default; a rank for chunks makes it superblock version 1",
    libver="earliest",
)
@sample("superblock_v2_btree_ranks.h5", "B-tree ranks in the superblock extension of version 2", libver="v108")
@sample("superblock_v3_btree_ranks.h5", "B-tree ranks in the superblock extension of version 3", libver="latest")
def btree_ranks(path: Path, libver: str) -> None:
    def creation(fcpl: h5p.PropFCID) -> None:
        libhdf5.call("H5Pset_sym_k", fcpl, 2, 3)
        libhdf5.call("H5Pset_istore_k", fcpl, 3)

    with new_file(path, libver, creation=creation) as file:
        fill_with_a_bit_of_everything(file)
        file.create_dataset("many_chunks", data=numbers((30,), "u1"), chunks=(1,))


def share_messages(fcpl: h5p.PropFCID, indexes: list[int], list_max: int) -> None:
    """Ask for one index of shared messages per mask of message types; above `list_max` an index becomes a B-tree."""
    libhdf5.call("H5Pset_shared_mesg_nindexes", fcpl, len(indexes))
    for number, message_types in enumerate(indexes):
        libhdf5.call("H5Pset_shared_mesg_index", fcpl, number, message_types, 1)
    libhdf5.call("H5Pset_shared_mesg_phase_change", fcpl, list_max, max(list_max - 2, 0))


def fill_with_repeated_messages(file: h5py.File, dataset_count: int) -> None:
    """Write datasets that have datatype, dataspace, fill value, filters and attributes in common."""
    point = np.dtype([("x", "<f8"), ("y", "<f8"), ("label", "S8")])
    for number in range(dataset_count):
        dataset = file.create_dataset(
            f"series_{number}", (4,), point, chunks=(2,), compression="gzip", fillvalue=np.zeros((), point)
        )
        dataset[:2] = np.array([(number, 0.5, b"a"), (number, 1.5, b"b")], point)
        dataset.attrs["units"] = np.bytes_("metres above the geoid")
        dataset.attrs["valid_range"] = np.array([0.0, 9000.0])
        dataset.attrs[f"only_here_{number}"] = np.full(4, number)


@sample(
    "shared_messages_list.h5",
    "shared messages of every kind in one index, kept as a list",
    indexes=[ANY_MESSAGE],
    list_max=50,
    dataset_count=3,
)
@sample(
    "shared_messages_btree.h5",
    "shared messages of every kind in one index, kept as a version 2 B-tree",
    indexes=[ANY_MESSAGE],
    list_max=4,
    dataset_count=8,
)
@sample(
    "shared_messages_two_indexes.h5",
    "datatypes and dataspaces in one index of shared messages, the other kinds in a second one",
    indexes=[DATATYPE | DATASPACE, FILL | PIPELINE | ATTRIBUTE],
    list_max=3,
    dataset_count=3,
)
@sample(
    "shared_messages_attributes.h5",
    "only attributes are shared messages",
    indexes=[ATTRIBUTE],
    list_max=50,
    dataset_count=3,
)
def shared_messages(path: Path, indexes: list[int], list_max: int, dataset_count: int) -> None:
    with new_file(path, "latest", creation=lambda fcpl: share_messages(fcpl, indexes, list_max)) as file:
        fill_with_repeated_messages(file, dataset_count)


@sample("shared_messages_earliest.h5", "shared messages with old fill values and version 1 B-trees (libver earliest)")
def shared_messages_in_old_file(path: Path) -> None:
    with new_file(path, "earliest", creation=lambda fcpl: share_messages(fcpl, [ANY_MESSAGE], 50)) as file:
        fill_with_repeated_messages(file, 3)


@sample("shared_messages_dense_attributes.h5", "shared attributes that are also in dense storage")
def shared_messages_in_dense_storage(path: Path) -> None:
    with new_file(path, "latest", creation=lambda fcpl: share_messages(fcpl, [ANY_MESSAGE], 50)) as file:
        for name in ("first", "second"):
            dcpl = dataset_properties()
            dcpl.set_attr_phase_change(0, 0)
            dataset = new_dataset(file, name, "i4", (2,), dcpl)
            for number in range(5):
                dataset.attrs[f"same_{number}"] = np.full(3, number)


@sample(
    "file_space_paged.h5", "file space strategy: pages of 512 bytes", strategy=h5f.FSPACE_STRATEGY_PAGE, persist=False
)
@sample(
    "file_space_persistent.h5",
    "free space managers kept in the file, after an object was deleted",
    strategy=h5f.FSPACE_STRATEGY_FSM_AGGR,
    persist=True,
)
@sample(
    "file_space_none.h5",
    "file space strategy: no free space management, no aggregation",
    strategy=h5f.FSPACE_STRATEGY_NONE,
    persist=False,
)
def file_space(path: Path, strategy: int, persist: bool) -> None:
    def creation(fcpl: h5p.PropFCID) -> None:
        fcpl.set_file_space_strategy(strategy, persist, 1)
        fcpl.set_file_space_page_size(512)

    with new_file(path, "latest", creation=creation) as file:
        fill_with_a_bit_of_everything(file)
        file["short_lived"] = numbers((100,))
        del file["short_lived"]


class CacheImageConfig(ctypes.Structure):
    """H5AC_cache_image_config_t."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("generate_image", ctypes.c_bool),
        ("save_resize_status", ctypes.c_bool),
        ("entry_ageout", ctypes.c_int),
    )


@sample("metadata_cache_image.h5", "metadata left in a cache image (superblock extension), not at its own addresses")
def metadata_cache_image(path: Path) -> None:
    config = CacheImageConfig(version=1, generate_image=True, save_resize_status=False, entry_ageout=-1)

    def access(fapl: h5p.PropFAID) -> None:
        libhdf5.call("H5Pset_mdc_image_config", fapl, ctypes.byref(config))

    with new_file(path, "latest", access=access) as file:
        fill_with_a_bit_of_everything(file)
