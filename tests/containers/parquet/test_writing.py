"""References in Parquet, made by hand: what fsspec's lazy reader makes of them, and what h5zarr reads back."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h5zarr.containers.fitting import fit
from h5zarr.containers.parquet.parquet_container import ParquetContainer
from h5zarr.containers.parquet.parquet_index import decode_index
from h5zarr.containers.parquet.parquet_writing import write_parquet
from h5zarr.errors import MalformedFile, OutputError, SourceChanged
from h5zarr.opening import open_hierarchy
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import TO_THE_END, ArrayNode, GroupNode, Hierarchy, Manifest
from h5zarr.zarr_model.names import URL_KIND
from tests.containers.hierarchies import (
    PROVENANCE,
    UTF8,
    RawFile,
    assert_same,
    encode_text,
    make_array,
    make_hierarchy,
)

pytest.importorskip("pyarrow.parquet")
pytest.importorskip("fastparquet")
from tests.containers.parquet.opening import Files, lazy_group, lazy_mapper, lenient, same_values


def write(hierarchy: Hierarchy, out: Path, *, size: int = 5, version: int = 3) -> Files:
    files = Files()
    fitted = fit(hierarchy, zarr_format=version, container=ParquetContainer())
    assert [one for one in fitted.hierarchy.problems if one.kind != URL_KIND] == []
    write_parquet(fitted, PROVENANCE, files, record_size=size)
    files.save(out)
    return files


def in_second(node: ArrayNode) -> ArrayNode:
    return replace(node, manifest=replace(node.manifest, source=1))


def manifest_of(hierarchy: Hierarchy, path: str) -> Manifest:
    node = hierarchy.nodes[path]
    assert isinstance(node, ArrayNode)
    return node.manifest


def several(tmp_path: Path) -> tuple[Hierarchy, dict[str, Any]]:
    """Return arrays of many kinds, and their values."""
    files = [RawFile(tmp_path / f"data {number}é.bin") for number in range(3)]
    grid = np.arange(63, dtype="<i2").reshape(7, 9)
    holes = grid.copy()
    holes[2:4, 3:6] = holes[6:, :3] = -7
    texts = np.array(["", "a", "é" * 5, "base64:", "last"], object)
    values = {
        "plain": grid,
        "holes": holes,
        "parts/in line": grid,
        "nothing": np.full((7, 9), -7, "<i2"),
        "scalar": np.array(5.5),
        "parts/deeper/scalar in line": np.array(7, ">i4"),
        "parts/empty axis": np.empty((0, 4)),
        "a.b/0.0": grid,
        "odd {name} %41 #?": texts,
    }
    common = {"fill_value": -7, "dimension_names": ("y", "x")}
    nodes: dict[str, GroupNode | ArrayNode] = {
        "/plain": make_array(files[:1], grid, (2, 3), **common),
        "/holes": make_array(files, grid, (2, 3), missing=[(1, 1), (3, 0)], **common),
        "/nothing": make_array(files, grid, (7, 9), missing=[(0, 0)], **common),
        "/scalar": in_second(make_array(files[1], np.array(5.5))),
        "/parts": GroupNode(attributes={"é": [1.5, "x"]}),
        "/parts/in line": make_array(files, grid, (2, 3), inline=[(0, 0), (2, 1), (3, 2)], **common),
        "/parts/deeper": GroupNode(attributes={}),
        "/parts/deeper/scalar in line": make_array(files, np.array(7, ">i4"), inline=[()]),
        "/parts/empty axis": make_array(files, np.empty((0, 4)), (1, 4)),
        "/a.b": GroupNode(attributes={}),
        "/a.b/0.0": make_array(files, grid, (1, 1), **common),
        "/odd {name} %41 #?": make_array(
            files,
            texts,
            (2,),
            data_type="string",
            codecs=(UTF8,),
            encode=encode_text,
            inline=[(0,), (1,), (2,)],
            fill_value="",
        ),
    }
    return make_hierarchy(files, nodes), values


@pytest.mark.parametrize("version", [3, 2])
@pytest.mark.parametrize("size", [1, 5, 100_000])
def test_fsspec_and_zarr_read_the_values(tmp_path: Path, version: int, size: int) -> None:
    hierarchy, values = several(tmp_path)
    write(hierarchy, tmp_path / "refs.parquet", version=version, size=size)
    with lenient():
        group = lazy_group(tmp_path / "refs.parquet")
        assert {path for path, _ in group.members(max_depth=None)} == {
            path[1:] for path in hierarchy.nodes if path != "/"
        }
        for path, expected in values.items():
            found = group[path][...]  # type: ignore[index]
            if expected.dtype.hasobject:
                assert np.asarray(found).tolist() == expected.tolist()
            else:
                assert same_values(np.asarray(found).astype(expected.dtype), expected), path
        assert dict(group["parts"].attrs) == {"é": [1.5, "x"]}


@pytest.mark.parametrize("size", [1, 5, 100_000])
def test_it_reads_back_as_it_was_written(tmp_path: Path, size: int) -> None:
    hierarchy, _ = several(tmp_path)
    write(hierarchy, tmp_path / "refs.parquet", size=size)
    opened = open_hierarchy(tmp_path / "refs.parquet")
    assert_same(hierarchy, opened.hierarchy)
    assert opened.hierarchy.problems == ()


def test_numbers_stay_whole_and_missing_paths_are_none(tmp_path: Path) -> None:
    """As floats, addresses beyond 2**53 would be rounded; NaN would be taken for a path."""
    node = make_array(RawFile(tmp_path / "data.bin"), np.zeros(4, "i1"), (1,), missing=[(2,)])
    address = np.array([2**53 + 1, 2**62 + 1, 5], np.int64)
    node = replace(node, manifest=replace(node.manifest, address=address))
    hierarchy = make_hierarchy(RawFile(tmp_path / "data.bin"), {"/v": node})
    write(hierarchy, tmp_path / "refs.parquet")
    with lenient():
        mapper = lazy_mapper(tmp_path / "refs.parquet")
        assert mapper["v/1"] == [hierarchy.urls[0], 2**62 + 1, 1]
        columns = mapper.open_refs("v", 0)
        assert columns["path"][2] is None
        with pytest.raises(KeyError):
            mapper["v/2"]
    assert columns["offset"].dtype == columns["size"].dtype == np.int64
    assert columns["offset"].tolist() == [2**53 + 1, 2**62 + 1, 0, 5]


def test_chunks_that_look_like_something_else_are_read_as_they_are(tmp_path: Path) -> None:
    """Readers decode what begins with base64:, and take an address and a size of 0 for a whole file."""
    file = RawFile(tmp_path / "data.bin")
    manifest = Manifest(
        index=np.array([[0], [1]]),
        address=np.zeros(2, np.int64),
        nbytes=np.array([0, TO_THE_END]),
        inline={(2,): b"base64:AAAA", (3,): b"", (4,): b"\xff\x00"},
    )
    node = replace(make_array(file, np.zeros(5, "S11"), (1,), data_type="uint8"), manifest=manifest)
    write(make_hierarchy(file, {"/v": node}), tmp_path / "refs.parquet")
    with lenient():
        mapper = lazy_mapper(tmp_path / "refs.parquet")
        assert [mapper["v/0"], mapper["v/1"], mapper["v/3"], mapper["v/4"]] == [b"", [file.url], b"", b"\xff\x00"]
        import fsspec

        filesystem = fsspec.filesystem("reference", fo=str(tmp_path / "refs.parquet"), remote_protocol="file")
        assert filesystem.cat("v/2") == b"base64:AAAA"
    found = manifest_of(open_hierarchy(tmp_path / "refs.parquet").hierarchy, "/v")
    assert found.inline == {(0,): b"", **manifest.inline}
    assert (found.index.tolist(), found.nbytes.tolist()) == ([[1]], [TO_THE_END])


def test_files_are_there_only_where_chunks_are(tmp_path: Path) -> None:
    node = make_array(RawFile(tmp_path / "data.bin"), np.zeros(9, "i1"), (1,), missing=[(2,), (3,), (8,)])
    nodes = {"/v": node, "/w": make_array(RawFile(tmp_path / "data.bin"), np.zeros(1, "i1"), missing=[(0,)])}
    files = write(make_hierarchy(RawFile(tmp_path / "data.bin"), nodes), tmp_path / "refs.parquet", size=2)
    assert list(files) == ["v/refs.0.parq", "v/refs.2.parq", "v/refs.3.parq", ".zmetadata"]
    index = decode_index(files[".zmetadata"], "refs")
    assert [part.name for part in index.parts] == list(files)[:-1]


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    hierarchy, _ = several(tmp_path)
    assert write(hierarchy, tmp_path / "one") == write(hierarchy, tmp_path / "other")


def test_opening_reads_no_file_of_chunks(tmp_path: Path) -> None:
    hierarchy, _ = several(tmp_path)
    write(hierarchy, tmp_path / "refs.parquet")
    (tmp_path / "refs.parquet" / "plain" / "refs.0.parq").write_bytes(b"junk")
    hierarchy = open_hierarchy(tmp_path / "refs.parquet").hierarchy
    assert manifest_of(hierarchy, "/holes").count == 10
    with pytest.raises(MalformedFile, match=r"plain/refs.0.parq cannot be read as Parquet"):
        _ = manifest_of(hierarchy, "/plain").address


def test_files_of_another_container_are_noticed(tmp_path: Path) -> None:
    """As when it is replaced while it is open, or copied in part. Silence would be wrong values."""
    hierarchy, _ = several(tmp_path)
    out = tmp_path / "refs.parquet"
    write(hierarchy, out)
    opened = open_hierarchy(out)
    attributes = {"another": 1}
    write(replace(hierarchy, nodes={**hierarchy.nodes, "/": GroupNode(attributes=attributes)}), out)
    manifest = manifest_of(opened.hierarchy, "/holes")
    with pytest.raises(SourceChanged, match=r"holes/refs.0.parq does not belong to .zmetadata"):
        _ = manifest.index
    (out / "holes" / "refs.0.parq").unlink()
    again = manifest_of(open_hierarchy(out).hierarchy, "/holes")
    with pytest.raises(SourceChanged, match="/holes: files with its references are missing"):
        _ = again.index


def test_names_that_readers_take_for_metadata_are_left_out_and_named(tmp_path: Path) -> None:
    """fsspec's reader would find no chunk of it, and show fill values."""
    file = RawFile(tmp_path / "data.bin")
    hierarchy = make_hierarchy(file, {"/g": GroupNode(attributes={}), "/g/.zone": make_array(file, np.zeros(3))})
    fitted = fit(hierarchy, container=ParquetContainer())
    (problem,) = fitted.hierarchy.problems
    assert str(problem).startswith("/g/.zone: readers of Parquet treat names")
    assert list(fitted.nodes) == list(fitted.hierarchy.nodes) == ["/", "/g"]


