"""The parser for VirtualiZarr: what it gives opens there, and has the values that h5py and the netCDF library read."""

from __future__ import annotations

import json
import pickle
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import fsspec  # type: ignore[import-untyped, unused-ignore]
import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr

import h5zarr
from h5zarr.commands.translate.translate import run_translation
from h5zarr.commands.translate.translation import ProblemsFound
from h5zarr.errors import Problem, ProblemWarning, SourceError
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from tests.collections_of_files import SAMPLES, classic_samples, parameters, sample_files
from tests.containers.hierarchies import with_hierarchy
from tests.made_files import make_ocean
from tests.servers import RangeServer
from tests.truth.values_against_h5py import compare_translation

virtualizarr = pytest.importorskip("virtualizarr")
from obspec_utils.registry import ObjectStoreRegistry  # noqa: E402
from obstore.store import HTTPStore, LocalStore, MemoryStore  # noqa: E402
from virtualizarr.manifests import ManifestArray  # noqa: E402

from h5zarr.virtualizarr import _INLINED, NotVirtual, Parser, _manifest_arrays  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3"),
    pytest.mark.filterwarnings("ignore:The data type .* does not have a Zarr V3 spec"),
]

LOCAL = ObjectStoreRegistry({"file://": LocalStore()})
MOST_CHUNKS = 100  # that are read one by one through VirtualiZarr's store, in each sample


