"""Snapshots read back: what h5zarr wrote, and what others did, by both versions of Icechunk."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import h5zarr
from h5zarr.commands.translate.translate import translate
from h5zarr.containers.icechunk import icechunk_reading, late_arrays
from h5zarr.containers.icechunk.icechunk_reading import read_icechunk
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.source_state import SourceState
from h5zarr.errors import ProblemWarning, SourceError, SourceGone
from h5zarr.io.location import Location
from h5zarr.io.source import Identity
from h5zarr.zarr_model.hierarchy import GroupNode, Hierarchy
from tests.collections_of_files import SAMPLES
from tests.containers.hierarchies import RawFile, assert_same, make_array, make_hierarchy
from tests.containers.icechunk.repositories import write_icechunk
from tests.made_files import make_plain
from tests.s3 import s3_server

icechunk = pytest.importorskip("icechunk")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "repository"


def url_of(place: Path) -> str:
    return f"icechunk+file://{place}"


def read(place: Path, **choices: Any) -> Hierarchy:
    return read_icechunk(Location.parse(url_of(place)), **choices).references.hierarchy


def provenance_of(*files: RawFile) -> Provenance:
    states = [SourceState(str(file.path), Identity(nbytes=file.path.stat().st_size)) for file in files]
    return Provenance("0", tuple(states))


def with_paths(hierarchy: Hierarchy, files: list[RawFile]) -> Hierarchy:
    return replace(hierarchy, urls=tuple(str(file.path) for file in files))


def test_everything_that_was_written_is_read_back_in_order(tmp_path: Path, place: Path) -> None:
    files = [RawFile(tmp_path / "a b%.bin"), RawFile(tmp_path / "other.bin")]
    text = np.arange(1500.0)
    hierarchy = with_paths(
        make_hierarchy(
            files,
            {
                "/z": make_array(files, np.arange(24).reshape(4, 6), (2, 2), missing=[(1, 1)], inline=[(0, 2)]),
                "/deep": GroupNode(attributes={"title": "ä", "empty": []}),
                "/deep/x": make_array(files, text, (1500,), inline=[(0,)], attributes={"units": "K"}),
                "/deep/scalar": make_array(files[0], np.int16(7)),
                "/a": make_array(files[0], np.zeros((0, 3)), (1, 3)),
            },
        ),
        files,
    )
    provenance = provenance_of(*files)
    write_icechunk(hierarchy, provenance, url_of(place))
    found = read_icechunk(Location.parse(url_of(place))).references
    assert_same(found.hierarchy, hierarchy)
    assert found.provenance == provenance
    assert found.hierarchy.warnings == ()


def test_problems_come_back(tmp_path: Path, place: Path) -> None:
    translation = translate(SAMPLES / "names_latest.h5", url_of(place))
    assert translation.problems
    assert read(place).problems == translation.problems


def test_branches_tags_and_snapshots_are_chosen_by_name(tmp_path: Path, place: Path) -> None:
    make_plain(tmp_path / "plain.h5")
    translate(SAMPLES / "ocean.nc", url_of(place))
    translate(tmp_path / "plain.h5", url_of(place), branch="trial")
    repository = icechunk.Repository.open(icechunk.local_filesystem_storage(str(place)))
    snapshot = repository.lookup_branch("trial")
    repository.create_tag("v1", snapshot)
    assert "/sst" in read(place).nodes
    for name in ("trial", "v1", snapshot):
        assert list(read(place, at=name).nodes) == ["/", "/x"]
    with pytest.raises(SourceGone, match="no branch, tag or snapshot is named 'v2'") as refused:
        read(place, at="v2")
    assert refused.value.remedy == "Known names: main, trial, v1."


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("icechunk+file://{}/nothing", "no such directory"),
        ("icechunk+file://{}", "doesn't exist"),
        ("icechunk+ftp://host/place", "not a location for"),
    ],
)
def test_a_missing_repository_is_reported(tmp_path: Path, url: str, what: str) -> None:
    with pytest.raises(SourceError, match=what):
        read_icechunk(Location.parse(url.format(tmp_path)))
    assert list(tmp_path.iterdir()) == []


# --- what others wrote


def repository_of_others(place: Path) -> Any:
    config = icechunk.RepositoryConfig.default()
    store = icechunk.local_filesystem_store(str(place.parent))
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(f"file://{place.parent}/", store))
    return icechunk.Repository.create(icechunk.local_filesystem_storage(str(place)), config=config)


def write_as_others(place: Path, raw: Path) -> None:
    """Write an array with a chunk of each kind: elsewhere, small, large, and none."""
    session = repository_of_others(place).writable_session("main")
    group = zarr.create_group(session.store)
    array = group.create_array("v", shape=(4, 200), chunks=(1, 200), dtype="f8", fill_value=-1.0, compressors=None)
    array[1], array[2] = np.zeros(200), np.arange(200.0)
    group.create_array("small", data=np.arange(3), compressors=None)
    moment = datetime.fromtimestamp(int(raw.stat().st_mtime) + 1, UTC)
    session.store.set_virtual_ref("v/c/0/0", f"file://{raw}", offset=16, length=1600, checksum=moment)
    session.commit("by others")


def test_what_others_wrote_has_its_values_and_it_is_said_that_files_are_not_compared(
    tmp_path: Path, place: Path
) -> None:
    raw = tmp_path / "raw.bin"
    raw.write_bytes(bytes(16) + np.arange(200.0)[::-1].tobytes())
    write_as_others(place, raw)
    node = read(place).nodes["/v"]
    assert (node.manifest.index.tolist(), node.manifest.address.tolist()) == ([[0, 0]], [16])
    assert sorted(node.manifest.inline) == [(1, 0), (2, 0)]
    with pytest.warns(ProblemWarning, match="have changed since"):
        group = zarr.open_group(h5zarr.open_store(url_of(place)), mode="r")
    np.testing.assert_array_equal(
        group["v"][...], [np.arange(200.0)[::-1], np.zeros(200), np.arange(200.0), np.full(200, -1.0)]
    )
    np.testing.assert_array_equal(group["small"][...], np.arange(3))


def test_an_array_that_the_repository_holds_too_much_of_is_a_problem(tmp_path: Path, place: Path, monkeypatch) -> None:
    raw = tmp_path / "raw.bin"
    raw.write_bytes(bytes(2000))
    write_as_others(place, raw)
    monkeypatch.setattr(late_arrays, "MOST_HELD_NBYTES", 3000)
    found = read(place)
    (problem,) = found.problems
    assert (problem.path, "3200 bytes" in problem.message) == ("/v", True)
    assert list(found.nodes) == ["/", "/small"]


def test_chunks_that_the_repository_lost_are_an_error(tmp_path: Path, place: Path) -> None:
    raw = tmp_path / "raw.bin"
    raw.write_bytes(bytes(2000))
    write_as_others(place, raw)
    for chunk in (place / "chunks").iterdir():
        chunk.unlink()
    with pytest.raises(SourceError):
        read(place)


# --- opened


def test_the_engine_shows_what_it_shows_of_the_file_and_can_be_sent_to_other_processes(place: Path) -> None:
    translate(SAMPLES / "ocean.nc", url_of(place))
    with (
        xr.open_dataset(url_of(place), engine="h5zarr", at="main") as ours,
        xr.open_dataset(SAMPLES / "ocean.nc", engine="h5zarr") as theirs,
    ):
        assert list(ours.variables) == list(theirs.variables)
        there = pickle.loads(pickle.dumps(ours))
        xr.testing.assert_identical(there.load(), theirs.load())


def test_the_engine_notices_that_a_source_has_changed(tmp_path: Path, place: Path) -> None:
    path = make_plain(tmp_path / "plain.h5")
    translate(path, url_of(place))
    path.write_bytes(path.read_bytes() + b"!")
    store = h5zarr.open_store(url_of(place))
    with pytest.raises(h5zarr.SourceChanged):
        zarr.open_group(store, mode="r")["x"][...]


def test_only_a_repository_has_branches(tmp_path: Path) -> None:
    translate(SAMPLES / "ocean.nc", tmp_path / "refs.json")
    for url in (tmp_path / "refs.json", SAMPLES / "ocean.nc"):
        with pytest.raises(h5zarr.H5ZarrError, match="only an Icechunk repository"):
            h5zarr.open_store(url, at="main")


def test_a_repository_on_s3_is_read_with_the_options_of_fsspec(tmp_path: Path) -> None:
    content = make_plain(tmp_path / "plain.h5").read_bytes()
    with s3_server() as options:
        import s3fs

        buckets = s3fs.S3FileSystem(**options, skip_instance_cache=True)
        buckets.mkdir("files")
        buckets.mkdir("repositories")
        source, out = "s3://files/a b#%.h5", "icechunk+s3://repositories/deep/repository"
        buckets.pipe_file(source, content)
        region = {"client_kwargs": {"region_name": "us-east-1"}}
        translation = translate(source, out, storage_options=options, output_options={**options, **region})
        found = read_icechunk(Location.parse(out), {**options, **region})
        assert_same(found.references.hierarchy, translation.hierarchy)
        assert found.references.provenance == translation.provenance
        assert found.source_options == {"endpoint_url": options["endpoint_url"]}
        store = h5zarr.open_store(out, storage_options={**options, **region})
        np.testing.assert_array_equal(zarr.open_group(store, mode="r")["x"][...], np.arange(4000))
        store.close()
        with pytest.raises(SourceError, match="Icechunk could not read it") as refused:
            read_icechunk(Location.parse("icechunk+s3://repositories/elsewhere"), {**options, **region})
        assert "credentials" in refused.value.remedy
        buckets.clear_instance_cache()


def test_a_missing_region_is_named_as_the_reason() -> None:
    error = icechunk_reading._describe(
        RuntimeError("dispatch failure\n `-> A region must be set when sending requests to S3. key=hunter2"),
        Location.parse("icechunk+s3://bucket/repository"),
    )
    assert str(error) == "icechunk+s3://bucket/repository: Icechunk needs the region of the bucket"
    assert error.remedy == "Give region=us-east-1, or whichever it is, in storage_options=, or set AWS_REGION."
    assert isinstance(error, ValueError)
