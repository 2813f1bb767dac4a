"""The record of a group: its JSON, and that neither readers nor users confuse it with an attribute."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

import h5zarr
from h5zarr.commands.translate.translate import translate
from h5zarr.commands.translate.translation import Translation
from h5zarr.commands.validate.validate import validate
from h5zarr.containers.json.json_reading import decode_references
from h5zarr.opening import open_hierarchy
from h5zarr.tree import AttributeNotes, StoredEnumeration, StoredForm, TreeGroup
from h5zarr.zarr_model.hierarchy import GroupNode, GroupRecord, KeptValue, VariableRecord
from h5zarr.zarr_model.nz.declaration import DECLARATION
from h5zarr.zarr_model.record import (
    NZ_RECORD,
    RECORD,
    RecordedFilter,
    decode_group,
    decode_record,
    encode_group,
    encode_record,
)
from tests.containers.hierarchies import open_store
from tests.encode.trees import encode, scalar
from tests.roundtrip.reading import written

IN_NZ = {"zarr_conventions": [DECLARATION]}
SHUFFLE = RecordedFilter(number=2, values=(4,))
FACTS: list[tuple[Any, Any]] = [
    (VariableRecord(form=StoredForm(chunk_shape=(2, 3))), {"chunks": [2, 3]}),
    (VariableRecord(form=StoredForm(chunk_shape=())), {"chunks": []}),
    (VariableRecord(form=StoredForm(filters=(SHUFFLE,))), {"filters": [[2, [4]]]}),
    (VariableRecord(form=StoredForm(number=">u2")), {"number": ">u2"}),
    (VariableRecord(form=StoredForm(members=("r", "i"))), {"members": ["r", "i"]}),
    (VariableRecord(form=StoredForm(padding=" ")), {"padding": " "}),
    (VariableRecord(form=StoredForm(notes=AttributeNotes(foreign=("box",)))), {"foreign": ["box"]}),
    (VariableRecord(form=StoredForm(notes=AttributeNotes(padded=(("units", 5),)))), {"padded": {"units": 5}}),
    (
        VariableRecord(
            form=StoredForm(enumeration=StoredEnumeration(name="flag", members=(("no", -1), ("yes", 1)))),
        ),
        {"enumeration": {"name": "flag", "members": {"no": -1, "yes": 1}}},
    ),
    (VariableRecord(types={"scale_factor": "float32"}), {"types": {"scale_factor": "float32"}}),
    (
        VariableRecord(types={"box": (("n", "int32"), ("size", "complex64"))}),
        {"types": {"box": [["n", "int32"], ["size", "complex64"]]}},
    ),
    (
        VariableRecord(fill_value=KeptValue(value=-9999, type="int16")),
        {"fill_value": {"value": -9999, "type": "int16"}},
    ),
    (
        VariableRecord(fill_value=KeptValue(value=[float("inf"), 2.0], type="float32")),
        {"fill_value": {"value": ["Infinity", 2.0], "type": "float32"}},
    ),
    (VariableRecord(fill_value=KeptValue(value="NaN", type=None)), {"fill_value": {"value": "NaN"}}),
    (
        VariableRecord(withheld={"scale_factor": KeptValue(value=[float("inf"), 1], type="float32")}),
        {"withheld": {"scale_factor": {"value": ["Infinity", 1], "type": "float32"}}},
    ),
]


# --- JSON


@pytest.mark.parametrize(("variable", "told"), FACTS, ids=lambda one: str(one) if isinstance(one, dict) else "")
def test_every_fact_of_a_variable_has_a_key(variable: VariableRecord, told: dict[str, Any]) -> None:
    record = GroupRecord(variables={"v": variable})
    assert encode_record(record) == {"variables": {"v": told}}
    assert decode_record({"h5zarr": 1, "variables": {"v": told}}) == record


def test_every_fact_of_a_group_has_a_key() -> None:
    notes = AttributeNotes(foreign=("box",), padded=(("title", 8),))
    record = GroupRecord(types={"n": "int8"}, notes=notes, unlimited=("time",), is_classic=True)
    told = encode_record(record)
    assert told == {
        "classic": True,
        "unlimited": ["time"],
        "types": {"n": "int8"},
        "foreign": ["box"],
        "padded": {"title": 8},
    }
    assert decode_record({"h5zarr": 1, **told}) == record


def test_a_usual_variable_is_not_mentioned() -> None:
    assert encode_record(GroupRecord(variables={"v": VariableRecord()})) == {}
    assert decode_record({"h5zarr": 1}).variable("v") == VariableRecord()


def test_nan_in_a_record_is_a_word_that_every_json_parser_reads() -> None:
    kept = VariableRecord(fill_value=KeptValue(value=float("nan"), type="float64"))
    told = encode_record(GroupRecord(variables={"v": kept}))
    json.dumps(told, allow_nan=False)
    (read,) = decode_record({"h5zarr": 1, **told}).variables.values()
    assert read.fill_value is not None
    assert np.isnan(read.fill_value.value)


# --- the attribute

RECORDS = [None, GroupRecord(), GroupRecord(types={"n": "int8"}, unlimited=("time",))]
LIKE_OURS = {"h5zarr": 1, "types": {"n": "float32"}, "attributes": {RECORD: 5}}
OF_USERS: list[dict[str, Any]] = [
    {},
    {RECORD: "mine"},
    {NZ_RECORD: "mine"},
    {RECORD: LIKE_OURS},
    {NZ_RECORD: LIKE_OURS},
    {NZ_RECORD: json.dumps(LIKE_OURS)},
    {RECORD: json.dumps(LIKE_OURS), NZ_RECORD: LIKE_OURS},
    {RECORD: {"h5zarr": 7}, NZ_RECORD: {"h5zarr": 7}},
]


@pytest.mark.parametrize("record", RECORDS, ids=["none", "empty", "some"])
@pytest.mark.parametrize("users", OF_USERS, ids=lambda one: "+".join(one) or "plain")
@pytest.mark.parametrize("declared", [{}, IN_NZ], ids=["plain", "nz"])
def test_attributes_and_record_come_back_whatever_the_names_of_attributes(
    declared: dict[str, Any], users: dict[str, Any], record: GroupRecord | None
) -> None:
    node = GroupNode(attributes={"n": 1, **users, **declared}, record=record)
    stored = encode_group(node)
    read, warnings = decode_group("/", json.loads(json.dumps(stored)))
    assert (read.attributes, read.record, warnings) == (node.attributes, record, ())


def test_the_record_is_an_object_unless_nz_is_declared_and_then_it_is_text() -> None:
    record = GroupRecord(unlimited=("time",))
    plain = encode_group(GroupNode(attributes={"n": 1}, record=record))
    assert plain == {"n": 1, "_nc_record": {"h5zarr": 1, "unlimited": ["time"]}}
    in_nz = encode_group(GroupNode(attributes=IN_NZ, record=record))
    assert in_nz == {**IN_NZ, "netcdf_record": '{"h5zarr":1,"unlimited":["time"]}'}


def test_no_record_is_no_attribute() -> None:
    assert encode_group(GroupNode(attributes={"n": 1})) == {"n": 1}


# --- files


def test_variables_are_in_the_record_of_their_own_group() -> None:
    inside = replace(scalar(), stored=StoredForm(padding=" "))
    groups = {"/g": TreeGroup(), "/h": TreeGroup()}
    hierarchy, _ = encode({"/g/v": inside, "/h/v": scalar()}, groups=groups)
    known = GroupRecord(variables={"v": VariableRecord(form=StoredForm(padding=" "))})
    assert [getattr(hierarchy.nodes[path], "record", 0) for path in ("/", "/g", "/h")] == [None, known, None]
    assert [hierarchy.nodes[path].attributes for path in ("/", "/g", "/h")] == [{}, {}, {}]


@pytest.fixture
def ocean(tmp_path: Path) -> Path:
    """A file with a group, whose dimension without a variable is unlimited, and two variables in chunks."""
    path = tmp_path / "ocean.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        deep = file.createGroup("deep")
        deep.createDimension("z", None)
        deep.createDimension("x", 4)
        deep.createVariable("a", "i2", ("z", "x"), chunksizes=(1, 2), zlib=True, shuffle=False)[:] = np.ones((3, 4))
        deep.createVariable("b", "i2", ("x",), chunksizes=(2,))[:] = 1
        deep.createVariable("plain", "i2", ("x",), contiguous=True)[:] = 1
    return path


def record(translation: Translation, path: str) -> Any:
    node = translation.hierarchy.nodes[path]
    assert isinstance(node, GroupNode)
    assert node.record is not None
    return encode_record(node.record)


def test_a_file_is_recorded_group_by_group(ocean: Path) -> None:
    done = translate(ocean)
    assert record(done, "/") == {"unlimited": ["time"]}
    assert record(done, "/deep") == {
        "unlimited": ["z"],
        "variables": {"a": {"chunks": [1, 2], "filters": [[1, [4]]]}, "b": {"chunks": [2]}},
    }


def test_what_is_not_selected_is_not_recorded(ocean: Path) -> None:
    done = translate(ocean, group="deep", exclude=["a"])
    assert record(done, "/") == {"unlimited": ["z"], "variables": {"b": {"chunks": [2]}}}


def typed(ocean: Path) -> Path:
    """Return the file with attributes whose types JSON does not show, on a group and on a variable."""
    with h5py.File(ocean, "a") as file:
        file["deep"].attrs["depth"] = np.float32(1.5)
        file["deep/a"].attrs["offset"] = np.int16(3)
    return ocean


@pytest.mark.parametrize(("zarr_format", "count"), [(2, 4), (3, 3)])  # groups, and again in the root's metadata
@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
def test_xarray_hides_the_records_of_groups(ocean: Path, zarr_format: int, count: int) -> None:
    done = translate(typed(ocean), zarr_format=zarr_format)
    store = open_store(written(done))
    assert xr.open_dataset(store, engine="zarr", zarr_format=zarr_format).attrs == {}
    inner = xr.open_dataset(store, engine="zarr", zarr_format=zarr_format, group="deep")
    assert inner.attrs == {"depth": 1.5}
    assert inner.a.attrs == {"offset": 3}
    assert written(done).count(b"_nc_record") == count


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
def test_xarray_writes_what_it_reads_of_nz_to_netcdf_record_and_all(ocean: Path, tmp_path: Path) -> None:
    """NZ's own list of objects is what xarray cannot write; the record is text."""
    done = translate(typed(ocean), nz=True)
    opened = xr.open_dataset(open_store(written(done)), engine="zarr", group="deep")
    assert opened.attrs.keys() == {"depth", "conventions", "zarr_conventions", "netcdf_record"}
    for one in (opened, *opened.variables.values()):
        del one.attrs["zarr_conventions"]
    opened.to_netcdf(tmp_path / "again.nc")
    with h5py.File(tmp_path / "again.nc") as file:
        assert json.loads(file.attrs["netcdf_record"])["h5zarr"] == 1


