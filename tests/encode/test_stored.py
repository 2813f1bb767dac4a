"""The record of storage: what stands in it, whose it is, and that xarray does not show it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

from h5zarr.encode.encode import STORED
from h5zarr.encode.stored import encode_stored
from h5zarr.selecting import Selection
from h5zarr.translating import Options, Translation, translate
from h5zarr.tree import AttributeNotes, StoredEnumeration, StoredForm, TreeGroup
from tests.encode.trees import encode, scalar
from tests.refs.hierarchies import open_store
from tests.roundtrip.reading import written


@dataclass
class Shuffle:
    number: int = 2
    name: str = "shuffle"
    values: tuple[int, ...] = (4,)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"chunk_shape": (2, 3)}, {"chunks": [2, 3]}),
        ({"chunk_shape": ()}, {"chunks": []}),
        ({"filters": (Shuffle(),)}, {"filters": [[2, [4]]]}),
        ({"number": ">u2"}, {"number": ">u2"}),
        ({"members": ("r", "i")}, {"members": ["r", "i"]}),
        ({"padding": " "}, {"padding": " "}),
        ({"notes": AttributeNotes(foreign=("box",))}, {"foreign": ["box"]}),
        ({"notes": AttributeNotes(padded=(("units", 5),))}, {"padded": {"units": 5}}),
        (
            {"enumeration": StoredEnumeration(name="flag", members=(("no", 0), ("yes", 1)))},
            {"enumeration": {"name": "flag", "members": {"no": 0, "yes": 1}}},
        ),
    ],
)
def test_every_fact_has_a_key(form: dict[str, Any], expected: dict[str, Any]) -> None:
    assert encode_stored(TreeGroup(), {"v": StoredForm(**form)}) == {"variables": {"v": expected}}


def test_what_is_as_usual_is_not_mentioned_but_that_much_is_known() -> None:
    assert encode_stored(TreeGroup(), {"v": StoredForm()}) == {}
    assert encode_stored(TreeGroup(), None) is None


def test_a_group_tells_what_concerns_it() -> None:
    group = TreeGroup(unlimited=("time",), notes=AttributeNotes(foreign=("box",)), is_classic=True)
    assert encode_stored(group, None) == {"classic": True, "unlimited": ["time"], "foreign": ["box"]}


def test_variables_stand_in_the_record_of_their_own_group() -> None:
    inside = replace(scalar(), stored=StoredForm(padding=" "))
    groups = {"/g": TreeGroup(), "/h": TreeGroup()}
    hierarchy, _ = encode({"/g/v": inside, "/h/v": scalar()}, groups=groups)
    assert [hierarchy.nodes[path].attributes for path in ("/", "/g", "/h")] == [
        {},
        {STORED: {"variables": {"v": {"padding": " "}}}},
        {},
    ]


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
    return translation.hierarchy.nodes[path].attributes.get(STORED)


def test_a_file_is_recorded_group_by_group(ocean: Path) -> None:
    done = translate(ocean)
    assert record(done, "/") == {"unlimited": ["time"]}
    assert record(done, "/deep") == {
        "unlimited": ["z"],
        "variables": {"a": {"chunks": [1, 2], "filters": [[1, [4]]]}, "b": {"chunks": [2]}},
    }


def test_what_is_not_selected_is_not_recorded(ocean: Path) -> None:
    done = translate(ocean, options=Options(selection=Selection(group="deep", exclude=["a"])))
    assert record(done, "/") == {"unlimited": ["z"], "variables": {"b": {"chunks": [2]}}}


@pytest.mark.parametrize(("zarr_format", "count"), [(2, 4), (3, 3)])  # groups, and again in the root's metadata
@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
def test_xarray_hides_the_records_of_groups(ocean: Path, zarr_format: int, count: int) -> None:
    with h5py.File(ocean, "a") as file:
        file["deep"].attrs["depth"] = np.float32(1.5)
        file["deep/a"].attrs["offset"] = np.int16(3)
    done = translate(ocean, options=Options(zarr_format=zarr_format))
    store = open_store(written(done))
    assert xr.open_dataset(store, engine="zarr", zarr_format=zarr_format).attrs == {}
    inner = xr.open_dataset(store, engine="zarr", zarr_format=zarr_format, group="deep")
    assert inner.attrs == {"depth": 1.5}
    assert inner.a.attrs == {"offset": 3}
    assert written(done).count(b"_nc_encoding") == count