def parse(path: Path, parser: Parser | None = None) -> tuple[Any, dict[str, str]]:
    """Return the store of a file, and what was warned of, by path."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        store = (parser or Parser())(f"file://{path}", LOCAL)
    texts = [str(one.message).split(": ", 1) for one in caught if one.category is ProblemWarning]
    return store, dict(reversed(texts))  # of several the first, which is why something is left out


def attributes_in(group: Any) -> list[dict[str, Any]]:
    """Return the attributes of a group and of those below it."""
    inside = [attributes for inner in group.groups.values() for attributes in attributes_in(inner)]
    return [group.metadata.attributes, *inside]


def arrays_in(group: Any, path: str = "") -> dict[str, Any]:
    """Return all arrays in a group and those below it, by path."""
    found = {f"{path}/{name}": array for name, array in group.arrays.items()}
    for name, inner in group.groups.items():
        found |= arrays_in(inner, f"{path}/{name}")
    return found


def opened(store: Any, **options: Any) -> xr.Dataset:
    """Return what xarray reads from a store of VirtualiZarr, loaded."""
    with xr.open_zarr(store, consolidated=False, zarr_format=3, chunks=None, **options) as dataset:
        return dataset.load()


# --- every sample


@pytest.mark.parametrize("path", parameters([*sample_files(), *classic_samples()], SAMPLES))
def test_samples_have_the_metadata_and_chunks_of_their_translation(path: Path) -> None:
    translation = run_translation(Location.parse(path), None, Parser().options, Access())
    store, warned = parse(path)
    found = arrays_in(store._group)
    for name, node in translation.arrays().items():
        if name not in found:
            assert node.manifest.inline
            assert "cannot inline them" in warned[name]
            continue
        array = found[name]
        assert (array.shape, array.metadata.chunk_grid.chunk_shape) == (node.shape, node.chunk_shape)
        assert array.metadata.dimension_names == node.dimension_names
        assert json.dumps(array.metadata.attributes) == json.dumps(node.attributes)  # NaN is not itself
        assert [codec.to_dict()["name"] for codec in array.metadata.codecs] == [codec["name"] for codec in node.codecs]
        assert entries_of(array.manifest) == entries_of_node(node, translation.hierarchy.urls)


def entries_of(manifest: Any) -> dict[tuple[int, ...], Any]:
    held = getattr(manifest, "_inlined", {})
    paths, addresses, sizes = manifest._paths, manifest._offsets, manifest._lengths
    written = [index for index in np.ndindex(paths.shape) if paths[index]]
    return {index: held.get(index) or (paths[index], int(addresses[index]), int(sizes[index])) for index in written}


def entries_of_node(node: Any, urls: tuple[str, ...]) -> dict[tuple[int, ...], Any]:
    manifest = node.manifest
    grid = [-(-extent // chunk) for extent, chunk in zip(node.shape, node.chunk_shape, strict=True)]
    source = np.broadcast_to(manifest.source, manifest.count)
    rows = zip(manifest.index.tolist(), source, manifest.address.tolist(), manifest.nbytes.tolist(), strict=True)
    found = {tuple(index): (f"file://{urls[number]}", *place) for index, number, *place in rows}
    found = {index: entry for index, entry in found.items() if np.less(index, grid).all()}
    return found | manifest.inline


@pytest.mark.parametrize("path", parameters(sample_files(), SAMPLES))
def test_samples_have_the_values_that_h5py_reads(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)  # libhdf5 looks for raw files from here
    translation = run_translation(Location.parse(path), None, Parser().options, Access())
    if sum(node.manifest.count for node in translation.arrays().values()) > MOST_CHUNKS:
        pytest.skip("it has many chunks, whose places are compared instead")
    store, warned = parse(path)
    found = arrays_in(store._group)
    nodes = {name: node for name, node in translation.hierarchy.nodes.items() if name in found}
    problems = tuple(Problem(name, "", text) for name, text in warned.items())
    shown = with_hierarchy(translation, replace(translation.hierarchy, nodes=nodes, problems=problems, warnings=()))
    with h5py.File(path) as file:
        found = compare_translation(file, shown, zarr.open_group(store, mode="r", zarr_format=3))
    # A NaN that is not the usual one is still a NaN, but zarr does not keep which.
    assert [one for one in found.differences if "nan_with_payload" not in one] == []


# --- in VirtualiZarr


def test_a_file_opens_with_its_coordinates_loaded_and_the_rest_virtual() -> None:
    path = SAMPLES / "ocean.nc"
    virtual = virtualizarr.open_virtual_dataset(str(path), registry=LOCAL, parser=Parser())
    with xr.open_dataset(path, engine="netcdf4") as expected:
        for name in ("time", "lat", "lon"):
            xr.testing.assert_identical(virtual[name].variable, expected[name].variable)
        assert virtual.attrs == expected.attrs
    assert all(isinstance(virtual[name].data, ManifestArray) for name in ("sst", "u", "v"))


def test_xarray_reads_the_store_as_its_netcdf_engine_reads_the_file() -> None:
    path = SAMPLES / "ocean.nc"
    store, warned = parse(path)
    assert not warned
    with xr.open_dataset(path, engine="netcdf4") as expected:
        np.testing.assert_allclose(opened(store).sst, expected.sst, rtol=1e-6)
    raw = {"mask_and_scale": False, "decode_times": False}
    with xr.open_dataset(path, engine="netcdf4", **raw) as expected:
        xr.testing.assert_equal(opened(store, **raw), expected.load())


def test_groups_open_as_a_tree(tmp_path: Path) -> None:
    path = tmp_path / "groups.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createVariable("x", "f8", ("x",))[:] = [1, 2, 3]
        file.createVariable("a/deep/v", "i4", ("x",))[:] = [4, 5, 6]
        file["a"].note = "inner"
    tree = virtualizarr.open_virtual_datatree(str(path), registry=LOCAL, parser=Parser())
    assert tree.groups == ("/", "/a", "/a/deep")
    assert tree["a"].attrs == {"note": "inner"}
    assert isinstance(tree["a/deep/v"].data, ManifestArray)
    assert opened(Parser(group="a/deep")(f"file://{path}", LOCAL)).v.values.tolist() == [4, 5, 6]


@pytest.fixture
def months(tmp_path: Path) -> list[Path]:
    """Three files of different length, with packed values and with a step that was never written."""
    paths = []
    for number, count in enumerate((3, 3, 2)):
        paths.append(tmp_path / f"{number}.nc")
        with netCDF4.Dataset(paths[-1], "w") as file:
            file.createDimension("time", None)
            file.createDimension("x", 4)
            time = file.createVariable("time", "f8", ("time",), zlib=True)
            time.units = "days since 2001-01-01"
            time[:] = 3 * number + np.arange(count)
            file.createVariable("x", "f4", ("x",))[:] = np.arange(4)
            options: dict[str, Any] = {"zlib": True, "shuffle": True, "chunksizes": (1, 4)}
            temp = file.createVariable("temp", "i2", ("time", "x"), fill_value=-9, **options)
            temp.scale_factor = 0.5
            for step in range(count):
                if (number, step) != (1, 1):
                    temp[step] = np.ma.masked_equal([number, step, -5, 7], -5)
    return paths


def test_files_are_joined_by_their_coordinates(months: list[Path]) -> None:
    urls = [str(path) for path in months[::-1]]
    joined = virtualizarr.open_virtual_mfdataset(urls, registry=LOCAL, parser=Parser())
    assert isinstance(joined.temp.data, ManifestArray)
    assert joined.temp.data.manifest.shape_chunk_grid == (8, 1)
    references = joined.vz.to_kerchunk(format="dict")
    datasets = [xr.open_dataset(path, engine="netcdf4").load() for path in months]
    expected = xr.concat(datasets, "time")
    with xr.open_dataset(references, engine="kerchunk") as found:
        np.testing.assert_array_equal(found.temp, expected.temp)
        np.testing.assert_array_equal(found.time, expected.time)
    assert np.isnan(expected.temp[4]).all()


def test_references_that_virtualizarr_writes_have_the_values_of_the_file(months: list[Path], tmp_path: Path) -> None:
    with h5py.File(tmp_path / "more.h5", "w") as file:
        file["zero"] = np.float64(0)
        file["texts"] = np.array(["a", "b"], h5py.string_dtype())
        file.create_dataset("unwritten", (4,), "i4", chunks=(2,), fillvalue=5)[:2] = 0
    virtual = virtualizarr.open_virtual_dataset(str(tmp_path / "more.h5"), registry=LOCAL, parser=quiet_parser())
    if _INLINED is None:
        pytest.skip("this version of VirtualiZarr writes Zarr version 2 alone, where zero is masked")
    references = virtual.vz.to_kerchunk(format="dict", zarr_format=3)
    options = {"engine": "zarr", "consolidated": False, "storage_options": {"fo": references}}
    with xr.open_dataset("reference://", **options) as found:
        assert found.zero.item() == 0
        assert found.texts.values.tolist() == ["a", "b"]
        assert found.unwritten.values.tolist() == [0, 0, 5, 5]


def quiet_parser() -> Any:
    """Return a parser that warns of nothing."""

    def parser(url: str, registry: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ProblemWarning)
            return Parser()(url, registry)

    return parser


# --- what is inlined


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A file whose coordinate, and one variable, are text of variable length, which cannot be referred to."""
    path = tmp_path / "texts.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("station", 2)
        for name in ("station", "owner"):
            file.createVariable(name, str, ("station",))[:] = np.array([f"{name} 1", f"{name} 2"], object)
        file.createVariable("height", "f8", ("station",))[:] = [1, 2]
    return path


