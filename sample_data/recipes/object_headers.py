"""Object headers and the attributes in them: versions, continuation blocks, times, dense storage."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
from h5py import h5o, h5p

from .catalogue import sample
from .writing import EARLIEST_AND_LATEST, dataset_properties, new_dataset, new_file, numbers


@sample(
    "header_continuations_{libver}.h5",
    "object headers with several continuation blocks and gaps (libver {libver})",
    libver=EARLIEST_AND_LATEST,
)
def header_continuations(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        dcpl = dataset_properties()
        dcpl.set_attr_phase_change(100, 50)
        first = new_dataset(file, "first", "i4", (3,), dcpl)
        second = new_dataset(file, "second", "i4", (3,), dcpl)
        for number in range(14):
            first.attrs[f"attribute_{number:02d}"] = np.arange(number)
            second.attrs[f"attribute_{number:02d}"] = f"text {number}"
        for number in range(0, 14, 3):
            del first.attrs[f"attribute_{number:02d}"]


@sample("header_times_{libver}.h5", "times of objects, and a comment (libver {libver})", libver=EARLIEST_AND_LATEST)
def header_times(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        file.create_dataset("timed", data=numbers((3,)), track_times=True)
        file.create_dataset("untimed", data=numbers((3,)), track_times=False)
        file.create_group("group", track_times=True)
        h5o.set_comment(file["timed"].id, b"an object comment")


@sample("header_phase_change.h5", "attribute phase change values stored in the header; dense from the first attribute")
def header_phase_change(path: Path) -> None:
    with new_file(path, "latest") as file:
        for name, limits in (("always_dense", (0, 0)), ("never_dense", (1000, 0)), ("early", (3, 2))):
            dcpl = dataset_properties()
            dcpl.set_attr_phase_change(*limits)
            dataset = new_dataset(file, name, "i4", (2,), dcpl)
            for number in range(4):
                dataset.attrs[f"attribute_{number}"] = number
        del file["early"].attrs["attribute_0"], file["early"].attrs["attribute_1"], file["early"].attrs["attribute_2"]


@sample("header_large_v2.h5", "version 2 header whose first chunk needs a size of 2 bytes")
def header_large(path: Path) -> None:
    with new_file(path, "latest") as file:
        shape = (1,) * 12
        point = np.dtype([(f"a_member_with_a_long_name_{number}", "<f8") for number in range(12)])
        file.create_dataset("dataset", shape, point, chunks=shape, compression="gzip")


@sample("attributes_dense.h5", "dense attributes: one direct block, names found by a version 2 B-tree", count=12)
@sample("attributes_dense_indirect.h5", "dense attributes: 100 of them, indirect block, deeper name index", count=100)
def attributes_dense(path: Path, count: int) -> None:
    with new_file(path, "latest") as file:
        dataset = file.create_dataset("dataset", data=numbers((3,)))
        for number in range(count):
            dataset.attrs[f"attribute_{number:03d}"] = np.int32(number)
        del dataset.attrs["attribute_003"]


@sample("attributes_creation_order.h5", "creation order of attributes tracked and indexed; compact and dense")
def attributes_with_creation_order(path: Path) -> None:
    with new_file(path, "latest") as file:
        for storage, count in (("compact", 4), ("dense", 10)):
            dcpl = dataset_properties()
            dcpl.set_attr_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
            dataset = new_dataset(file, storage, "i4", (2,), dcpl)
            for number in reversed(range(count)):
                dataset.attrs[f"attribute_{number}"] = number


@sample("attributes_huge.h5", "attributes over 4 KiB and over 64 KiB: huge objects of the fractal heap")
def attributes_huge(path: Path) -> None:
    with new_file(path, "latest") as file:
        dataset = file.create_dataset("dataset", data=numbers((3,)))
        dataset.attrs["small"] = "text"
        dataset.attrs["over_64_KiB"] = numbers((66_000,), "u1")
        for number in range(10):
            dataset.attrs[f"other_{number}"] = number
        dataset.attrs["over_4_KiB"] = numbers((4_500,), "u1")


@sample(
    "attributes_{libver}.h5",
    "attributes of many datatypes and dataspaces, on a dataset, a group and the root (libver {libver})",
    libver=EARLIEST_AND_LATEST,
)
def attributes(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        dataset = file.create_dataset("dataset", data=numbers((3,)))
        file.attrs["title"] = "on the root"
        file.create_group("group").attrs["title"] = "on a group"
        write_numbers(dataset.attrs)
        write_texts(dataset.attrs)
        write_composites(dataset.attrs)
        write_references(dataset.attrs, file)
        dataset.attrs["name of ünusual letters"] = 1
        dataset.attrs["null_number"] = h5py.Empty("f4")
        dataset.attrs["null_text"] = h5py.Empty("S1")
        dataset.attrs["zero_length"] = np.zeros(0, "f4")
        dataset.attrs["zero_length_2d"] = np.zeros((0, 3), "i2")


def write_numbers(attributes: h5py.AttributeManager) -> None:
    for code in ("i1", "u1", "<i2", ">i2", "<u4", ">u4", "<i8", ">u8", "<f2", "<f4", ">f4", "<f8", ">f8"):
        attributes[f"number_{code.replace('<', 'little_').replace('>', 'big_')}"] = np.array(3, code)
    attributes["largest_u8"] = np.uint64(2**64 - 1)
    attributes["smallest_i8"] = np.int64(-(2**63))
    attributes["nan"] = np.float32("nan")
    attributes["infinities"] = np.array([np.inf, -np.inf])
    attributes["array_1d"] = numbers((5,), "i2")
    attributes["array_of_one"] = np.array([7], "i4")
    attributes["array_2d"] = numbers((2, 3), "f8")
    attributes["true"] = True
    attributes["complex"] = 1 + 2j


def write_texts(attributes: h5py.AttributeManager) -> None:
    attributes["text"] = "variable length, UTF-8: µ"
    attributes.create("text_ascii", "variable length, ASCII", dtype=h5py.string_dtype("ascii"))
    attributes["text_fixed"] = np.bytes_("fixed length")
    attributes["text_latin_1"] = np.bytes_("µm".encode("latin-1"))
    attributes["text_empty"] = ""
    attributes["texts"] = np.array(["a", "", "längere"], dtype=h5py.string_dtype())
    attributes["texts_fixed"] = np.array([b"ab", b"c"], "S3")
    attributes.create("text_fixed_utf8", "é".encode(), dtype=h5py.string_dtype("utf-8", 6))


def write_composites(attributes: h5py.AttributeManager) -> None:
    pair = np.dtype([("count", "<i4"), ("mean", "<f4")])
    named = np.dtype([("count", "<i4"), ("name", h5py.string_dtype())])
    sequences = np.empty(2, dtype=object)
    sequences[:] = [numbers((2,)), numbers((3,))]
    attributes["compound"] = np.array((1, 2.5), pair)
    attributes["compounds_with_text"] = np.array([(1, "one"), (2, "two")], named)
    attributes.create("enum", 1, dtype=h5py.enum_dtype({"OFF": 0, "ON": 1}, "u1"))
    attributes.create("sequences", sequences, dtype=h5py.vlen_dtype("<i4"))
    attributes["opaque"] = np.void(b"\x00\x01\x02")
    attributes.create("array_type", numbers((3,)), dtype=np.dtype(("<i4", (3,))))


def write_references(attributes: h5py.AttributeManager, file: h5py.File) -> None:
    attributes.create("object_reference", file["group"].ref, dtype=h5py.ref_dtype)
    attributes.create("null_reference", h5py.Reference(), dtype=h5py.ref_dtype)
    attributes.create("region_reference", file["dataset"].regionref[1:], dtype=h5py.regionref_dtype)
