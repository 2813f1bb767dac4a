"""Many references are committed in steps to a temporary branch, and the branch of the user moves once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from h5zarr.commands.translate.translate import translate
from h5zarr.containers.icechunk import steps, virtual_refs
from h5zarr.containers.icechunk.icechunk_writing import _Writer
from h5zarr.containers.icechunk.steps import plan_steps, rows_of
from h5zarr.errors import OutputError
from tests.containers.hierarchies import PROVENANCE, RawFile, make_array, make_hierarchy
from tests.containers.icechunk.repositories import (
    local_storage,
    messages,
    open_repository,
    open_snapshot,
    write_icechunk,
)
from tests.s3 import s3_server

icechunk = pytest.importorskip("icechunk")

VALUES = np.arange(360, dtype="<i4").reshape(9, 8, 5)


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_refs, "_MANIFEST", 30)
    monkeypatch.setattr(steps, "_STEP", 100)


def make_numbers(path: Path, first: int, count: int = 360) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(100 * count) + first, chunks=(100,))
    return path


def numbers(place: Path, branch: str = "main") -> Any:
    return open_snapshot(place, branch=branch)["x"][...]


@pytest.mark.parametrize("missing", [(), ((0, 0, 0), (3, 1, 2), (8, 7, 4))], ids=["all", "some"])
@pytest.mark.parametrize("size", [1, 7, 30, 40, 100, 359])
def test_steps_have_all_rows_once_and_no_manifest_twice(size: int, missing: Any, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(virtual_refs, "_MANIFEST", size)
    files = [RawFile(tmp_path / f"{number}.bin") for number in range(2)]
    arrays = {
        "/a": make_array(files, VALUES[0], (4, 5)),
        "/x": make_array(files, VALUES, (1, 1, 1), missing=missing),
        "/y": make_array(files, VALUES[:2], (1, 1, 1)),
    }
    planned = list(plan_steps(make_hierarchy(files, arrays)))
    for path, node in arrays.items():
        shares = [share.references for step in planned for share in step if share.path == path]
        for column in ("index", "address", "nbytes"):
            found = np.concatenate([getattr(share, column) for share in shares])
            np.testing.assert_array_equal(found, getattr(node.manifest, column))
    counts = [sum(share.references.count for share in step) for step in planned]
    assert max(counts) <= max(100, size)
    place = tmp_path / "repository"
    write_icechunk(make_hierarchy(files, arrays), PROVENANCE, f"icechunk+file://{place}")
    manifests = {name for path in arrays for name in manifests_of(place, path)}
    assert len(os.listdir(place / "manifests")) == len(manifests)  # none was written again


def manifests_of(place: Path, path: str) -> list[str]:
    import json

    repository = open_repository(place)
    snapshot = repository.inspect_snapshot(repository.lookup_branch("main"))
    snapshot = snapshot if isinstance(snapshot, dict) else json.loads(snapshot)
    (node,) = [node for node in snapshot["nodes"] if node["path"] == path]
    return [one["id"] for one in node["manifest_refs"]]


def test_rows_of_one_file_have_its_number() -> None:
    file = np.zeros((3, 1), np.int64)
    some = rows_of(steps.Manifest(index=file, address=file[:, 0], nbytes=file[:, 0], source=4), slice(1, 3))
    assert (some.source, some.count) == (4, 2)


def test_the_history_shows_the_parts(tmp_path: Path) -> None:
    place = tmp_path / "repository"
    for first, message in ((0, "old"), (7, "new")):
        translate(make_numbers(tmp_path / "a.h5", first), f"icechunk+file://{place}", message=message)
        np.testing.assert_array_equal(numbers(place), np.arange(36000) + first)
    parts = [f"(part {number})" for number in (4, 3, 2, 1)]
    told = [text for name in ("new", "old") for text in (name, *(f"{name} {part}" for part in parts))]
    assert messages(place) == told
    assert open_repository(place).list_branches() == {"main"}
    config = icechunk.Repository.fetch_config(local_storage(place))
    assert config.caching is None or config.caching.num_chunk_refs != 0


def test_a_new_branch_starts_empty(tmp_path: Path) -> None:
    place = tmp_path / "repository"
    url = f"icechunk+file://{place}"
    translate(make_numbers(tmp_path / "a.h5", 0), url)
    translate(make_numbers(tmp_path / "b.h5", 5), url, branch="trial", message="other")
    np.testing.assert_array_equal(numbers(place, "trial"), np.arange(36000) + 5)
    np.testing.assert_array_equal(numbers(place), np.arange(36000))
    assert len(messages(place, "trial")) == 5


@pytest.mark.parametrize("branch", ["main", "trial"])
def test_who_commits_in_between_wins(branch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "repository"
    url, source = f"icechunk+file://{place}", make_numbers(tmp_path / "a.h5", 0)
    translate(source, url, message="first")
    commit = _Writer._commit

    def commit_late(self: Any, session: Any, message: str, own_metadata: Any) -> str:
        if own_metadata is not None and message == "slower":
            translate(source, url, message="faster", branch=branch)
        return commit(self, session, message, own_metadata)

    monkeypatch.setattr(_Writer, "_commit", commit_late)
    with pytest.raises(OutputError, match="another writer has committed"):
        translate(source, url, message="slower", branch=branch)
    assert messages(place, branch)[0] == "faster"
    assert not any(message.startswith("slower") for message in messages(place, branch))
    assert open_repository(place).list_branches() == {"main", branch}


def test_a_failure_leaves_the_branch_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "repository"
    url, source = f"icechunk+file://{place}", make_numbers(tmp_path / "a.h5", 0)
    translate(source, url, message="first")
    before = messages(place)
    calls: list[int] = []

    def fail(self: Any, store: Any, step: Any) -> None:
        calls.append(len(calls))
        if len(calls) == 3:
            raise MemoryError
        original(self, store, step)

    original = _Writer._set_references
    monkeypatch.setattr(_Writer, "_set_references", fail)
    with pytest.raises((OutputError, MemoryError)):
        translate(source, url, message="second")
    assert messages(place) == before
    assert open_repository(place).list_branches() == {"main"}


KILLED = """
import os, signal, sys
from h5zarr.commands.translate.translate import translate
from h5zarr.containers.icechunk import icechunk_writing, steps, virtual_refs