def test_text_that_is_a_coordinate_is_always_there(texts: Path) -> None:
    virtual = virtualizarr.open_virtual_dataset(str(texts), registry=LOCAL, parser=quiet_parser())
    assert virtual.station.values.tolist() == ["station 1", "station 2"]
    assert list(virtual.indexes) == ["station"]


@pytest.mark.skipif(_INLINED is None, reason="this version of VirtualiZarr holds no bytes")
def test_other_text_is_held_by_the_manifest(texts: Path) -> None:
    store, warned = parse(texts)
    assert not warned
    assert opened(store).owner.values.tolist() == ["owner 1", "owner 2"]


@pytest.mark.skipif(_INLINED is not None, reason="this version of VirtualiZarr holds bytes")
def test_other_text_is_left_out_with_a_warning(texts: Path) -> None:
    store, warned = parse(texts)
    assert warned.keys() == {"/owner"}
    assert "cannot inline them" in warned["/owner"]
    assert set(opened(store)) == {"height"}


@pytest.fixture
def compact(tmp_path: Path) -> Path:
    """A file whose coordinate is stored in the metadata and cannot be referenced."""
    path = tmp_path / "compact.h5"
    with h5py.File(path, "w") as file:
        layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        layout.set_layout(h5py.h5d.COMPACT)
        h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((2,)), layout)
        file["x"][:] = [7, 8]
        file["x"].make_scale("x")
    return path


