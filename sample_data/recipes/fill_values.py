"""Fill values: every state of the message, every time of writing, and what netCDF adds to it."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
from h5py import h5d, h5t

from . import libhdf5
from .catalogue import sample
from .writing import EARLIEST_AND_LATEST, dataset_properties, new_dataset, new_file

ALLOC_TIMES = (("early", h5d.ALLOC_TIME_EARLY), ("late", h5d.ALLOC_TIME_LATE), ("incr", h5d.ALLOC_TIME_INCR))
FILL_TIMES = (("never", h5d.FILL_TIME_NEVER), ("alloc", h5d.FILL_TIME_ALLOC), ("ifset", h5d.FILL_TIME_IFSET))


@sample(
    "fill_states_{libver}.h5",
    "fill value: default, given, undefined (unreadable if never written), in chunks partly written (libver {libver})",
    libver=EARLIEST_AND_LATEST,
)
def fill_states(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        for layout, chunk_shape in (("contiguous", None), ("chunked", (2,))):
            undefined = dataset_properties(chunk_shape)
            libhdf5.call("H5Pset_fill_value", undefined, h5t.STD_I32LE, None)
            for state, dcpl in (
                ("default", dataset_properties(chunk_shape)),
                ("given", dataset_properties(chunk_shape, fill=np.int32(-7))),
                ("undefined", undefined),
            ):
                new_dataset(file, f"{layout}_{state}_never_written", "<i4", (6,), dcpl)
                new_dataset(file, f"{layout}_{state}", "<i4", (6,), dcpl)[:2] = [0, 1]


@sample(
    "fill_times_{libver}.h5",
    "allocation early, late, incremental x fill never, at allocation, if set (libver {libver})",
    libver=EARLIEST_AND_LATEST,
)
def fill_times(path: Path, libver: str) -> None:
    with new_file(path, libver, creation=lambda fcpl: libhdf5.call("H5Pset_istore_k", fcpl, 2)) as file:
        for layout, chunk_shape in (("contiguous", None), ("chunked", (2,))):
            for alloc_name, alloc_time in ALLOC_TIMES:
                for fill_name, fill_time in FILL_TIMES:
                    if layout == "contiguous" and alloc_name == "incr":
                        continue
                    dcpl = dataset_properties(chunk_shape, fill=np.int16(9), fill_time=fill_time, alloc_time=alloc_time)
                    dataset = new_dataset(file, f"{layout}_{alloc_name}_{fill_name}", "<i2", (6,), dcpl)
                    if layout == "chunked":
                        dataset[:2] = [1, 2]


@sample(
    "fill_types_{libver}.h5",
    "fill values of many datatypes: NaN payload, -0.0, big-endian, text, compound, enum, opaque (libver {libver})",
    libver=EARLIEST_AND_LATEST,
)
def fill_types(path: Path, libver: str) -> None:
    pair = np.dtype([("count", "<i4"), ("mean", ">f4"), ("name", "S3")])
    colours = h5py.enum_dtype({"RED": 1, "GREEN": 2}, "u1")
    fills = {
        "nan": np.array(np.nan, "<f4"),
        "nan_with_payload": np.array(0x7FF8_0000_DEAD_BEEF, "<u8").view("<f8"),
        "minus_zero": np.array(-0.0, "<f8"),
        "minus_infinity": np.array(-np.inf, "<f4"),
        "big_endian": np.array(258, ">i4"),
        "largest_u64": np.array(2**64 - 1, "<u8"),
        "half": np.array(0.5, "<f2"),
        "boolean": np.array(True),
        "text_fixed": np.array(b"none", "S6"),
        "compound": np.array((7, 0.5, b"abc"), pair),
        "complex": np.array(1 - 2j, "<c8"),
        "opaque": np.array(b"\1\2\3", "V3"),
    }
    with new_file(path, libver) as file:
        for name, fill in fills.items():
            dcpl = dataset_properties(
                (2,)
            )  # filled by libhdf5 itself: h5py would store a pointer for fixed-length text
            libhdf5.call("H5Pset_fill_value", dcpl, h5t.py_create(fill.dtype, logical=True), fill.tobytes())
            new_dataset(file, name, fill.dtype, (4,), dcpl)
        file.create_dataset("enum", (4,), colours, chunks=(2,), fillvalue=2)
        file.create_dataset("array", (4,), np.dtype(("<i2", (2,))), chunks=(2,))[:2] = [[1, 2], [3, 4]]


@sample(
    "fill_text_vlen.h5",
    "a variable-length string as fill value; `partial` cannot be read by libhdf5 in a file opened read-only",
)
def fill_text_vlen(path: Path) -> None:
    with new_file(path, "v110") as file:
        for name, count in (("complete", 4), ("partial", 2)):
            dataset = file.create_dataset(name, (4,), h5py.string_dtype(), chunks=(2,), fillvalue="nothing")
            dataset[:count] = ["a", "b", "c", "d"][:count]


@sample(
    "fill_and_attribute.h5",
    "header fill value and _FillValue attribute: equal, different, of another type, out of range",
)
def fill_and_attribute(path: Path) -> None:
    cases = {
        "equal": ("<f4", -999, np.float32(-999)),
        "different": ("<f4", 0, np.float32(-999)),
        "no_attribute": ("<f4", 7, None),
        "array_of_one": ("<i2", -1, np.array([-1], "<i2")),
        "array_of_two": ("<i2", -1, np.array([-1, -2], "<i2")),
        "wider_type": ("<i2", -1, np.int64(-1)),
        "out_of_range": ("i1", 0, np.int16(-9999)),
        "float_on_integer": ("<i2", -9999, np.float32(-9999)),
        "nan_on_integer": ("<i4", 0, np.float64("nan")),
        "text_on_integer": ("<i4", 0, "-9999"),
        "big_endian": (">i4", -9, np.array(-9, ">i4")),
        "unsigned": ("u1", 255, np.uint8(255)),
    }
    with new_file(path, "latest") as file:
        for name, (code, fill, attribute) in cases.items():
            dataset = new_dataset(file, name, code, (6,), dataset_properties((3,), fill=np.array(fill, code)))
            dataset[:3] = [0, 1, fill]
            if attribute is not None:
                dataset.attrs["_FillValue"] = attribute