def test_chunks_that_need_too_many_files_are_refused(tmp_path: Path) -> None:
    node = make_array(RawFile(tmp_path / "data.bin"), np.zeros(1, "i1"), (1,))
    index = np.arange(100_001, dtype=np.int64)[:, None] * 1000
    manifest = Manifest(index=index, address=index[:, 0], nbytes=index[:, 0] + 1)
    far = replace(node, grid=RegularGrid((10**9,), (1,)), manifest=manifest)
    hierarchy = make_hierarchy(RawFile(tmp_path / "data.bin"), {"/v": far})
    with pytest.raises(OutputError, match="more than 100000 files"):
        write_parquet(fit(hierarchy), PROVENANCE, Files(), record_size=1000)


def test_provenance_and_problems_ride_along(tmp_path: Path) -> None:
    hierarchy, _ = several(tmp_path)
    told = json.loads(write(hierarchy, tmp_path / "refs.parquet")[".zmetadata"])
    assert told["h5zarr"]["sources"] == PROVENANCE.to_json()["sources"]
    assert told["h5zarr"]["urls"] == list(hierarchy.urls)


@pytest.mark.parametrize(
    "change",
    [
        {"files": {"plain": [[0, 99]]}},
        {"files": {"plain": [[-1, 1]]}},
        {"files": {"plain": [[0, 1 << 60]]}},
        {"files": {"plain": 5}},
        {"urls": ["file:///elsewhere"]},
    ],
)
def test_problems_of_the_index_are_reported(tmp_path: Path, change: dict[str, Any]) -> None:
    hierarchy, _ = several(tmp_path)
    out = tmp_path / "refs.parquet"
    told = json.loads(write(hierarchy, out)[".zmetadata"])
    told["h5zarr"] |= change
    (out / ".zmetadata").write_text(json.dumps(told))
    with pytest.raises((MalformedFile, SourceChanged), match=r"refs.parquet"):
        _ = manifest_of(open_hierarchy(out).hierarchy, "/plain").index


