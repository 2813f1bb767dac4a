"""The form in which a file stores its variables, where readers of Zarr see another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
from h5py import h5t

from h5zarr.formats import scan
from h5zarr.netcdf4.interpret import interpret_file
from h5zarr.netcdf4.names import interpret_names
from h5zarr.tree import StoredForm, Tree, TreeGroup, Variable


def tree_of(path: Path) -> Tree:
    file = scan(str(path))
    return interpret_file(file, interpret_names(file), [str(path)])


def stored(tree: Tree, path: str) -> StoredForm:
    node = tree.nodes[path]
    assert isinstance(node, Variable)
    assert node.stored is not None
    return node.stored


def form_of(kind: Any, tmp_path: Path) -> StoredForm:
    """Return how a variable of some type is stored."""
    path = tmp_path / "type.h5"
    if not isinstance(kind, h5t.TypeID):
        kind = h5t.py_create(np.dtype(kind), logical=True)
    with h5py.File(path, "w") as file:
        h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((2,)))
    return stored(tree_of(path), "/x")


def integer(base: Any, precision: int, nbytes: int | None = None) -> Any:
    made = base.copy()
    made.set_precision(precision)
    if nbytes is not None:
        made.set_size(nbytes)
    return made


def text(nbytes: int, padding: int) -> Any:
    made = h5t.C_S1.copy()
    made.set_size(nbytes)
    made.set_strpad(padding)
    return made


@pytest.mark.parametrize("kind", ["i1", "<i2", ">i4", "<f8", "S5", h5py.string_dtype(), "V3"])
def test_most_types_need_no_word(kind: Any, tmp_path: Path) -> None:
    assert form_of(kind, tmp_path) == StoredForm()


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (integer(h5t.STD_I16LE, 12), None),
        (integer(h5t.STD_U32BE, 20), ">u4"),
        (integer(h5t.STD_I32LE, 24, 3), None),
        (integer(h5t.STD_I64BE, 40, 5), ">i8"),
        (integer(h5t.STD_U64LE, 34), None),
    ],
)
def test_integers_of_odd_precision_are_of_the_type_that_holds_it(kind: Any, number: str | None, tmp_path: Path) -> None:
    assert form_of(kind, tmp_path).number == number


@pytest.mark.parametrize(("base", "number"), [("i1", None), ("u1", None), ("<i4", "bool")])
def test_booleans_of_several_bytes_are_recorded(base: str, number: str | None, tmp_path: Path) -> None:
    form = form_of(h5py.enum_dtype({"FALSE": 0, "TRUE": 1}, basetype=base), tmp_path)
    assert form.number == number
    assert form.enumeration is None


@pytest.mark.parametrize(
    ("kind", "members"),
    [
        ("c8", ()),
        (">c16", ()),
        ([("real", "<f8"), ("imag", "<f8")], ()),
        ([("a", "<i2"), ("b", "<f8")], ()),
        ([("a", ">i2"), ("b", ">f8")], ()),
        ({"names": ["a", "b"], "formats": ["i1", "<f8"], "offsets": [0, 8], "itemsize": 16}, ("a", "b")),
    ],
)
def test_the_members_of_records_are_recorded_if_the_array_does_not_show_them(
    kind: Any, members: tuple[str, ...], tmp_path: Path
) -> None:
    assert form_of(kind, tmp_path).members == members


@pytest.mark.parametrize(
    ("padding", "expected"), [(h5t.STR_SPACEPAD, " "), (h5t.STR_NULLPAD, ""), (h5t.STR_NULLTERM, "")]
)
def test_the_padding_of_text_is_recorded(padding: int, expected: str, tmp_path: Path) -> None:
    assert form_of(text(5, padding), tmp_path).padding == expected


def test_enumerations_have_the_names_that_the_netcdf_library_gives_them(tmp_path: Path) -> None:
    path = tmp_path / "enums.h5"
    with h5py.File(path, "w", track_order=True) as file:

        def add(name: str, first: str, group: Any = file, base: str = "<i2") -> None:
            kind = h5py.enum_dtype({first: 1, "B": 2}, basetype=base)
            group.create_dataset(name, data=np.array([1, 2], base), dtype=kind)

        add("one", "A")
        file["record"] = np.zeros(2, [("a", "i1"), ("b", "f8")])
        add("same", "A")
        add("same_but_big", "A", base=">i2")
        file["opaque"] = np.array([b"abc"], "V3")
        add("two", "C")
        add("inside", "D", file.create_group("group"))
        file["flag"] = h5py.enum_dtype({"E": 1, "B": 2}, basetype="<i2")
        file.create_dataset("named", data=np.array([1, 2], "<i2"), dtype=file["flag"])
        add("named_by_its_form", "E")
        add("too_early", "F")
        file["late"] = h5py.enum_dtype({"F": 1, "B": 2}, basetype="<i2")
        file.create_dataset("too_late", data=np.array([1, 2], "<i2"), dtype=file["late"])
    tree = tree_of(path)
    with pytest.warns(UserWarning, match="unsupported datatype"):
        opened = netCDF4.Dataset(path)
    with opened as theirs:
        shown = {f"/{name}": one for name, one in theirs.variables.items()}
        shown["/group/inside"] = theirs["group/inside"]
        enums = {name: one.datatype for name, one in shown.items() if isinstance(one.datatype, netCDF4.EnumType)}
        assert len(enums) == 9
        for name, kind in enums.items():
            found = stored(tree, name).enumeration
            assert found is not None
            assert (found.name, dict(found.members)) == (kind.name, kind.enum_dict)


def test_attributes_of_types_that_netcdf_does_not_know_are_foreign(tmp_path: Path) -> None:
    path = tmp_path / "attributes.h5"
    record = np.array((1, 2.5), [("a", "<i2"), ("b", "<f8")])
    with h5py.File(path, "w") as file:
        file["known"] = np.zeros(2, record.dtype)
        for place in (file, file.create_group("group"), file.create_dataset("v", data=[1.0])):
            place.attrs["number"], place.attrs["text"] = np.int16(1), "abc"
            place.attrs["half"], place.attrs["flag"] = np.float16(1), np.bool_(True)
            place.attrs["pair"], place.attrs["target"] = 1 + 2j, file["known"].ref
            place.attrs["known"], place.attrs["big"] = record, record.astype([("a", ">i2"), ("b", ">f8")])
    tree = tree_of(path)
    with netCDF4.Dataset(path) as theirs:
        for name, shown in {"/": theirs, "/group": theirs["group"], "/v": theirs["v"]}.items():
            node = tree.nodes[name]
            foreign = (node if isinstance(node, TreeGroup) else stored(tree, name)).notes.foreign
            assert sorted(foreign) == ["half", "target"]
            assert sorted(node.attributes.keys() - set(foreign) - {"flag", "pair"}) == sorted(shown.ncattrs())


def test_unlimited_dimensions_are_recorded_in_their_group(tmp_path: Path) -> None:
    path = tmp_path / "dimensions.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("bare", None)
        file.createDimension("fixed", 3)
        group = file.createGroup("g")
        group.createDimension("time", None)
        group.createVariable("time", "f8", ("time",))
        group.createVariable("v", "f8", ("bare", "fixed"))
    nodes = tree_of(path).nodes
    assert [(name, one.unlimited) for name, one in nodes.items() if isinstance(one, TreeGroup)] == [
        ("/", ("bare",)),
        ("/g", ("time",)),
    ]


def test_the_size_of_space_padded_attributes_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "padded.h5"
    with h5py.File(path, "w") as file:
        for place in (file, file.create_dataset("v", data=[1.0])):
            for name, padding in {"blanks": h5t.STR_SPACEPAD, "nuls": h5t.STR_NULLPAD}.items():
                h5py.h5a.create(place.id, name.encode(), text(7, padding), h5py.h5s.create(h5py.h5s.SCALAR))
    tree = tree_of(path)
    root = tree.nodes["/"]
    assert isinstance(root, TreeGroup)
    assert root.notes.padded == stored(tree, "/v").notes.padded == (("blanks", 7),)