def test_a_coordinate_among_the_metadata_is_loaded(compact: Path) -> None:
    virtual = virtualizarr.open_virtual_dataset(str(compact), registry=LOCAL, parser=Parser())
    assert virtual.x.values.tolist() == [7, 8]


@pytest.mark.skipif(_INLINED is not None, reason="this version of VirtualiZarr holds bytes")
def test_a_coordinate_that_nobody_loads_cannot_be_written_wrongly(compact: Path) -> None:
    virtual = virtualizarr.open_virtual_dataset(str(compact), registry=LOCAL, parser=Parser(), loadable_variables=[])
    references = virtual.vz.to_kerchunk(format="dict")
    with pytest.raises(ValueError, match="Protocol not known: h5zarr-inline"):
        xr.open_dataset(references, engine="kerchunk")


@pytest.mark.skipif(_INLINED is None, reason="this version of VirtualiZarr holds no bytes")
def test_a_coordinate_of_many_chunks_is_loaded_without_reading_them(tmp_path: Path) -> None:
    path = tmp_path / "steps.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("time", data=np.arange(100.0), chunks=(1,)).make_scale("time")
    store = MemoryStore()
    store.put("steps.h5", path.read_bytes())
    registry = ObjectStoreRegistry({"s3://bucket": store})
    parsed = Parser()("s3://bucket/steps.h5", registry)
    store.delete("steps.h5")
    assert opened(parsed).time.values.tolist() == list(range(100))


# --- where files are read from


@pytest.fixture
def linked(tmp_path: Path) -> dict[str, bytes]:
    """A file whose variable is in another one."""
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["v"] = np.arange(2000.0)
    with h5py.File(tmp_path / "main.h5", "w") as file:
        file["v"] = h5py.ExternalLink("other.h5", "v")
    contents = {name: (tmp_path / name).read_bytes() for name in ("main.h5", "other.h5")}
    for name in contents:
        (tmp_path / name).unlink()
    return contents


def test_files_are_read_through_the_store_of_the_registry(linked: dict[str, bytes]) -> None:
    store = MemoryStore()
    for name, content in linked.items():
        store.put(f"data/{name}", content)
    registry = ObjectStoreRegistry({"s3://bucket": store})
    parsed = Parser()("s3://bucket/data/main.h5", registry)
    assert opened(parsed).v.values.tolist() == list(range(2000))
    assert parsed._group["v"].manifest.dict()["0"]["path"] == "s3://bucket/data/other.h5"


def test_little_is_asked_of_a_server() -> None:
    content = (SAMPLES / "ocean.nc").read_bytes()
    with RangeServer({"/data/ocean.nc": content}) as server:
        store = HTTPStore.from_url(server.url(""), client_options={"allow_http": True})
        registry = ObjectStoreRegistry({server.url(""): store})
        parsed = Parser()(server.url("/data/ocean.nc"), registry)
        assert (server.counts.heads, len(server.counts.gets)) == (1, 1)
        assert opened(parsed).lat.values[0] == -58.5


def test_with_storage_options_files_are_read_through_fsspec(linked: dict[str, bytes]) -> None:
    filesystem = fsspec.filesystem("memory")
    for name, content in linked.items():
        filesystem.pipe_file(f"/data/{name}", content)
    parsed = Parser(storage_options={})("memory://data/main.h5", ObjectStoreRegistry())
    assert parsed._group["v"].manifest.dict()["0"]["path"] == "memory://data/other.h5"
    filesystem.store.clear()


