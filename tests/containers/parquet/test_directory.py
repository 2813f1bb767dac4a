"""References in Parquet, as kerchunk writes them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

from h5zarr.containers.parquet.parquet_index import decode_index
from h5zarr.containers.parquet.parquet_reading import decode_parquet
from h5zarr.errors import H5ZarrError, MalformedFile, SourceError
from h5zarr.opening import open_hierarchy
from h5zarr.zarr_model.hierarchy import ArrayNode
from tests.servers import Faults, RangeServer

dataframes = pytest.importorskip("kerchunk.df")
hdf = pytest.importorskip("kerchunk.hdf")
pytest.importorskip("fastparquet")
pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parquet") / "file.nc"
    with netCDF4.Dataset(path, "w") as made:
        made.createDimension("t", 25)
        made.createDimension("x", 40)
        made.createVariable("t", "f8", ("t",))[:] = np.arange(25)
        packed = made.createVariable("v", "i2", ("t", "x"), zlib=True, chunksizes=(1, 40), fill_value=-1)
        packed.set_auto_maskandscale(False)
        packed[:20] = np.arange(800).reshape(20, 40)
        made.createGroup("g").createVariable("w", "f4", ("t", "x"), chunksizes=(10, 20))[:] = 7
        made.createVariable("scalar", "i4")[...] = 5
    return path


@pytest.fixture(scope="module")
def references(file: Path) -> dict[str, Any]:
    made: dict[str, Any] = hdf.SingleHdf5ToZarr(str(file), inline_threshold=300).translate()
    return made


def write(references: dict[str, Any], out: Path, size: int) -> Path:
    dataframes.refs_to_dataframe(references, str(out), record_size=size)
    return out


@pytest.mark.parametrize("size", [7, 10_000])
def test_parquet_holds_what_the_json_holds(references: dict[str, Any], tmp_path: Path, size: int) -> None:
    (tmp_path / "refs.json").write_text(json.dumps(references))
    expected = open_hierarchy(tmp_path / "refs.json").hierarchy
    found = open_hierarchy(write(references, tmp_path / "refs.parquet", size)).hierarchy
    assert found.nodes.keys() == expected.nodes.keys()
    assert found.urls == expected.urls
    for path, node in expected.nodes.items():
        mine = found.nodes[path]
        assert mine.attributes == node.attributes
        if isinstance(node, ArrayNode):
            assert isinstance(mine, ArrayNode)
            assert (mine.shape, mine.codecs, mine.fill_value) == (node.shape, node.codecs, node.fill_value)
            for column in ("index", "address", "nbytes"):
                assert np.array_equal(getattr(mine.manifest, column), getattr(node.manifest, column)), path
            assert dict(mine.manifest.inline) == dict(node.manifest.inline)


def test_the_engine_opens_local_and_remote_parquet(references: dict[str, Any], file: Path, tmp_path: Path) -> None:
    out = write(references, tmp_path / "refs.parquet", 7)
    files = {f"/refs.parquet/{path.relative_to(out)}": path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with RangeServer(files) as server, xr.open_dataset(file, engine="netcdf4") as expected:
        allow = [str(file.parent)]
        for place in (out, str(out), server.url("/refs.parquet")):
            with xr.open_dataset(place, engine="h5zarr", allow=allow) as found:
                np.testing.assert_array_equal(found.v.values, expected.v.values)
                assert int(found.scalar) == 5
            with xr.open_dataset(place, engine="h5zarr", group="g", allow=allow) as found:
                assert (found.w.values == 7).all()


def test_a_part_that_cannot_be_had_is_an_error_and_not_missing_data(references: dict[str, Any], tmp_path: Path) -> None:
    out = write(references, tmp_path / "refs.parquet", 10_000)
    files = {f"/refs.parquet/{path.relative_to(out)}": path.read_bytes() for path in out.rglob("*") if path.is_file()}
    refusing = RangeServer(files, faults=Faults(statuses=dict.fromkeys(range(2, 99), 403)))
    with refusing as server, pytest.raises(SourceError, match=r"refs.0.parq: access was refused"):
        open_hierarchy(server.url("/refs.parquet"))


def test_problems_of_the_files_are_reported(references: dict[str, Any], tmp_path: Path) -> None:
    out = write(references, tmp_path / "refs.parquet", 10_000)
    (out / "v" / "refs.0.parq").write_bytes(b"junk")
    with pytest.raises(MalformedFile, match=r"refs.parquet: v/refs.0.parq cannot be read as Parquet"):
        open_hierarchy(out)
    for content in (
        "",
        "{}",
        "[]",
        '{"metadata": {}, "record_size": 0}',
        '{"metadata": {"v/.zarray": 5}, "record_size": 1}',
    ):
        (out / ".zmetadata").write_text(content)
        with pytest.raises(H5ZarrError, match=r"refs.parquet"):
            open_hierarchy(out)


def test_a_directory_without_references_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="this is a directory"):
        open_hierarchy(tmp_path)


def test_plain_files_beside_are_not_taken_for_it(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "file.parquet", "w") as made:
        made["x"] = [1]
    assert "/x" in open_hierarchy(tmp_path / "file.parquet").hierarchy.nodes


def test_an_array_with_version_3_metadata_is_described_by_them() -> None:
    """As written for fsspec, whose reader wants a `.zarray` that tells the shape; paths may be JSON."""
    metadata = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [3],
        "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}},
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}},
        "fill_value": 4,
        "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}],
        "attributes": {},
        "dimension_names": ["x"],
    }
    entries = {
        "zarr.json": {"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}},
        "v/zarr.json": metadata,
        "v/.zarray": {"shape": [3], "chunks": [1]},
    }
    index = decode_index(json.dumps({"metadata": entries, "record_size": 2}).encode(), "refs")
    assert [part.name for part in index.parts] == ["v/refs.0.parq", "v/refs.1.parq"]
    columns = {"path": [b'"s3://b/k"', None], "offset": [12, 0], "size": [2, 0], "raw": [None, b"\x01\x02"]}
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), out)
    found = decode_parquet(index, lambda _: {"v/refs.0.parq": out.getvalue()}, "refs").hierarchy
    node = found.nodes["/v"]
    assert isinstance(node, ArrayNode)
    assert (found.urls, node.fill_value, node.codecs) == (("s3://b/k",), 4, tuple(metadata["codecs"]))  # type: ignore[arg-type]
    assert (node.manifest.index.tolist(), node.manifest.address.tolist()) == ([[0]], [12])
    assert dict(node.manifest.inline) == {(1,): b"\x01\x02"}
