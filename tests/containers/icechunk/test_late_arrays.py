"""Opening a snapshot reads no manifest, and a selection reads those that cover it."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import h5zarr
from h5zarr.containers.icechunk import late_arrays, virtual_refs
from h5zarr.containers.icechunk.icechunk_reading import read_icechunk
from h5zarr.containers.icechunk.late_arrays import (
    ArrayManifests,
    ManifestPart,
    RepositoryFiles,
    SourceNumbers,
    _PartTable,
)
from h5zarr.containers.provenance import Provenance, SourceState
from h5zarr.errors import MalformedFile, SourceGone, Unsupported
from h5zarr.io.location import Location
from h5zarr.io.source import Identity
from h5zarr.read.chunk_rows import ChunkTable
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, Hierarchy
from tests.containers.hierarchies import RawFile, make_array, make_hierarchy
from tests.containers.icechunk.repositories import write_icechunk
from tests.made_files import make_plain

icechunk = pytest.importorskip("icechunk")

VALUES = np.arange(360, dtype="<i4").reshape(9, 8, 5)
MISSING = ((0, 0, 0), (3, 1, 2), (3, 1, 3), (8, 7, 4))


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_refs, "_MANIFEST", 30)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The manifests that are read, in order."""
    names: list[str] = []
    original = RepositoryFiles.read_manifests

    def read(self: RepositoryFiles, wanted: Sequence[str]) -> Any:
        names.extend(dict.fromkeys(wanted))
        return original(self, wanted)

    monkeypatch.setattr(RepositoryFiles, "read_manifests", read)
    return names


def write(tmp_path: Path, *, missing: Any = (), chunk_shape: tuple[int, ...] = (1, 4, 5), count: int = 2) -> str:
    """Write an array in two files, and a coordinate that the repository holds. Return the location."""
    files = [RawFile(tmp_path / f"{number}.bin") for number in range(count)]
    large = make_array(files, VALUES, chunk_shape, missing=missing, fill_value=-1)
    time = make_array(files[0], np.arange(300.0), (300,), inline=[(0,)], dimension_names=("time",))
    url = f"icechunk+file://{tmp_path}/repository"
    hierarchy = make_hierarchy(files, {"/x": large, "/time": time})
    hierarchy = replace(hierarchy, urls=tuple(str(file.path) for file in files))
    states = [SourceState(str(file.path), Identity(nbytes=file.path.stat().st_size)) for file in files]
    write_icechunk(hierarchy, Provenance("0", tuple(states)), url)
    return url


def read(url: str) -> Hierarchy:
    return read_icechunk(Location.parse(url)).references.hierarchy


def array(hierarchy: Hierarchy, path: str = "/x") -> ArrayNode:
    node = hierarchy.nodes[path]
    assert isinstance(node, ArrayNode)
    return node


def test_nothing_is_located_before_it_is_used(tmp_path: Path, loaded: list[str]) -> None:
    url = write(tmp_path)
    found = read(url)
    assert found.urls == (f"{tmp_path}/0.bin", f"{tmp_path}/1.bin")
    assert (loaded, repr(array(found).manifest)) == ([], "<LateManifest, not read yet>")
    shutil.rmtree(tmp_path / "repository" / "manifests")
    with pytest.raises(SourceGone):
        _ = array(read(url)).manifest.count