def test_a_file_that_is_not_there_is_a_source_error(tmp_path: Path) -> None:
    registry = ObjectStoreRegistry({"s3://bucket": MemoryStore(), "file://": LocalStore()})
    for url in ("s3://bucket/missing.h5", f"file://{tmp_path}/missing.h5"):
        with pytest.raises(SourceError, match="no such file"):
            Parser()(url, registry)


@pytest.mark.parametrize("name", ["two words.h5", "per%20cent.h5", "naïve.h5"])
@pytest.mark.parametrize("scheme", ["file://", ""])
def test_odd_file_names_are_harmless(tmp_path: Path, name: str, scheme: str) -> None:
    with h5py.File(tmp_path / name, "w") as file:
        file["v"] = np.arange(2000.0)
    url = f"{scheme}{tmp_path / name}"
    virtual = virtualizarr.open_virtual_dataset(url, registry=LOCAL, parser=Parser(), loadable_variables=["v"])
    assert virtual.v.values.tolist() == list(range(2000))
    virtual = virtualizarr.open_virtual_dataset(url, registry=LOCAL, parser=Parser())
    assert virtual.vz.to_kerchunk(format="dict")["refs"]["v/0"][0] == str(tmp_path / name)


def test_names_that_virtualizarr_would_cut_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a#b.h5", "w") as file:
        file["v"] = 1
    with pytest.raises(NotVirtual, match=r"cannot read a file with \? or #"):
        Parser()(str(tmp_path / "a#b.h5"), LOCAL)


