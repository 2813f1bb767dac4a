"""Arrays whose chunks have different lengths, in every container and through every reader that knows such grids."""

from __future__ import annotations

import json
import zlib
from itertools import product
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

import h5zarr
from h5zarr.containers.container import Output
from h5zarr.containers.fitting import fit
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.registry import container_for_output
from h5zarr.errors import MalformedFile, Unrepresentable
from h5zarr.io.location import Location
from h5zarr.read.decoding import find_decoder
from h5zarr.read.read_arrays import ArrayValues
from h5zarr.read.sources import Sources
from h5zarr.zarr_model.codecs import encode_crop
from h5zarr.zarr_model.grid import RegularAxis, make_axis, make_grid
from h5zarr.zarr_model.hierarchy import ArrayNode, Manifest
from tests.containers.hierarchies import LITTLE, RawFile, make_hierarchy, open_store, v2_text, v3_text
from tests.read.keys import random_key, take

ZLIB = {"name": "numcodecs.zlib", "configuration": {"level": 4}}
MONTHS = (31, 28, 31, 30)
STORED = (10, 8)
KNOWS_GRID = Version(zarr.__version__) >= Version("3.2")
needs_grid = pytest.mark.skipif(not KNOWS_GRID, reason=f"zarr {zarr.__version__} has no rectilinear chunk grids")


def chunk_lengths(lengths: tuple[int, ...], chunk: int) -> list[int]:
    """Return the lengths of the chunks of files that are joined: the last of each file has what is left."""
    return [min(chunk, length - start) for length in lengths for start in range(0, length, chunk)]


def make_months(file: RawFile, values: Any, lengths: tuple[int, ...] = MONTHS, *, crop: bool) -> ArrayNode:
    """Return files joined along the first axis. With `crop`, all chunks are stored in full, and compressed."""
    first = make_axis(chunk_lengths(lengths, STORED[0]), sum(lengths))
    grid = make_grid([first, *[RegularAxis(length, STORED[1]) for length in values.shape[1:]]])
    rows = []
    for index in product(*map(range, grid.grid_shape)):
        part = values[grid.part(index)]
        shape = (STORED[0] if crop else len(part), *[STORED[1]] * (values.ndim - 1))
        whole = np.full(shape, -99, values.dtype)
        whole[tuple(map(slice, part.shape))] = part
        content = zlib.compress(whole.tobytes()) if crop else whole.tobytes()
        rows.append((*index, file.append(content), len(content)))
    columns = np.array(rows, np.int64).reshape(len(rows), values.ndim + 2)
    stored_shape = (STORED[0], *[STORED[1]] * (values.ndim - 1))
    return ArrayNode(
        grid=grid,
        data_type=values.dtype.name,
        codecs=(encode_crop(stored_shape), LITTLE, ZLIB) if crop else (LITTLE,),
        fill_value=0,
        dimension_names=("time", "x", "y")[: values.ndim],
        attributes={},
        manifest=Manifest(
            index=np.ascontiguousarray(columns[:, :-2]), address=columns[:, -2].copy(), nbytes=columns[:, -1].copy()
        ),
    )


def some_values(*shape: int) -> Any:
    return np.random.default_rng(5).integers(0, 1000, shape).astype("<i4")


@pytest.fixture
def joined(raw_file: RawFile) -> tuple[Any, Any]:
    """Return the hierarchy of two arrays, with and without compression, and their values."""
    values = some_values(sum(MONTHS), 20)
    arrays = {f"/{name}": make_months(raw_file, values, crop=name == "packed") for name in ("packed", "plain")}
    return make_hierarchy(raw_file, arrays), values


def write(hierarchy: Any, out: str) -> Any:
    container = container_for_output(Location.parse(out))
    fitted = fit(hierarchy, container=container)
    container.write(fitted, Provenance("0"), Output(location=Location.parse(out)))
    return fitted.hierarchy.problems


@given(
    st.lists(st.integers(1, 35), min_size=1, max_size=4),
    st.lists(st.integers(1, 20), max_size=2),
    st.booleans(),
    st.integers(0, 10_000),
)
def test_any_selection_of_joined_files_equals_numpy(
    tmp_path_factory: Any, lengths: list[int], others: list[int], crop: bool, seed: int
) -> None:
    file = RawFile(tmp_path_factory.mktemp("raw") / "data.bin")
    values = some_values(sum(lengths), *others)
    node = make_months(file, values, tuple(lengths), crop=crop)
    decoder = find_decoder(node)
    assert decoder is not None
    array = ArrayValues("/x", node, decoder, Sources(urls=(file.url,)))
    random = np.random.default_rng(seed)
    for _ in range(5):
        key = random_key(values.shape, random)
        np.testing.assert_array_equal(array[key], take(values, key))