@given(st.data())
@settings(max_examples=40)
def test_any_chunks_are_what_fsspec_finds_and_what_is_read_back(tmp_path_factory: Any, data: st.DataObject) -> None:
    grid = tuple(data.draw(st.lists(st.integers(1, 5), max_size=3)))
    size = data.draw(st.integers(1, 130))
    urls = tuple(f"file:///é {number}" for number in range(data.draw(st.integers(1, 3))))
    number = st.integers(0, 2**63 - 1).map(lambda value: value // 2)
    reference = st.tuples(st.integers(0, len(urls) - 1), number, number.map(lambda value: value + 1))
    chunks = {index: data.draw(st.one_of(st.none(), st.binary(max_size=9), reference)) for index in np.ndindex(grid)}
    referred = {index: chunk for index, chunk in chunks.items() if isinstance(chunk, tuple)}
    columns = np.array([*referred.values()], np.int64).reshape(len(referred), 3)
    manifest = Manifest(
        index=np.array([*referred], np.int64).reshape(len(referred), len(grid)),
        address=columns[:, 1].copy(),
        nbytes=columns[:, 2].copy(),
        source=columns[:, 0].astype(np.int32) if len(urls) > 1 else 0,
        inline={index: chunk for index, chunk in chunks.items() if isinstance(chunk, bytes)},
    )
    directory = tmp_path_factory.mktemp("any")
    raw = RawFile(directory / "data.bin")
    node = replace(make_array(raw, np.zeros(grid, "i1"), (1,) * len(grid)), manifest=manifest)
    hierarchy = replace(make_hierarchy(raw, {"/v": node}), urls=urls)
    write(hierarchy, directory / "refs.parquet", size=size)
    assert_same(hierarchy, open_hierarchy(directory / "refs.parquet").hierarchy)
    with lenient():
        mapper = lazy_mapper(directory / "refs.parquet")
        for index, chunk in chunks.items():
            expected = [urls[chunk[0]], *chunk[1:]] if isinstance(chunk, tuple) else chunk
            found = mapper.get(f"v/{'.'.join(map(str, index)) or 0}")
            if isinstance(found, bytes) and found.startswith(b"base64:"):
                found = b64decode(found[7:])  # as fsspec does with whatever begins so
            assert found == expected
