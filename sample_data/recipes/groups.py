"""Groups and links: symbol tables, link messages, fractal heaps, and every kind of link."""

from __future__ import annotations

import ctypes
from pathlib import Path

import h5py
import numpy as np
from h5py import h5g, h5p

from . import libhdf5
from .catalogue import sample
from .writing import EARLIEST_AND_LATEST, new_file, numbers

USER_DEFINED_LINK = 187  # classes 64 to 255 are for users


def small_symbol_tables(fcpl: h5p.PropFCID) -> None:
    """Let a symbol table node hold two links and a B-tree node two children, so that few links make many levels."""
    libhdf5.call("H5Pset_sym_k", fcpl, 1, 1)


def group_properties(*, order: int = 0) -> h5p.PropGCID:
    """Return group creation properties without timestamps."""
    gcpl = h5p.create(h5p.GROUP_CREATE)
    gcpl.set_obj_track_times(False)
    gcpl.set_link_creation_order(order)
    return gcpl


def new_group(parent: h5py.Group, name: str, properties: h5p.PropGCID) -> h5py.Group:
    return h5py.Group(h5g.create(parent.id, name.encode(), gcpl=properties))


@sample("links_symbol_table.h5", "symbol table: several nodes, a deleted link")
def links_in_symbol_table(path: Path) -> None:
    with new_file(path) as file:
        for number in range(24):
            file[f"soft_link_number_{number:02d}"] = h5py.SoftLink("/data")
        file["data"] = numbers((3,))
        del file["soft_link_number_07"]


@sample("links_symbol_table_levels.h5", "symbol table whose B-tree has several levels (ranks of 1)")
def links_in_symbol_table_levels(path: Path) -> None:
    with new_file(path, creation=small_symbol_tables) as file:
        file["data"] = numbers((3,))
        for number in np.random.default_rng(1).permutation(30):
            file[f"link_{number:02d}"] = file["data"]


@sample("links_symbol_table_empty.h5", "symbol tables without any link, and one whose links were all deleted")
def links_in_empty_symbol_table(path: Path) -> None:
    with new_file(path) as file:
        file.create_group("never_had_any")
        group = file.create_group("had_two")
        group["a"] = group["b"] = numbers((2,))
        del group["a"], group["b"]


@sample("links_compact.h5", "link messages in the object header; an empty group")
def links_compact(path: Path) -> None:
    with new_file(path, "latest") as file:
        file["a"] = numbers((3,))
        file["b"] = numbers((2,))
        file.create_group("empty")


@sample("links_dense.h5", "dense links: a fractal heap of one direct block")
def links_dense(path: Path) -> None:
    with new_file(path, "latest") as file:
        file["data"] = numbers((3,))
        for number in range(9):
            file[f"link_{number}"] = file["data"]


@sample(
    "links_dense_indirect.h5", "dense links: 150 long names, a fractal heap with an indirect block, a deeper name index"
)
def links_dense_indirect(path: Path) -> None:
    with new_file(path, "latest") as file:
        file["data"] = numbers((3,))
        for number in range(150):
            file[f"a_rather_long_name_for_a_link_with_the_number_{number:03d}"] = file["data"]
        for number in range(0, 150, 7):
            del file[f"a_rather_long_name_for_a_link_with_the_number_{number:03d}"]


@sample(
    "links_dense_deflated.h5",
    "dense links in a compressed fractal heap: filtered blocks, nested indirect blocks, filtered huge objects",
)
def links_dense_deflated(path: Path) -> None:
    gcpl = group_properties()
    libhdf5.call("H5Pset_deflate", gcpl, 9)
    with new_file(path, "latest") as file:
        file["data"] = numbers((3,))
        group = new_group(file, "group", gcpl)
        for number in range(180):
            group[f"{number:03d}_" + "long" * 900] = h5py.SoftLink("/data")
        for number in range(3):
            group[f"huge_{number}_" + "long" * 1100] = h5py.SoftLink("/data")