@pytest.mark.parametrize("name", ["refs.json", "refs.parquet"])
def test_the_engine_reads_uneven_chunks(joined: Any, name: str, tmp_path: Path) -> None:
    hierarchy, values = joined
    assert write(hierarchy, str(tmp_path / name)) == ()
    with xr.open_dataset(tmp_path / name, engine="h5zarr") as opened:
        for variable in opened.values():
            np.testing.assert_array_equal(variable.values, values)
            np.testing.assert_array_equal(variable[29:65:3, 5:].values, values[29:65:3, 5:])
            expected = {"time": tuple(chunk_lengths(MONTHS, 10)), "x": (8, 8, 4)}
            assert variable.encoding["preferred_chunks"] == expected
    with xr.open_dataset(tmp_path / name, engine="h5zarr", chunks={}) as opened:
        assert opened["packed"].chunks == (tuple(chunk_lengths(MONTHS, 10)), (8, 8, 4))
        np.testing.assert_array_equal(opened["packed"].mean("time").values, values.mean(0))


@needs_grid
def test_zarr_reads_uneven_chunks_through_the_reference_filesystem(joined: Any) -> None:
    hierarchy, values = joined
    with zarr.config.set({"array.rectilinear_chunks": True}):
        group = zarr.open_group(open_store(v3_text(hierarchy)), mode="r")
        for name in ("packed", "plain"):
            np.testing.assert_array_equal(group[name][...], values)
            np.testing.assert_array_equal(group[name][25:64, 7], values[25:64, 7])


@needs_grid
@pytest.mark.filterwarnings("ignore:The 'fastparquet' engine is deprecated")
def test_zarr_reads_uneven_chunks_from_parquet_although_fsspec_does_not_know_them(joined: Any, tmp_path: Path) -> None:
    hierarchy, values = joined
    out = str(tmp_path / "refs.parquet")
    write(hierarchy, out)
    options = {"remote_protocol": "file", "remote_options": {"asynchronous": True}}
    filesystem = fsspec.filesystem("reference", fo=out, asynchronous=True, lazy=True, **options)
    with zarr.config.set({"array.rectilinear_chunks": True}):
        group = zarr.open_group(zarr.storage.FsspecStore(filesystem, read_only=True, path=""), mode="r")
        for name in ("packed", "plain"):
            np.testing.assert_array_equal(group[name][...], values)


@needs_grid
def test_zarr_reads_uneven_chunks_through_our_store(joined: Any, tmp_path: Path) -> None:
    hierarchy, values = joined
    write(hierarchy, str(tmp_path / "refs.json"))
    with zarr.config.set({"array.rectilinear_chunks": True}):
        group = zarr.open_group(h5zarr.open_store(tmp_path / "refs.json"), mode="r")
        np.testing.assert_array_equal(group["packed"][...], values)


def test_icechunk_holds_uneven_chunks_or_they_are_named(joined: Any, tmp_path: Path) -> None:
    import icechunk

    hierarchy, values = joined
    out = f"icechunk+file://{tmp_path}/repo"
    problems = write(hierarchy, out)
    if Version(icechunk.__version__) < Version("2"):
        assert [problem.path for problem in problems] == ["/packed", "/plain"]
        assert "Icechunk 2" in problems[0].message
        return
    assert problems == ()
    with xr.open_dataset(out, engine="h5zarr") as opened:
        np.testing.assert_array_equal(opened["packed"].values, values)
        np.testing.assert_array_equal(opened["plain"].values, values)


def test_version_2_leaves_them_out_and_names_them(joined: Any) -> None:
    hierarchy, _ = joined
    problems = fit(hierarchy, zarr_format=2).hierarchy.problems
    assert [problem.path for problem in problems] == ["/packed", "/plain"]
    assert "version 3" in problems[1].remedy
    with pytest.raises(AssertionError):
        v2_text(hierarchy)


def test_references_with_uneven_chunks_are_valid_until_the_grid_is_not(joined: Any, tmp_path: Path) -> None:
    hierarchy, _ = joined
    for name in ("refs.json", "refs.parquet"):
        write(hierarchy, str(tmp_path / name))
        assert h5zarr.validate(tmp_path / name).is_valid
    path = tmp_path / "refs.json"
    path.write_text(path.read_text().replace("[[[10,3],1,", "[[[10,1],1,").replace("[[[10, 3], 1,", "[[[10, 1], 1,"))
    path.write_text(path.read_text().replace(r"[[[10,3],1,", r"[[[10,1],1,"))
    assert not h5zarr.validate(path).is_valid


def test_a_chunk_of_the_wrong_size_is_malformed(raw_file: RawFile) -> None:
    node = make_months(raw_file, some_values(sum(MONTHS), 20), crop=False)
    node.manifest.nbytes[-1] -= 4
    decoder = find_decoder(node)
    assert decoder is not None
    array = ArrayValues("/x", node, decoder, Sources(urls=(raw_file.url,)))
    with pytest.raises(MalformedFile, match="has 316 bytes instead of 320"):
        array[slice(None), slice(None)]


def test_verify_compares_uneven_chunks(joined: Any, tmp_path: Path) -> None:
    hierarchy, _ = joined
    node = hierarchy.nodes["/packed"]
    with pytest.raises(Unrepresentable, match="different shapes"):
        node.chunk_shape  # noqa: B018
    assert node.grid.largest_shape == (10, 8)
    assert json.loads(json.dumps(node.grid.encode()))["name"] == "rectilinear"
