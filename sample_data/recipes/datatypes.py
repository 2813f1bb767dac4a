"""Datatypes: every class of the specification, and dataspaces, as libver earliest and latest write them."""

from __future__ import annotations

import ctypes
from pathlib import Path

import h5py
import numpy as np
from h5py import h5s, h5t

from . import libhdf5
from .catalogue import Unavailable, sample
from .writing import (
    EARLIEST_AND_LATEST,
    dataset_properties,
    new_dataset,
    new_file,
    numbers,
    write_stored_bytes,
    write_values,
)

REFERENCE_NBYTES = 64  # sizeof(H5R_ref_t)


@sample("types_integers.h5", "integers of 1, 2, 4 and 8 bytes, signed and unsigned, both byte orders")
def integers(path: Path) -> None:
    with new_file(path) as file:
        for nbytes in (1, 2, 4, 8):
            for sign in "iu":
                for order, word in (("<", "little"), (">", "big")):
                    limits = np.iinfo(f"{sign}{nbytes}")
                    values = np.array([limits.min, 1, limits.max], f"{order}{sign}{nbytes}")
                    new_dataset(file, f"{sign}{8 * nbytes}_{word}", values.dtype, (3,))[:] = values


@sample(
    "types_integers_odd_{libver}.h5",
    "integers of odd size, precision, bit offset and padding (libver {libver})",
    libver=EARLIEST_AND_LATEST,
)
def integers_odd(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        three_bytes = h5t.STD_I32LE.copy()
        three_bytes.set_precision(24)
        three_bytes.set_size(3)
        write_values(new_dataset(file, "i24_in_3_bytes", three_bytes, (4,)), [1, -2, 300_000, -400_000])

        for base, word in ((h5t.STD_U16LE, "little"), (h5t.STD_U16BE, "big")):
            twelve_bits = base.copy()
            twelve_bits.set_precision(12)
            twelve_bits.set_offset(4)
            write_values(new_dataset(file, f"u12_at_bit_4_{word}", twelve_bits, (4,)), [1, 2, 3, 4000])

        padded = h5t.STD_I32LE.copy()
        padded.set_precision(17)
        padded.set_pad(h5t.PAD_ONE, h5t.PAD_ONE)
        padded.set_offset(5)
        write_values(new_dataset(file, "i17_padded_with_ones", padded, (3,)), [5, -5, 65_535])

        one_bit = h5t.STD_U8LE.copy()
        one_bit.set_precision(1)
        write_values(new_dataset(file, "u1", one_bit, (4,)), [0, 1, 1, 0])


@sample("types_floats.h5", "floats of 2, 4, 8 and 16 bytes, both byte orders, with infinities and NaN")
def floats(path: Path) -> None:
    values = np.array([0.0, -0.0, 1.5, np.inf, -np.inf, np.nan])
    with new_file(path) as file:
        for code in ("<f2", ">f2", "<f4", ">f4", "<f8", ">f8"):
            word = "little" if code[0] == "<" else "big"
            new_dataset(file, f"f{8 * int(code[2])}_{word}", code, (6,))[:] = values
        write_values(new_dataset(file, "f128_little", h5t.IEEE_F128LE, (6,)), values)
        write_values(new_dataset(file, "f128_big", h5t.IEEE_F128BE, (6,)), values)


def custom_float(nbytes: int, exponent_bits: int, mantissa_bits: int, bias: int) -> h5t.TypeFloatID:
    """Return a little-endian float with its fields side by side: sign, exponent, mantissa."""
    custom = h5t.IEEE_F64LE.copy()
    custom.set_fields(exponent_bits + mantissa_bits, mantissa_bits, exponent_bits, 0, mantissa_bits)
    custom.set_precision(1 + exponent_bits + mantissa_bits)
    custom.set_ebias(bias)
    custom.set_size(nbytes)
    return custom


@sample("types_floats_custom.h5", "floats that numpy lacks: bfloat16, 8 bits (E4M3), 24 bits, x87 extended precision")
def floats_custom(path: Path) -> None:
    values = np.array([0.0, 1.0, -2.0, 0.15625], "f4")
    with new_file(path) as file:
        write_values(new_dataset(file, "bfloat16", custom_float(2, 8, 7, 127), (4,)), values)
        write_values(new_dataset(file, "f8_e4m3", custom_float(1, 4, 3, 7), (4,)), values)
        write_values(new_dataset(file, "f24", custom_float(3, 7, 16, 63), (4,)), values)

        extended = h5t.IEEE_F128LE.copy()
        extended.set_fields(79, 64, 15, 0, 64)
        extended.set_precision(80)
        extended.set_norm(h5t.NORM_NONE)
        stored = b"".join(
            integer.to_bytes(16, "little") for integer in (0, 0x3FFF8000000000000000, 0xC0008000000000000000)
        )
        write_stored_bytes(new_dataset(file, "x87_extended", extended, (3,)), stored)


@sample("types_vax.h5", "floats in VAX byte order")
def floats_vax(path: Path) -> None:
    with new_file(path) as file:
        for name, constant in (("vax_f32", "H5T_VAX_F32"), ("vax_f64", "H5T_VAX_F64")):
            vax = h5t.typewrap(libhdf5.call("H5Tcopy", libhdf5.predefined_type(constant)))
            write_values(new_dataset(file, name, vax, (4,)), np.array([0.0, 1.0, -2.0, 0.15625]))


@sample("types_time.h5", "the time class (UNIX_D32, UNIX_D64), both byte orders")
def times(path: Path) -> None:
    with new_file(path) as file:
        for name, datatype, nbytes, order in (
            ("d32_little", h5t.UNIX_D32LE, 4, "little"),
            ("d32_big", h5t.UNIX_D32BE, 4, "big"),
            ("d64_little", h5t.UNIX_D64LE, 8, "little"),
            ("d64_big", h5t.UNIX_D64BE, 8, "big"),
        ):
            seconds = (0, 86_400, 1_000_000_000)
            stored = b"".join(second.to_bytes(nbytes, order) for second in seconds)
            write_stored_bytes(new_dataset(file, name, datatype, (3,)), stored)


@sample("types_bitfield_opaque.h5", "bitfields of 1 to 8 bytes, opaque bytes with and without a tag")
def bitfields_and_opaque(path: Path) -> None:
    with new_file(path) as file:
        for name in ("B8LE", "B16BE", "B32LE", "B64BE"):
            datatype = getattr(h5t, f"STD_{name}")
            dataset = new_dataset(file, f"bitfield_{name}", datatype, (3,))
            write_stored_bytes(dataset, bytes(range(3 * datatype.get_size())))
        for name, tag in (("opaque", b""), ("opaque_tagged", b"MIME type: image/x-tiny")):
            opaque = h5t.create(h5t.OPAQUE, 5)
            opaque.set_tag(tag)
            write_stored_bytes(new_dataset(file, name, opaque, (2,)), b"\0\1\2\3\4abcde")
        days = np.array(["2020-01-01", "2024-02-29"], "M8[D]")
        file["datetime_as_opaque"] = days.astype(h5py.opaque_dtype(days.dtype))


@sample(
    "types_compound_{libver}.h5",
    "compounds: packed, padded, nested, big-endian, with arrays, strings, sequences (libver {libver})",
    libver=EARLIEST_AND_LATEST,
)
def compounds(path: Path, libver: str) -> None:
    packed = np.dtype([("a", "<i4"), ("b", "<f8")])
    padded = np.dtype({"names": ["a", "b"], "formats": ["i1", "<f8"], "offsets": [0, 8], "itemsize": 24})
    reordered = np.dtype({"names": ["b", "a"], "formats": ["<f4", "<i2"], "offsets": [2, 0], "itemsize": 6})
    big = np.dtype([("a", ">i2"), ("b", ">f4")])
    nested = np.dtype([("id", "<u2"), ("inner", packed), ("flags", np.dtype([("x", "?"), ("y", "S3")]))])
    arrays = np.dtype([("grid", "<i2", (2, 3)), ("pairs", packed, (2,))])
    with new_file(path, libver) as file:
        file["packed"] = np.array([(1, 2.5), (3, 4.5)], packed)
        file["scalar"] = np.array((1, 2.5), packed)
        for name, dtype in (("padded", padded), ("reordered", reordered), ("big_endian", big)):
            rows = np.zeros(3, dtype)
            rows["a"], rows["b"] = [1, 2, 3], [0.5, 1.5, 2.5]
            file.create_dataset(name, data=rows, chunks=(2,) if name == "padded" else None)
        rows = np.zeros(2, nested)
        rows["id"], rows["inner"]["b"], rows["flags"]["y"] = [1, 2], [0.5, 1.5], [b"no", b"yes"]
        file["nested"] = rows
        rows = np.zeros(2, arrays)
        rows["grid"], rows["pairs"]["a"] = numbers((2, 2, 3), "i2"), numbers((2, 2))
        file["with_arrays"] = rows
        named = np.dtype([("id", "<i4"), ("name", h5py.string_dtype()), ("values", h5py.vlen_dtype("<f4"))])
        rows = np.zeros(2, named)
        rows["id"], rows["name"] = [1, 2], ["one", "two"]
        rows["values"][0], rows["values"][1] = np.array([0.5], "f4"), np.array([1, 2], "f4")
        file.create_dataset("with_text_and_sequences", data=rows)


@sample(
    "types_enum_bool_array_{libver}.h5",
    "enumerations, booleans and array datatypes (libver {libver})",
    libver=EARLIEST_AND_LATEST,
)
def enumerations_and_arrays(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        file["boolean"] = np.array([True, False, True])
        file["boolean_scalar"] = np.bool_(True)
        for code in ("i1", "<u2", ">i4"):
            colours = h5py.enum_dtype({"RED": 1, "GREEN": 2, "ULTRAMARINE": 100}, code)
            file.create_dataset(f"colours_{code[-2:]}", data=np.array([1, 100, 2], code), dtype=colours)
        file.create_dataset("array", (2,), np.dtype(("<i4", (3,))))[...] = numbers((2, 3))
        file.create_dataset("array_2d", (2,), np.dtype((">i2", (3, 2))), chunks=(1,))[...] = numbers((2, 3, 2))
        texts = file.create_dataset("array_of_text", (2,), np.dtype((h5py.string_dtype(), (2,))))
        texts[...] = np.array([["a", "b"], ["c", "d"]], dtype=object)


@sample(
    "types_references_{libver}.h5",
    "references to objects and regions: null, dangling, hyperslab, points, irregular (libver {libver})",
    libver=EARLIEST_AND_LATEST,
)
def references(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        data = file.create_dataset("data", data=numbers((4, 6)))
        group = file.create_group("group")
        objects = file.create_dataset("objects", (5,), h5py.ref_dtype)
        objects[0], objects[1], objects[2] = data.ref, group.ref, file.ref
        objects[3] = file.create_dataset("deleted", data=numbers((2,))).ref
        del file["deleted"]
        regions = file.create_dataset("regions", (5,), h5py.regionref_dtype)
        regions[0], regions[1] = data.regionref[1:3, ::2], data.regionref[...]
        regions[2] = data.regionref[np.eye(4, 6, dtype=bool)]
        irregular = data.id.get_space()
        irregular.select_hyperslab((0, 0), (2, 2))
        irregular.select_hyperslab((2, 3), (1, 3), op=h5s.SELECT_OR)
        regions[3] = h5py.h5r.create(file.id, b"data", h5py.h5r.DATASET_REGION, irregular)


@sample("types_references_revised.h5", "revised references (HDF5 1.12): to an object, a region, an attribute")
def references_revised(path: Path) -> None:
    datatype = libhdf5.predefined_type("H5T_STD_REF")
    with new_file(path, "v112") as file:
        data = file.create_dataset("data", data=numbers((4, 6)))
        data.attrs["units"] = "K"
        region = data.id.get_space()
        region.select_hyperslab((1, 2), (2, 3))
        buffer = (ctypes.c_uint64 * (4 * REFERENCE_NBYTES // 8))()
        slots = [ctypes.addressof(buffer) + number * REFERENCE_NBYTES for number in range(4)]
        libhdf5.call("H5Rcreate_object", file.id, b"data", 0, slots[0])
        libhdf5.call("H5Rcreate_region", file.id, b"data", region, 0, slots[1])
        libhdf5.call("H5Rcreate_attr", file.id, b"data", b"units", 0, slots[2])
        space = h5s.create_simple((4,))
        stored = libhdf5.call("H5Dcreate2", file.id, b"references", datatype, space, 0, dataset_properties(), 0)
        libhdf5.call("H5Dwrite", stored, datatype, h5s.ALL, h5s.ALL, 0, ctypes.addressof(buffer))
        libhdf5.call("H5Dclose", stored)
        for slot in slots[:3]:
            libhdf5.call("H5Rdestroy", slot)


@sample("types_complex_compound.h5", "complex numbers as h5py has always stored them: compounds of r and i")
def complex_as_compound(path: Path) -> None:
    with new_file(path) as file:
        for code in ("<c8", "<c16", ">c8"):
            new_dataset(file, f"{code[1:]}_{'little' if code[0] == '<' else 'big'}", code, (2,))[:] = [1 + 2j, -0.5j]


@sample("types_complex_native.h5", "the complex class of HDF5 2.0, both byte orders, 2 to 8 byte parts")
def complex_native(path: Path) -> None:
    if not hasattr(h5t, "COMPLEX_IEEE_F32LE"):
        raise Unavailable("h5py was built with a libhdf5 older than 2.0")
    with new_file(path, "latest") as file:
        for name in ("F16LE", "F16BE", "F32LE", "F32BE", "F64LE", "F64BE"):
            part = {"16": "f2", "32": "f4", "64": "f8"}[name[1:3]]
            stored = np.array([1, 2, 0, -0.5], ("<" if name.endswith("LE") else ">") + part).tobytes()
            dataset = new_dataset(file, f"complex_{name}", getattr(h5t, f"COMPLEX_IEEE_{name}"), (2,))
            write_stored_bytes(dataset, stored)


@sample(
    "dataspaces_{libver}.h5",
    "null, scalar, zero-length, unlimited and 32-dimensional dataspaces (libver {libver})",
    libver=EARLIEST_AND_LATEST,
)
def dataspaces(path: Path, libver: str) -> None:
    with new_file(path, libver) as file:
        file["null"] = h5py.Empty("<f4")
        file["null_text"] = h5py.Empty(h5py.string_dtype())
        file["scalar"] = 42.5
        file.create_dataset("scalar_never_written", (), "<i4", fillvalue=3)
        file.create_dataset("zero_length", (0,), "<i4")
        file.create_dataset("zero_length_unlimited", (0, 3), "<f4", maxshape=(None, 3), chunks=(2, 3))
        file.create_dataset("zero_length_inside", (2, 0, 3), "<f4")
        file.create_dataset("may_grow", data=numbers((2, 3)), maxshape=(5, None), chunks=(1, 2))
        file.create_dataset("rank_32", data=numbers((2,) + (1,) * 30 + (2,)))