virtual_refs._MANIFEST, steps._STEP = 30, 100
commit, calls = icechunk_writing._Writer._commit, []
def kill(self, *arguments):
    snapshot = commit(self, *arguments)
    calls.append(snapshot)
    if len(calls) == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return snapshot
icechunk_writing._Writer._commit = kill
translate(sys.argv[1], sys.argv[2], message="new")
"""


@pytest.mark.parametrize("count", [1, 3, 5])
def test_who_is_killed_leaves_the_old_state_and_a_branch_that_a_later_run_removes(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "repository"
    url, source = f"icechunk+file://{place}", make_numbers(tmp_path / "a.h5", 0)
    translate(source, url, message="old")
    make_numbers(source, 3)
    done = subprocess.run([sys.executable, "-c", KILLED, str(source), url, str(count)], capture_output=True, text=True)
    assert done.returncode == -9
    assert messages(place)[0] == "old"
    (left,) = open_repository(place).list_branches() - {"main"}
    assert left.startswith("h5zarr-writing-")
    translate(source, url, message="soon")
    assert open_repository(place).list_branches() == {"main", left}
    now = time.time()
    monkeypatch.setattr(steps.time, "time", lambda: now + 4000)
    translate(source, url, message="later")
    assert open_repository(place).list_branches() == {"main"}
    np.testing.assert_array_equal(numbers(place), np.arange(36000) + 3)


@pytest.fixture
def s3_place() -> Iterator[tuple[str, Mapping[str, Any]]]:
    with s3_server() as options:
        import s3fs  # type: ignore[import-untyped, unused-ignore]

        s3fs.S3FileSystem(**options, skip_instance_cache=True).mkdir("in-steps")
        yield "icechunk+s3://in-steps/repository", {**options, "region": "us-east-1"}


def test_a_repository_on_s3_is_written_in_steps(s3_place: tuple[str, Mapping[str, Any]], tmp_path: Path) -> None:
    import zarr

    import h5zarr

    url, options = s3_place
    for first in (0, 3):
        translate(make_numbers(tmp_path / "a.h5", first), url, output_options=options)
        storage = {"s3": dict(options), "file": {}}
        store = h5zarr.open_store(url, storage_options=storage, allow=[str(tmp_path)])
        np.testing.assert_array_equal(zarr.open_group(store, mode="r")["x"][...], np.arange(36000) + first)
        store.close()


def test_only_the_first_references_of_a_file_are_compared_with_the_containers(tmp_path: Path, monkeypatch) -> None:
    """The others have the same location."""
    if not hasattr(icechunk.IcechunkStore, "set_virtual_refs_arr"):
        pytest.skip("Icechunk 1 has no such call")
    compared = []
    original = icechunk.IcechunkStore.set_virtual_refs_arr

    def note(self: Any, path: str, shape: Any, locations: list[str], *arguments: Any, **named: Any) -> Any:
        compared.append((locations[0], named["validate_containers"]))
        return original(self, path, shape, locations, *arguments, **named)

    monkeypatch.setattr(icechunk.IcechunkStore, "set_virtual_refs_arr", note)
    files = [RawFile(tmp_path / f"{number}.bin") for number in range(2)]
    arrays = {f"/{name}": make_array(files[0], VALUES[0], (4, 5)) for name in "ab"}
    write_icechunk(make_hierarchy(files, arrays), PROVENANCE, f"icechunk+file://{tmp_path}/repository")
    assert compared == [(files[0].url, True), (files[0].url, False)]