CONTAINERS = {
    "v3": ("refs.json", {}),
    "v2": ("refs.json", {"zarr_format": 2}),
    "nz": ("refs.json", {"nz": True}),
    "v2 nz": ("refs.json", {"zarr_format": 2, "nz": True}),
    "Parquet": ("refs.parquet", {}),
    "Parquet v2": ("refs.parquet", {"zarr_format": 2}),
    "Parquet nz": ("refs.parquet", {"nz": True}),
    "Icechunk": ("icechunk", {}),
    "Icechunk nz": ("icechunk", {"nz": True}),
}


def write_to(container: str, path: Path, folder: Path) -> str:
    """Write the references of a file in a container, and return where they are."""
    name, options = CONTAINERS[container]
    if name == "icechunk":
        pytest.importorskip("icechunk")
        out = f"icechunk+file://{folder}/repository"
    else:
        pytest.importorskip("pyarrow" if "parquet" in name else "json")
        out = str(folder / name)
    translate(path, out, **options)
    return out


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_engine_shows_the_types_of_the_file_and_never_the_record(
    ocean: Path, container: str, tmp_path: Path
) -> None:
    out = write_to(container, typed(ocean), tmp_path)
    for group, names in (("/", set()), ("deep", {"depth"})):
        opened = xr.open_dataset(out, engine="h5zarr", group=group, decode_cf=False)
        assert opened.attrs.keys() - {"conventions", "zarr_conventions"} == names
        assert not {RECORD, NZ_RECORD} & {name for one in opened.variables.values() for name in one.attrs}
    assert opened.attrs["depth"].dtype == np.float32
    assert opened.a.attrs["offset"].dtype == np.int16
    assert opened.a.encoding["chunksizes"] == (1, 2)


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_restores_the_record_and_hides_it(ocean: Path, container: str, tmp_path: Path) -> None:
    with h5py.File(typed(ocean), "a") as file:
        file["deep/a"].attrs["_FillValue"] = np.float64(np.nan)
    out = write_to(container, ocean, tmp_path)
    made = translate(ocean)
    nodes = open_hierarchy(out).hierarchy.nodes
    for path, node in nodes.items():
        if isinstance(node, GroupNode):
            assert not {RECORD, NZ_RECORD} & node.attributes.keys()
            assert node.record is not None
            assert encode_record(node.record) == record(made, path)


