"""Text and sequences: fixed-length strings, and everything of variable length that lies in the global heap."""

from __future__ import annotations

import ctypes
from pathlib import Path

import h5py
import numpy as np
from h5py import h5s, h5t

from . import libhdf5
from .catalogue import sample
from .writing import EARLIEST_AND_LATEST, new_dataset, new_file, numbers, write_stored_bytes


@sample("types_strings_fixed.h5", "fixed-length strings: three paddings, two character sets; scalar, array, one byte")
def strings_fixed(path: Path) -> None:
    paddings = (
        ("nullterm", h5t.STR_NULLTERM, b"\0"),
        ("nullpad", h5t.STR_NULLPAD, b"\0"),
        ("spacepad", h5t.STR_SPACEPAD, b" "),
    )
    with new_file(path) as file:
        for padding_name, padding, filler in paddings:
            for charset_name, charset in (("ascii", h5t.CSET_ASCII), ("utf8", h5t.CSET_UTF8)):
                text = h5t.C_S1.copy()
                text.set_size(8)
                text.set_strpad(padding)
                text.set_cset(charset)
                words = ("abc", "", "sevenup", "é" if charset == h5t.CSET_UTF8 else "e")
                stored = b"".join(word.encode().ljust(8, filler) for word in words)
                write_stored_bytes(new_dataset(file, f"{padding_name}_{charset_name}", text, (4,)), stored)
        file["scalar"] = np.bytes_("hello")
        file["latin_1"] = np.array(["µm".encode("latin-1")])
        file["characters"] = np.array([list("abc"), list("de ")], "S1")


@sample(
    "types_strings_vlen_{libver}.h5",
    "variable-length strings: contiguous, chunked, scalar, empty, never written (libver {libver})",
    libver=EARLIEST_AND_LATEST,
)
def strings_vlen(path: Path, libver: str) -> None:
    words = ["a", "été", "", "a longer string, " * 20]
    with new_file(path, libver) as file:
        file.create_dataset("contiguous", data=words, dtype=h5py.string_dtype())
        file.create_dataset("chunked", data=words, dtype=h5py.string_dtype(), chunks=(3,), compression="gzip")
        file.create_dataset("ascii", data=["plain", "text"], dtype=h5py.string_dtype("ascii"))
        file.create_dataset("scalar", data="hello")
        file.create_dataset("never_written", (3,), h5py.string_dtype())
        file.create_dataset("partly_written", (4,), h5py.string_dtype(), chunks=(2,))[:2] = ["x", "y"]


@sample(
    "types_strings_vlen_large.h5", "variable-length strings in several heap collections, one larger than a collection"
)
def strings_vlen_large(path: Path) -> None:
    with new_file(path) as file:
        stations = file.create_dataset("stations", (90,), h5py.string_dtype())
        stations[:80] = [f"station {number}" for number in range(80)]
        file["between"] = numbers((600,), "<i4")
        stations[80:] = ["long " * 1000] + [f"station {number}" for number in range(81, 90)]


@sample(
    "types_sequences_{libver}.h5",
    "variable-length sequences: of numbers, of strings, of sequences, empty (libver {libver})",
    libver=EARLIEST_AND_LATEST,
)
def sequences(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        ragged = file.create_dataset("ragged", (4,), h5py.vlen_dtype("<i4"))
        for row, count in enumerate((1, 3, 0)):
            ragged[row] = numbers((count,))
        big = file.create_dataset("big_endian", (2,), h5py.vlen_dtype(">f8"), chunks=(1,))
        big[0] = np.array([0.5, 1.5])
        texts = file.create_dataset("of_strings", (2,), h5py.vlen_dtype(h5py.string_dtype()))
        texts[0] = np.array(["a", "bc"], dtype=object)
        pairs = file.create_dataset("of_compounds", (2,), h5py.vlen_dtype(np.dtype([("a", "<i2"), ("b", "<f4")])))
        pairs[1] = np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "<i2"), ("b", "<f4")])
        write_nested_sequences(file)


def write_nested_sequences(file: h5py.File) -> None:
    """Write sequences of sequences as libhdf5 wants them: (length, pointer) pairs, since h5py cannot."""

    class Sequence(ctypes.Structure):
        _fields_ = (("length", ctypes.c_size_t), ("first", ctypes.c_void_p))

    inner_type = h5t.vlen_create(h5t.STD_I16LE)
    nested_type = h5t.vlen_create(inner_type)
    dataset = new_dataset(file, "nested", nested_type, (2,))
    rows = [[[1, 2], [3]], [[], [4, 5, 6], [7]]]
    keep_alive: list[object] = []
    outer = (Sequence * len(rows))()
    for row, inner_rows in enumerate(rows):
        inner = (Sequence * len(inner_rows))()
        for column, values in enumerate(inner_rows):
            leaf = (ctypes.c_int16 * len(values))(*values)
            keep_alive.append(leaf)
            inner[column] = Sequence(len(values), ctypes.addressof(leaf) if values else None)
        keep_alive.append(inner)
        outer[row] = Sequence(len(inner_rows), ctypes.addressof(inner))
    libhdf5.call("H5Dwrite", dataset.id, nested_type, h5s.ALL, h5s.ALL, 0, ctypes.addressof(outer))
