"""Every comparison in this folder detects faults that are planted in a scan or in references."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest

import h5zarr
from h5zarr.commands.translate.translate import translate
from h5zarr.commands.translate.translation import Translation
from h5zarr.errors import Problem
from h5zarr.hdf5.model import HardLink, SoftLink
from h5zarr.tree import AttributeNotes, StoredForm
from h5zarr.zarr_model.hierarchy import GroupRecord, VariableRecord
from h5zarr.zarr_model.record import RecordedFilter
from tests.containers.hierarchies import with_hierarchy
from tests.truth import datasets_against_netcdf, names_against_netcdf, scan_against_h5py, values_against_h5py
from tests.truth.agreement import Agreement
from tests.truth.differences import Allowed, AllowedThroughZarr, Reason
from tests.truth.netcdf_library import NetcdfLibrary
from tests.truth.xarray_view import Shown, frozen


@pytest.fixture
def ocean(tmp_path: Path) -> Path:
    """A netCDF file with coordinates, times, packed values, a group, unwritten chunks, and numbers of several types."""
    path = tmp_path / "ocean.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.title, file.version = "Ocean", np.int16(3)
        file.createDimension("time", None)
        file.createDimension("x", 3)
        time = file.createVariable("time", "f8", ("time",))
        time.units = "days since 2001-01-01"
        time[:] = [0, 1]
        file.createVariable("x", ">i4", ("x",), endian="big")[:] = [10, 20, 30]
        temp = file.createVariable("temp", "i2", ("time", "x"), fill_value=-9, zlib=True, complevel=2)
        temp.scale_factor, temp.units, temp.coordinates, temp.valid_min = 0.5, "K", "land", np.int16(0)
        temp[:] = np.ma.masked_equal([[1, 2, 3], [4, 5, 6]], 5)
        file.createVariable("land", "S1", ("x",))[:] = [b"y", b"n", b"y"]
        file.createVariable("sparse", "i4", ("time", "x"), chunksizes=(1, 3))[1] = [7, 8, 9]
        flags = file.createGroup("quality").createVariable("flag", "i1", ("time", "x"), chunksizes=(1, 3))
        flags.flag_values = np.array([0, 1, 2], "i1")
        flags[:] = 1
    return path


# --- in a scan


def changed(name: str, change: Any) -> Callable[[Any], Any]:
    """Return a function that replaces a field of an object by a function of its value."""
    return lambda owner: replace(owner, **{name: change(getattr(owner, name))})


def column(name: str, change: Any) -> Callable[[Any], Any]:
    """Return a function that changes a column of a chunk table."""
    return changed("layout", changed("chunks", changed(name, change)))


def attribute(name: str, value: Any) -> Callable[[Any], Any]:
    return changed("attributes", lambda found: {**found, name: replace(found[name], value=np.asarray(value))})


def swapped(dataset: Any) -> Any:
    """Return a dataset with its dimension scales in another order."""
    return attribute("DIMENSION_LIST", dataset.attributes["DIMENSION_LIST"].value[::-1])(dataset)


def without_row(chunks: Any) -> Any:
    return replace(
        chunks, **{name: getattr(chunks, name)[1:] for name in ("index", "address", "nbytes", "filter_mask")}
    )


SCAN_FAULTS = {
    "value": ("/x", changed("layout", changed("address", lambda address: address + 4)), "/x: "),
    "type": ("/x", changed("datatype", changed("nbytes", lambda _: 2)), "/x: "),
    "byte order": (
        "/x",
        changed("datatype", changed("order", lambda order: type(order).LITTLE)),
        "/x: type int32 is >i4",
    ),
    "shape": ("/x", changed("dataspace", changed("shape", lambda _: (2,))), "/x: shape (2,) is (3,)"),
    "largest shape": (
        "/time",
        changed("dataspace", changed("max_shape", lambda _: (2,))),
        "/time: largest shape (2,) is",
    ),
    "text": ("/temp", attribute("units", b"C"), "/temp@units: "),
    "number": ("/", attribute("version", np.int16([4])), "/@version: 1 of 1 values differ"),
    "type of an attribute": ("/", attribute("version", np.int32([3])), "/@version: int32 (1,) is int16 (1,)"),
    "missing attribute": ("/temp", changed("attributes", lambda _: {}), "/temp: attributes [] is"),
    "fill value": ("/sparse", changed("fill", changed("element", lambda _: bytes(4))), "/sparse: 3 of 6 values differ"),
    "chunk address": ("/temp", column("address", lambda address: address + 1), "/temp: chunk (0, 0) has other bytes"),
    "chunk size": ("/temp", column("nbytes", lambda nbytes: nbytes - 1), "/temp: chunk (0, 0) has other bytes"),
    "filter mask": ("/temp", column("filter_mask", lambda mask: mask + 1), "/temp: chunk (0, 0) has mask 1, h5py 0"),
    "chunk index": ("/sparse", column("index", lambda index: index - [1, 0]), "/sparse: chunk (0, 0) is not in h5py"),
    "missing chunk": (
        "/sparse",
        changed("layout", changed("chunks", without_row)),
        "/sparse: chunk (1, 0) is stored, but",
    ),
    "chunk shape": (
        "/sparse",
        changed("layout", changed("chunk_shape", lambda _: (2, 3))),
        "/sparse: chunk shape (2, 3)",
    ),
    "filters": ("/temp", changed("filters", lambda _: ()), "/temp: filters [] is [(2, (2,)), (1, (2,))]"),
    "link": ("/", changed("links", lambda links: {**links, "no": HardLink("no", 0)}), "/: links ['land', 'no',"),
    "target of a link": ("/", changed("links", lambda links: {**links, "x": SoftLink("x", "/y")}), "/x: link "),
    "dimensions": ("/sparse", swapped, "/sparse@DIMENSION_LIST: references to"),
    "reference count": ("/x", changed("notes", changed("reference_count", lambda _: 2)), "/x: reference count 2 is 1"),
}


@pytest.mark.parametrize("fault", SCAN_FAULTS)
def test_the_comparison_of_a_scan_detects(fault: str, ocean: Path) -> None:
    path, change, message = SCAN_FAULTS[fault]
    file = h5zarr.scan(str(ocean))
    addresses = {place: address for address, place in file.paths.items()}
    found = change(file.objects[addresses[path]])
    faulty = replace(file, objects={**file.objects, found.address: found})
    differences = scan_against_h5py.compare(ocean, faulty).differences
    assert any(one.startswith(message) for one in differences), differences


def test_a_scan_without_a_fault_agrees_with_h5py(ocean: Path) -> None:
    found = scan_against_h5py.compare(ocean)
    assert not found.differences
    assert (found.identical, found.counts["values"], found.counts["chunks"]) == (6, 6, 6)


# --- in references, compared with h5py


def planted(ocean: Path, path: str, **changes: Any) -> Translation:
    """Return references without inlined chunks, with a changed node. Changes may be functions of the old value."""
    translation = translate(ocean, inline_bytes=0)
    node = translation.hierarchy.nodes[path]
    made = {name: change(getattr(node, name)) if callable(change) else change for name, change in changes.items()}
    nodes = {**translation.hierarchy.nodes, path: replace(node, **made)}
    return with_hierarchy(translation, replace(translation.hierarchy, nodes=nodes))


def moved(manifest: Any) -> Any:
    return replace(manifest, address=manifest.address + 1)


def inlined(content: bytes) -> Callable[[Any], Any]:
    """Return a function that replaces all chunks by an inlined first one."""

    def change(manifest: Any) -> Any:
        rank = manifest.index.shape[1]
        nothing = {"index": manifest.index[:0], "address": manifest.address[:0], "nbytes": manifest.nbytes[:0]}
        return replace(manifest, **nothing, inline={(0,) * rank: content})

    return change


LONGER = {"grid": lambda grid: replace(grid, shape=(3, 3)), "fill_value": 5}
VALUE_FAULTS = {
    "value": ("/x", {"manifest": inlined(np.array([10, 20, 31], ">i4").tobytes())}, "/x: 1 of 3 values differ"),
    "type": ("/temp", {"data_type": "uint16", "fill_value": 0}, "/temp: uint16 (2, 3) is int16 (2, 3)"),
    "fill value": ("/sparse", {"fill_value": 0}, "/sparse: 3 of 6 values differ"),
    "chunk address": ("/x", {"manifest": moved}, "/x: "),
    "damaged chunk": ("/temp", {"manifest": moved}, "/temp: "),
    "shape": ("/x", {"grid": lambda grid: replace(grid, shape=(4,))}, "/x: shape (4,) is (3,)"),
    "beyond the end": ("/quality/flag", LONGER, "/quality/flag: beyond the end it reads 5, not -127"),
}


@pytest.mark.parametrize("fault", VALUE_FAULTS)
def test_the_comparison_of_values_detects(fault: str, ocean: Path) -> None:
    path, changes, message = VALUE_FAULTS[fault]
    with h5py.File(ocean) as file:
        found = values_against_h5py.compare_translation(file, planted(ocean, path, **changes))
    assert len(found.differences) == 1
    assert found.differences[0].startswith(message)


def without_temp(ocean: Path, *problems: Problem) -> list[str]:
    translation = translate(ocean)
    nodes = {path: node for path, node in translation.hierarchy.nodes.items() if path != "/temp"}
    shown = with_hierarchy(translation, replace(translation.hierarchy, nodes=nodes, problems=problems))
    with h5py.File(ocean) as file:
        return values_against_h5py.compare_translation(file, shown).differences


def test_the_comparison_of_values_accepts_only_known_reasons(ocean: Path) -> None:
    assert without_temp(ocean) == ["/temp: is missing: "]
    assert without_temp(ocean, Problem("/temp", "unsupported", "because")) == ["/temp: is missing: because"]
    assert not without_temp(ocean, Problem("/temp", "unsupported", "Zarr readers treat the name as a part of the path"))


def test_references_without_a_fault_agree_with_h5py(ocean: Path) -> None:
    found = values_against_h5py.compare(ocean, {"inline_bytes": 0})
    assert not found.differences
    assert found.identical == 6


# --- in references, compared with the netCDF engine and with h5netcdf


@pytest.fixture(scope="module")
def library() -> Iterator[NetcdfLibrary]:
    started = NetcdfLibrary()
    yield started
    started.close()


Compare = Callable[[Path, Translation], Agreement]


@pytest.fixture(params=["engine", "zarr", "h5netcdf"])
def compare(request: pytest.FixtureRequest, library: NetcdfLibrary) -> Compare:
    if request.param == "h5netcdf":
        return datasets_against_netcdf.compare_with_h5netcdf
    through = {"engine": datasets_against_netcdf.compare, "zarr": datasets_against_netcdf.compare_through_zarr}

    def compare(path: Path, translation: Translation) -> Agreement:
        shown = library.datasets(path)
        assert not isinstance(shown, str)
        return through[request.param](path, translation, shown)

    return compare


def check_detected(found: Agreement, message: str) -> None:
    assert any(one.startswith(message) for one in found.differences), found.differences


@pytest.mark.parametrize("fault", ["value", "type", "fill value", "chunk address", "damaged chunk"])
def test_every_comparison_of_datasets_detects(fault: str, ocean: Path, compare: Compare) -> None:
    path, changes, _ = VALUE_FAULTS[fault]
    check_detected(compare(ocean, planted(ocean, path, **changes)), f"{path}: ")


def test_every_comparison_of_datasets_detects_another_dimension_name(ocean: Path, compare: Compare) -> None:
    found = compare(ocean, planted(ocean, "/sparse", dimension_names=("time", "y")))
    check_detected(found, "/sparse: dimensions (('time', 'y'), (2, 3)) is (('time', 'x'), (2, 3))")


def test_references_without_a_fault_agree_in_every_comparison(ocean: Path, compare: Compare) -> None:
    found = compare(ocean, translate(ocean, inline_bytes=0))
    assert not found.differences
    assert {reason for _, reason in found.allowed} <= {Reason.TEXT_TYPE}
    assert len(found.compared) in (6, 5)  # h5netcdf: only numbers


def attributes(**changes: Any) -> Callable[[Any], Any]:
    return lambda found: {name: value for name, value in {**found, **changes}.items() if value is not None}


ATTRIBUTE_FAULTS = {
    "number": ("/", attributes(version=4), "/@version: "),
    "text": ("/temp", attributes(units="C"), "/temp@units: "),
    "missing attribute": ("/temp", attributes(units=None), "/temp@units: is missing"),
    "extra attribute": ("/temp", attributes(more=1), "/temp@more: is not in the netCDF engine's"),
    "_FillValue": ("/temp", attributes(_FillValue=-8), "/temp@_FillValue: "),
    "coordinates": ("/temp", attributes(coordinates=""), "/: coordinates "),
    "number of a variable": ("/temp", attributes(valid_min=1), "/temp@valid_min: "),
}


@pytest.mark.parametrize("fault", ATTRIBUTE_FAULTS)
@pytest.mark.parametrize("compare", ["engine", "zarr"], indirect=True)
def test_both_comparisons_with_netcdf_detect(fault: str, ocean: Path, compare: Compare) -> None:
    path, change, message = ATTRIBUTE_FAULTS[fault]
    check_detected(compare(ocean, planted(ocean, path, attributes=change)), message)


DEFLATED = StoredForm(filters=(RecordedFilter(number=1, values=(3,)),))
FOREIGN = StoredForm(notes=AttributeNotes(foreign=("units",)))
RECORD_FAULTS = [
    (GroupRecord(), "/@version"),
    (GroupRecord(types={"version": "int16"}), "/temp@valid_min"),
    (GroupRecord(), "/: unlimited"),
    (GroupRecord(unlimited=("time",)), "/temp@@chunksizes"),
    (GroupRecord(unlimited=("time",)), "/temp@@zlib"),
    (GroupRecord(variables={"temp": VariableRecord(form=DEFLATED)}), "/temp@@complevel"),
    (GroupRecord(variables={"x": VariableRecord(form=StoredForm(number="<i4"))}), "/x@@dtype"),
    (GroupRecord(variables={"temp": VariableRecord(form=FOREIGN)}), "/temp@units: is missing"),
]


@pytest.mark.parametrize(("record", "message"), RECORD_FAULTS)
@pytest.mark.parametrize("compare", ["engine"], indirect=True)
def test_the_comparison_of_the_engine_detects_another_record(
    record: GroupRecord, message: str, ocean: Path, compare: Compare
) -> None:
    check_detected(compare(ocean, planted(ocean, "/", record=record)), message)


def test_the_comparison_of_names_detects(ocean: Path, library: NetcdfLibrary) -> None:
    naming = names_against_netcdf.named(ocean)
    assert not names_against_netcdf.compare(ocean, library, naming).differences
    root = naming.groups[0]
    for change, message in (
        (changed("dimensions", lambda found: found[:1]), "/: dimensions ['time'] is ['time', 'x']"),
        (changed("variables", lambda found: found[1:]), "/time: is missing"),
        (changed("variables", lambda found: found[::-1]), "/: order "),
        (changed("attributes", lambda found: {}), "/: attributes [] is ['title', 'version']"),
    ):
        faulty = replace(naming, groups=(change(root), *naming.groups[1:]))
        check_detected(names_against_netcdf.compare(ocean, library, faulty), message)


# --- what is allowed, and no more


@pytest.fixture(params=[Allowed, AllowedThroughZarr])
def allowed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Allowed]:
    path = tmp_path / "allowed.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("deflated", data=np.arange(4), compression="gzip", shuffle=True)
        file.create_dataset("lzf", data=np.arange(4), compression="lzf")
        for name, kind in {"single": np.float32, "double": np.float64}.items():
            file.create_dataset(name, data=np.arange(4)).attrs["scale_factor"] = kind(0.1)
    with h5py.File(path) as file:
        yield request.param(path, translate(path), file)


def test_netcdf_may_fail_only_if_it_lacks_a_filter(allowed: Allowed) -> None:
    filtered = "RuntimeError: NetCDF: Filter error"
    assert allowed.unreadable("/lzf", filtered) is Reason.LACKING_FILTER
    assert allowed.unreadable("/deflated", filtered) is None
    assert allowed.unreadable("/lzf", "UnicodeDecodeError: invalid byte") is None


def test_values_are_rounded_only_if_the_file_packs_them_with_float32(allowed: Allowed) -> None:
    ours, theirs = (
        Shown(
            (),
            (4,),
            frozen(np.dtype(kind)),
            np.arange(4, dtype=kind) / kind(10),
            {},
            {"scale_factor": ("float32", 0.1)},
        )
        for kind in (np.float64, np.float32)
    )
    expected = Reason.FLOAT32_SCALE if isinstance(allowed, AllowedThroughZarr) else None
    assert allowed.variable("/single", ours, theirs) is expected
    assert allowed.variable("/double", ours, theirs) is None


THROUGH = [datasets_against_netcdf.compare, datasets_against_netcdf.compare_through_zarr]


@pytest.mark.parametrize("compare_datasets", THROUGH)
def test_a_failure_of_h5zarr_is_reported_even_if_netcdf_fails_too(
    compare_datasets: Any, ocean: Path, library: NetcdfLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Allowed, "unreadable", lambda *_: Reason.LACKING_FILTER)
    shown: Any = library.datasets(ocean)
    for view in shown["/"].values():
        view.variables["temp"].values = "RuntimeError: NetCDF: Filter error"
    assert not compare_datasets(ocean, translate(ocean), shown).differences
    check_detected(compare_datasets(ocean, planted(ocean, "/temp", manifest=moved), shown), "/temp: cannot be read: ")


@pytest.mark.parametrize("compare_datasets", THROUGH)
def test_joined_characters_are_compared(compare_datasets: Any, tmp_path: Path, library: NetcdfLibrary) -> None:
    with netCDF4.Dataset(tmp_path / "names.nc", "w") as file:
        file.createDimension("station", 2)
        file.createDimension("letter", 3)
        file.createVariable("name", "S1", ("station", "letter"))[:] = np.array([list("abc"), list("def")], "S1")
        file.createGroup("numbers").createVariable("number", "i2")[:] = 1
    shown: Any = library.datasets(tmp_path / "names.nc")
    assert [list(shown[group]) for group in ("/", "/numbers")] == [["raw", "decoded", "joined"], ["raw", "decoded"]]
    translation = translate(tmp_path / "names.nc")
    assert not compare_datasets(tmp_path / "names.nc", translation, shown).differences
    shown["/"]["joined"].variables["name"].values[1] = b"dex"
    check_detected(compare_datasets(tmp_path / "names.nc", translation, shown), "/name: ")