@sample("links_huge_heap_objects.h5", "dense links: names of over 4096 bytes are huge heap objects, found by a B-tree")
def links_as_huge_heap_objects(path: Path) -> None:
    with new_file(path, "latest") as file:
        file["data"] = numbers((3,))
        for number in range(10):
            file[f"short_{number}"] = h5py.SoftLink("/data")
        for number in range(2):
            file[f"huge_{number}_" + "x" * 4200] = h5py.SoftLink("/data")


@sample(
    "links_tiny_heap_objects.h5", "dense links so short that they lie inside their heap identifiers (2-byte addresses)"
)
def links_as_tiny_heap_objects(path: Path) -> None:
    with new_file(path, "latest", creation=lambda fcpl: fcpl.set_sizes(2, 2)) as file:
        file["x"] = numbers((3,))
        for name in "abcdefghijkl":
            file[name] = file["x"]


@sample("links_dense_huge_direct.h5", "a huge heap object whose address lies in the heap identifier (2-byte addresses)")
def links_as_directly_addressed_huge_objects(path: Path) -> None:
    with new_file(path, "latest", creation=lambda fcpl: fcpl.set_sizes(2, 4)) as file:
        file["data"] = numbers((3,))
        for number in range(9):
            file[f"short_{number}"] = h5py.SoftLink("/data")
        file["huge_" + "x" * 4200] = h5py.SoftLink("/data")


@sample("links_creation_order.h5", "creation order of links tracked, or tracked and indexed; compact and dense groups")
def links_with_creation_order(path: Path) -> None:
    tracked = h5p.CRT_ORDER_TRACKED
    with new_file(path, "latest", creation=lambda fcpl: fcpl.set_link_creation_order(tracked)) as file:
        for kind, order in (("tracked", tracked), ("indexed", tracked | h5p.CRT_ORDER_INDEXED)):
            for storage, count in (("compact", 3), ("dense", 10)):
                group = new_group(file, f"{kind}_{storage}", group_properties(order=order))
                for number in reversed(range(count)):
                    group[f"link_{number}"] = h5py.SoftLink("/nowhere")


@sample("links_creation_order_earliest.h5", "creation order asks for link messages even in a file of libver earliest")
def links_with_creation_order_in_an_old_file(path: Path) -> None:
    with new_file(path, "earliest", creation=lambda fcpl: fcpl.set_link_creation_order(h5p.CRT_ORDER_TRACKED)) as file:
        for name in ("zebra", "ant", "mole"):
            file[name] = numbers((2,))