def test_a_selection_reads_the_manifests_that_cover_it(
    tmp_path: Path, loaded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(virtual_refs, "_MANIFEST", 4)  # two steps each, the last one has one
    opened = zarr.open_group(h5zarr.open_store(write(tmp_path)), mode="r")["x"]
    np.testing.assert_array_equal(opened[4], VALUES[4])
    assert len(set(loaded)) == 1
    np.testing.assert_array_equal(opened[5], VALUES[5])
    assert len(loaded) == 1
    np.testing.assert_array_equal(opened[3:5], VALUES[3:5])
    assert len(loaded) == 2
    np.testing.assert_array_equal(opened[...], VALUES)
    assert len(set(loaded)) == len(loaded) == 5


@pytest.mark.parametrize("missing", [(), MISSING], ids=["all", "some"])
@pytest.mark.parametrize("size", [1, 3, 7, 30, 40, 70, 359, 360])
def test_each_record_has_its_chunks_however_manifests_are_split(
    size: int, missing: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(virtual_refs, "_MANIFEST", size)
    node = array(read(write(tmp_path, missing=missing, chunk_shape=(1, 1, 1))))
    other = array(read(f"icechunk+file://{tmp_path}/repository"))
    everything = ChunkTable(other.grid, other.manifest).everything()
    assert len(everything.number) == 360 - len(missing)
    parts = ChunkTable(node.grid, node.manifest)
    for number in (0, 131, 359, *range(0, 360, 17)):
        rows = parts.rows(np.array([number]))
        (row,), (expected,) = rows.find(np.array([number])), everything.find(np.array([number]))
        assert (row < 0) == (expected < 0)
        if row >= 0:
            assert rows.address[row] == everything.address[expected]
            assert np.broadcast_to(rows.source, len(rows.number))[row] == everything.source[expected]
    wanted = np.array([5, 100, 350])
    np.testing.assert_array_equal(parts.rows(wanted).find(wanted) < 0, everything.find(wanted) < 0)


def test_it_can_be_sent_to_another_process(tmp_path: Path) -> None:
    opened = zarr.open_group(h5zarr.open_store(write(tmp_path)), mode="r")
    there = pickle.loads(pickle.dumps(opened))
    np.testing.assert_array_equal(there["x"][...], VALUES)
    np.testing.assert_array_equal(there["time"][...], np.arange(300.0))


def test_references_may_lead_to_another_place_than_the_file_that_was_read(tmp_path: Path) -> None:
    make_plain(tmp_path / "here.h5")
    make_plain(tmp_path / "a there.h5")
    url = f"icechunk+file://{tmp_path}/repository"
    h5zarr.translate(tmp_path / "here.h5", url, target_url=f"{tmp_path}/a there.h5")
    assert read(url).urls == (f"{tmp_path}/a there.h5",)
    with xr.open_dataset(url, engine="h5zarr") as opened:
        np.testing.assert_array_equal(opened["x"], np.arange(4000))


def test_too_many_bytes_in_the_repository_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = array(read(write(tmp_path)), "/time")
    monkeypatch.setattr(late_arrays, "MOST_HELD_NBYTES", 2000)
    with pytest.raises(Unsupported, match="the repository itself holds 2400 bytes of it") as refused:
        _ = node.manifest.inline
    assert "package icechunk" in refused.value.remedy


def test_a_file_that_is_not_among_the_sources_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = array(read(write(tmp_path)))
    monkeypatch.setattr(SourceNumbers, "find", lambda self, location: None)
    with pytest.raises(MalformedFile, match="/x: some references point to a file that is not among the sources"):
        _ = node.manifest.count


def test_manifests_of_another_rank_are_an_error() -> None:
    manifests = ArrayManifests("X", (ManifestPart("M", (0,), (1,)),))
    with pytest.raises(MalformedFile, match="/x: its manifests have another number of dimensions"):
        _PartTable("/x", manifests, RegularGrid((4, 4), (1, 1)))


def test_sources_are_found_by_any_spelling_of_their_location() -> None:
    urls = ("/data/a b%.nc", "s3a://bucket/c d.nc", "https://host/e%20f.nc", "/data/a b%.nc")
    numbers = SourceNumbers(urls)
    locations = ("file:///data/a%20b%25.nc", "s3://bucket/c%20d.nc", "https://host/e%20f.nc", "file:///data/other.nc")
    assert [numbers.find(location) for location in locations] == [0, 1, 2, None]
    assert pickle.loads(pickle.dumps(numbers)).find(locations[1]) == 1