@pytest.mark.parametrize("container", CONTAINERS)
def test_attributes_of_the_file_that_look_like_a_record_are_the_users(
    ocean: Path, container: str, tmp_path: Path
) -> None:
    of_user = json.dumps({"h5zarr": 1, "unlimited": ["x"], "variables": {"a": {"chunks": [3, 3]}}})
    with h5py.File(typed(ocean), "a") as file:
        file["deep"].attrs[RECORD] = of_user
        file["deep"].attrs[NZ_RECORD] = of_user
    out = write_to(container, ocean, tmp_path)
    with xr.open_dataset(out, engine="h5zarr", group="deep", decode_cf=False) as opened:
        assert (opened.attrs[RECORD], opened.attrs[NZ_RECORD]) == (of_user, of_user)
        assert opened.encoding["unlimited_dims"] == {"z"}
        assert opened.a.encoding["chunksizes"] == (1, 2)
        assert opened.attrs["depth"].dtype == np.float32


def test_a_conversion_keeps_the_record_and_the_users_attributes(ocean: Path, tmp_path: Path) -> None:
    with h5py.File(typed(ocean), "a") as file:
        file["deep"].attrs[NZ_RECORD] = "mine"
    translate(ocean, tmp_path / "a.json", nz=True)
    h5zarr.convert(tmp_path / "a.json", tmp_path / "b.json")
    first, second = ((tmp_path / name).read_bytes() for name in ("a.json", "b.json"))
    for path, node in decode_references(first, "a").hierarchy.nodes.items():
        if isinstance(node, GroupNode):
            again = decode_references(second, "b").hierarchy.nodes[path]
            assert isinstance(again, GroupNode)
            assert again.record is not None
            assert node.record is not None
            assert (again.attributes, encode_record(again.record)) == (node.attributes, encode_record(node.record))


@pytest.mark.parametrize("container", ["nz", "Parquet nz"])
def test_nz_has_nothing_to_say_of_the_record(ocean: Path, container: str, tmp_path: Path) -> None:
    path = typed(ocean)
    assert "_record" not in str(translate(path, nz=True).warnings)
    told = validate(write_to(container, path, tmp_path), nz=True)
    assert "_record" not in str(told.findings)