@sample(
    "links_soft_{libver}.h5",
    "soft links: to a dataset, a group, through a link, relative, broken, in a circle",
    libver=EARLIEST_AND_LATEST,
)
def links_soft(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        group = file.create_group("group")
        group["data"] = numbers((4,))
        group["relative"] = h5py.SoftLink("data")
        file["to_dataset"] = h5py.SoftLink("/group/data")
        file["to_group"] = h5py.SoftLink("/group")
        file["through_a_link"] = h5py.SoftLink("/to_group/relative")
        file["with_dots"] = h5py.SoftLink("./group/./data")
        file["broken"] = h5py.SoftLink("/not/there")
        file["circle_a"] = h5py.SoftLink("/circle_b")
        file["circle_b"] = h5py.SoftLink("/circle_a")


@sample(
    "links_external_{libver}.h5",
    "external links: to links_compact.h5, to a missing file, to a missing object",
    libver=EARLIEST_AND_LATEST,
)
def links_external(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        file["data"] = numbers((4,))
        file["elsewhere"] = h5py.ExternalLink("links_compact.h5", "/a")
        file["group_elsewhere"] = h5py.ExternalLink("links_compact.h5", "/")
        file["missing_file"] = h5py.ExternalLink("there_is_no_such_file.h5", "/a")
        file["missing_object"] = h5py.ExternalLink("links_compact.h5", "/there_is_no_such_object")


class LinkClass(ctypes.Structure):
    """H5L_class_t. Only the traversal function must be there, and nothing here calls it."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("link_class", ctypes.c_int),
        ("comment", ctypes.c_char_p),
        ("create", ctypes.c_void_p),
        ("move", ctypes.c_void_p),
        ("copy", ctypes.c_void_p),
        ("traverse", ctypes.CFUNCTYPE(ctypes.c_int64)),
        ("delete", ctypes.c_void_p),
        ("query", ctypes.c_void_p),
    )


@sample("links_user_defined.h5", "a user-defined link (class 187) beside an ordinary one")
def links_user_defined(path: Path) -> None:
    traverse = ctypes.CFUNCTYPE(ctypes.c_int64)(lambda: -1)
    link_class = LinkClass(version=1, link_class=USER_DEFINED_LINK, comment=b"for this file only", traverse=traverse)
    libhdf5.call("H5Lregister", ctypes.byref(link_class))
    try:
        with new_file(path, "latest") as file:
            file["data"] = numbers((4,))
            libhdf5.call("H5Lcreate_ud", file.id, b"user_defined", USER_DEFINED_LINK, b"anything", 8, 0, 0)
    finally:
        libhdf5.call("H5Lunregister", USER_DEFINED_LINK)


@sample("links_hard.h5", "hard links: one dataset under three names, a group inside itself, a link to the root")
def links_hard(path: Path) -> None:
    with new_file(path) as file:
        group = file.create_group("group")
        file["data"] = numbers((4,))
        file["same_data"] = file["data"]
        group["same_data_again"] = file["data"]
        group["itself"] = group
        group["root"] = file["/"]


@sample("groups_50_deep.h5", "fifty groups, one inside the other")
def groups_deep(path: Path) -> None:
    with new_file(path, "latest") as file:
        group: h5py.Group = file
        for depth in range(1, 51):
            group = group.create_group(f"level_{depth}")
        group["bottom"] = numbers((3,))


ODD_NAMES = (
    "with space",
    "dot.ted",
    "été",
    "深さ",
    "zarr.json",
    ".zgroup",
    "c",
    "0",
    "0.0",
    "%41",
    "a:b",
    "new\nline",
    "back\\slash",
)


@sample(
    "names_{libver}.h5",
    "odd names: UTF-8, Latin-1 bytes, space, control character, names that Zarr reserves",
    libver=EARLIEST_AND_LATEST,
)
def names(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        file["data"] = numbers((2,))
        group = file.create_group("gruppe_ä")
        for name in ODD_NAMES:
            group[name] = file["data"]
            group.attrs[name] = 1
        group.id.links.create_soft("latin_1_ä".encode("latin-1"), b"/data")
        group["n" * 300] = file["data"]


@sample(
    "committed_datatypes_{libver}.h5",
    "committed datatypes shared by datasets and attributes, one with an attribute (libver {libver})",
    libver=EARLIEST_AND_LATEST,
)
def committed_datatypes(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        file["temperature_type"] = np.dtype(">f4")
        file["colour_type"] = h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 2}, "i1")
        file["point_type"] = np.dtype([("x", "<f8"), ("y", "<f8")])
        file["point_type"].attrs["description"] = "attributes of a datatype"
        for number in range(2):
            file.create_dataset(f"temperature_{number}", (3,), file["temperature_type"])[:] = number + 0.5
        file.create_dataset("colour", data=[2, 0, 1], dtype=file["colour_type"])
        points = file.create_dataset("points", (2,), file["point_type"], chunks=(1,))
        points[0] = (1.0, 2.0)
        points.attrs.create("mean_temperature", 1.5, dtype=file["temperature_type"])
        points.attrs.create("corner", np.array((3.0, 4.0), file["point_type"].dtype), dtype=file["point_type"])
