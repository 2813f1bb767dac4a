"""Elements: which numpy type readers see, and whether the file's bytes are already that type's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5t

from h5zarr.errors import Unrepresentable
from h5zarr.formats import scan
from h5zarr.hdf5.datatype import ByteOrder, FloatingPoint, Normalization
from h5zarr.netcdf4.element_forms import TEXT, ElementForm, interpret_element


def form_of(kind: Any, tmp_path: Path) -> ElementForm:
    """Return the form of a type, by way of a file that has it."""
    if not isinstance(kind, h5t.TypeID):
        kind = h5t.py_create(kind if isinstance(kind, np.dtype) else np.dtype(kind), logical=True)
    with h5py.File(tmp_path / "type.h5", "w") as file:
        h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create(h5py.h5s.SCALAR))
    ((_, dataset),) = scan(str(tmp_path / "type.h5")).datasets()
    return interpret_element(dataset.datatype)


def changed(kind: Any, **settings: Any) -> Any:
    made = kind.copy()
    for name, value in settings.items():
        getattr(made, f"set_{name}")(*value if isinstance(value, tuple) else (value,))
    return made


def record(**members: Any) -> np.dtype[Any]:
    return np.dtype(list(members.items()))


@pytest.mark.parametrize("code", ["i1", "<i2", ">i4", "<u8", "<f2", ">f4", "<f8", "<c8", ">c16", "V3", "?"])
def test_these_are_in_the_file_as_numpy_has_them(code: str, tmp_path: Path) -> None:
    assert form_of(code, tmp_path) == ElementForm(np.dtype(code), True)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (changed(h5t.STD_I16LE, precision=12, offset=2), "<i2"),
        (changed(h5t.STD_U8LE, precision=7), "<u1"),
        (changed(h5t.STD_I32LE, size=3), "<i4"),
        (changed(h5t.IEEE_F32LE, fields=(26, 20, 6, 7, 13), offset=7, precision=20, ebias=31, size=4), "<f4"),
        (changed(h5t.IEEE_F32LE, fields=(26, 20, 6, 7, 13), offset=7, precision=20, ebias=31, size=5), "<f8"),
    ],
)
def test_odd_numbers_are_converted_to_a_type_that_holds_them(kind: Any, dtype: str, tmp_path: Path) -> None:
    assert form_of(kind, tmp_path) == ElementForm(np.dtype(dtype), False)


@pytest.mark.parametrize(("bias", "dtype"), [(15, "<f2"), (14, "<f4"), (-97, "<f4"), (-98, "<f8"), (16, "<f4")])
def test_a_float_is_given_the_range_that_its_bias_needs(bias: int, dtype: str) -> None:
    half = FloatingPoint(
        nbytes=2,
        order=ByteOrder.LITTLE,
        bit_offset=0,
        precision=16,
        sign_location=14,
        exponent_location=9,
        exponent_nbits=5,
        mantissa_location=0,
        mantissa_nbits=9,
        exponent_bias=bias,
        normalization=Normalization.IMPLIED,
    )
    assert interpret_element(half) == ElementForm(np.dtype(dtype), False)


@pytest.mark.parametrize(
    ("padding", "nbytes", "is_plain"),
    [
        (h5t.STR_NULLPAD, 5, True),
        (h5t.STR_NULLTERM, 1, True),
        (h5t.STR_NULLTERM, 5, False),
        (h5t.STR_SPACEPAD, 1, False),
        (h5t.STR_SPACEPAD, 5, False),
    ],
)
def test_strings_are_plain_where_readers_cut_them_right(
    padding: int, nbytes: int, is_plain: bool, tmp_path: Path
) -> None:
    form = form_of(changed(h5t.C_S1, size=nbytes, strpad=padding), tmp_path)
    assert form == ElementForm(np.dtype(f"S{nbytes}"), is_plain)


def test_text_and_references_to_objects_are_text(tmp_path: Path) -> None:
    for dtype in (h5py.string_dtype(), h5py.ref_dtype):
        assert form_of(dtype, tmp_path) == ElementForm(TEXT, False)


def test_an_enumeration_is_its_integer_unless_it_is_a_boolean(tmp_path: Path) -> None:
    assert form_of(h5py.enum_dtype({"A": 1}, ">i2"), tmp_path).dtype == np.dtype(">i2")
    assert form_of(h5py.enum_dtype({"FALSE": 0, "TRUE": 1}, "i1"), tmp_path).dtype == np.dtype(bool)
    assert form_of(h5py.enum_dtype({"FALSE": 0, "TRUE": 1}, "<i2"), tmp_path).dtype == np.dtype("<i2")
    assert form_of(h5py.enum_dtype({"FALSE": 1, "TRUE": 0}, "i1"), tmp_path).dtype == np.dtype("i1")


def test_array_types_add_axes(tmp_path: Path) -> None:
    nested = h5t.array_create(h5t.array_create(h5t.STD_I16BE, (3,)), (2, 4))
    assert form_of(nested, tmp_path) == ElementForm(np.dtype(">i2"), True, (2, 4, 3))


def test_a_tag_of_numpy_makes_a_time_if_size_and_unit_are_right(tmp_path: Path) -> None:
    assert form_of(h5py.opaque_dtype(np.dtype("<M8[ms]")), tmp_path).dtype == np.dtype("<M8[ms]")
    for nbytes, tag in ((8, b"NUMPY:nonsense"), (4, b"NUMPY:<M8[s]"), (8, b"NUMPY:<M8"), (8, b"image")):
        opaque = h5t.create(h5t.OPAQUE, nbytes)
        opaque.set_tag(tag)
        assert form_of(opaque, tmp_path) == ElementForm(np.dtype(f"V{nbytes}"), True)


def test_records_are_plain_where_they_are_little_endian(tmp_path: Path) -> None:
    assert form_of(record(a="<i2", b="<f8"), tmp_path) == ElementForm(record(a="<i2", b="<f8"), True)
    assert form_of(record(a="<i2", b=">f8"), tmp_path) == ElementForm(record(a="<i2", b="<f8"), False)


def test_gaps_in_records_are_members(tmp_path: Path) -> None:
    dtype = np.dtype({"names": ["p", "q"], "formats": ["i1", "<i8"], "offsets": [1, 8], "itemsize": 24})
    form = form_of(dtype, tmp_path)
    assert form.is_plain
    assert form.dtype == np.dtype([("_gap0", "V1"), ("p", "i1"), ("_gap2", "V6"), ("q", "<i8"), ("_gap4", "V8")])


@pytest.mark.parametrize(
    ("dtype", "is_complex"),
    [
        (record(r="<f4", i="<f4"), True),
        (record(real=">f8", imag=">f8"), True),
        (record(r="<f4", i="<f8"), False),
        (record(r="<i4", i="<i4"), False),
        (record(x="<f4", y="<f4"), False),
        (record(r="<f2", i="<f2"), False),
    ],
)
def test_two_equal_floats_of_certain_names_are_complex(dtype: np.dtype[Any], is_complex: bool, tmp_path: Path) -> None:
    kind = h5t.create(h5t.COMPOUND, dtype.itemsize)
    for name in dtype.names or ():
        kind.insert(name.encode(), dtype.fields[name][1], h5t.py_create(dtype[name]))  # type: ignore[index]
    assert (form_of(kind, tmp_path).dtype.kind == "c") is is_complex


@pytest.mark.parametrize(
    ("dtype", "reason"),
    [
        (h5py.vlen_dtype(np.dtype("i4")), "variable-length sequences"),
        (h5py.regionref_dtype, "references to regions"),
        (record(a=("<i2", (3,))), "records that contain an array \\(member 'a'\\)"),
        (record(t=h5py.string_dtype()), "records that contain variable-length text"),
        (record(t=h5py.ref_dtype), "records that contain references"),
        (np.dtype(np.longdouble), "floating-point numbers of"),
    ],
)
def test_what_zarr_has_no_type_for_is_refused_with_the_reason(dtype: Any, reason: str, tmp_path: Path) -> None:
    with pytest.raises(Unrepresentable, match=reason):
        form_of(dtype, tmp_path)


def test_the_vax_order_of_a_float_is_part_of_the_reason() -> None:
    vax = FloatingPoint(
        nbytes=8,
        order=ByteOrder.VAX,
        bit_offset=0,
        precision=64,
        sign_location=63,
        exponent_location=52,
        exponent_nbits=11,
        mantissa_location=0,
        mantissa_nbits=52,
        exponent_bias=1025,
        normalization=Normalization.IMPLIED,
    )
    with pytest.raises(Unrepresentable, match="8 bytes with 52 mantissa bits and 11 exponent bits in VAX order"):
        interpret_element(vax)