@pytest.mark.parametrize("name", ["two words.h5", "50%.h5", "naïve.h5", "{{x}}.h5", "a+b&c=@d.h5"])
def test_odd_names_on_a_web_server_are_harmless(tmp_path: Path, name: str) -> None:
    """A URL may be escaped, or not; VirtualiZarr itself knows only those that are not."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["v"] = np.arange(2000.0)
    with RangeServer({f"/d/{name}": (tmp_path / "x.h5").read_bytes()}) as server:
        root = server.url("")
        registry = ObjectStoreRegistry({root: HTTPStore.from_url(root, client_options={"allow_http": True})})
        for url in (server.url(f"/d/{quote(name)}"), server.url(f"/d/{name}")):
            virtual = virtualizarr.open_virtual_dataset(
                url, registry=registry, parser=Parser(), loadable_variables=["v"]
            )
            assert virtual.v.values.tolist() == list(range(2000))


@pytest.mark.parametrize("name", ["a%2520b.h5", "a%23b.h5", "a%3Fb.h5", "a%3Bb.h5", "a.h5?version=2", "a.h5#b"])
def test_urls_that_virtualizarr_takes_for_others_are_refused(name: str) -> None:
    registry = ObjectStoreRegistry({"https://host": MemoryStore()})
    with pytest.raises(SourceError, match=r"cannot read a file|percent sign|#") as caught:
        Parser()(f"https://host/{name}", registry)
    assert caught.value.remedy


def test_manifests_contain_the_target_url(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["v"] = np.arange(2000.0)
    parser = Parser()
    parser.options = replace(parser.options, target_url="s3://bucket/x.h5")
    store, _ = parse(tmp_path / "x.h5", parser)
    assert store._group["v"].manifest.dict()["0"]["path"] == "s3://bucket/x.h5"


# --- parameters


def test_untranslatable_variables_cause_a_warning_or_an_error(tmp_path: Path) -> None:
    path = make_ocean(tmp_path / "ocean.h5")
    store, warned = parse(path)
    assert warned.keys() == {"/ragged", "/grid/temp"}
    assert arrays_in(store._group).keys() == {"/time", "/grid/temp"}
    with pytest.raises(ProblemsFound, match="1 problem found with strict=True"):
        parse(path, Parser(strict=True))


def test_the_warning_points_to_the_caller(tmp_path: Path) -> None:
    path = make_ocean(tmp_path / "ocean.h5")
    with pytest.warns(ProblemWarning) as caught:
        virtualizarr.open_virtual_dataset(str(path), registry=LOCAL, parser=Parser())
    assert {one.filename for one in caught if one.category is ProblemWarning} == {__file__}


def test_variables_are_dropped_by_name_and_not_by_pattern(tmp_path: Path) -> None:
    path = tmp_path / "names.h5"
    with h5py.File(path, "w") as file:
        for name in ("a", "*", "[a]", "b/a", "c/d"):
            file[name] = np.arange(2000.0)
    assert arrays_in(parse(path, Parser(drop_variables=["*", "c"]))[0]._group).keys() == {"/a", "/[a]", "/b/a"}
    assert arrays_in(parse(path, Parser("b"))[0]._group).keys() == {"/a"}
    assert arrays_in(parse(path, Parser(include=["d"]))[0]._group).keys() == {"/c/d"}


def test_options_are_those_of_a_translation() -> None:
    path = SAMPLES / "ocean.nc"
    store, _ = parse(path, Parser(inline_bytes=0))
    assert store._group["lat"].manifest.dict()["0"]["path"] == f"file://{path}"


def test_an_array_of_too_many_places_is_left_out(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "sparse.h5", "w") as file:
        file.create_dataset("sparse", (1 << 40,), "i1", chunks=(1,))
        file["v"] = np.arange(2000.0)
    store, warned = parse(tmp_path / "sparse.h5")
    assert "1099511627776 chunks" in warned["/sparse"]
    assert arrays_in(store._group).keys() == {"/v"}


def test_a_parser_can_be_sent_to_another_process() -> None:
    parser = pickle.loads(pickle.dumps(Parser("group", ["a"], {}, strict=True)))
    assert parser.is_fsspec
    assert (parser.options.selection.group, parser.options.selection.exclude) == ("group", ("/a",))
    assert parser.options.strict


def test_it_is_a_parser_for_virtualizarr() -> None:
    from virtualizarr.parsers.typing import Parser as Protocol

    assert isinstance(Parser(), Protocol)


# --- the record of what Zarr cannot express


@pytest.mark.parametrize("inline_bytes", [None, 0])
def test_the_record_of_a_group_is_never_shown(inline_bytes: int | None, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "typed.h5", "w") as file:
        file.attrs["level"] = file.create_group("g").attrs["level"] = np.int16(3)
        file["g/v"] = np.arange(4)
        file["g/v"].attrs["scale"] = np.float32(0.5)
    store, _ = parse(tmp_path / "typed.h5", Parser(inline_bytes=inline_bytes))
    for attributes in attributes_in(store._group):
        assert attributes.keys() == {"level"}
    with virtualizarr.open_virtual_dataset(
        f"file://{tmp_path}/typed.h5", registry=LOCAL, parser=Parser(group="g", inline_bytes=inline_bytes)
    ) as virtual:
        assert virtual.attrs.keys() == {"level"}


def test_an_attribute_of_the_file_that_has_the_name_of_the_record_is_shown(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "typed.h5", "w") as file:
        file.attrs["_nc_record"], file.attrs["netcdf_record"] = "mine", '{"h5zarr": 1}'
        file["v"] = np.arange(4)
    store, _ = parse(tmp_path / "typed.h5")
    (attributes,) = attributes_in(store._group)
    assert attributes == {"_nc_record": "mine", "netcdf_record": '{"h5zarr": 1}'}


def test_an_array_that_virtualizarr_does_not_accept_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **more: Any) -> Any:
        raise NotImplementedError("no such arrays")

    monkeypatch.setattr("h5zarr.virtualizarr.ManifestArray", refuse)
    arrays, problems = _manifest_arrays(h5zarr.translate(SAMPLES / "ocean.nc"), {})
    assert not arrays
    assert all(" does not accept it: no such arrays" in one.message for one in problems)
