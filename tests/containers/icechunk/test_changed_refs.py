"""An update of a repository writes only what it changes."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
import zarr

import h5zarr
from h5zarr.containers import file_rows
from h5zarr.containers.icechunk import changed_refs, steps, stored_files, virtual_refs
from h5zarr.errors import MalformedFile, OutputExists
from tests.commands.update.living import LivingArchive, whole, write_granule
from tests.containers.icechunk.repositories import open_repository, open_snapshot

pytest.importorskip("icechunk")


def test_an_update_writes_little(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for hour in range(40):
        write_granule(tmp_path / "data" / f"{hour:02}.nc", [hour], hour)
    out = f"icechunk+file://{tmp_path}/repository"
    h5zarr.combine(str(tmp_path / "data" / "*.nc"), out, along="time")
    seen = []
    find = changed_refs.find_changes

    def watch(*arguments: object) -> object:
        seen.append(find(*arguments))  # type: ignore[arg-type]
        return seen[-1]

    write_granule(tmp_path / "data" / "40.nc", [40], 40)
    write_granule(tmp_path / "data" / "07.nc", [7], 100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("h5zarr.containers.icechunk.icechunk_writing.find_changes", watch)
        h5zarr.update(out)
    (changes,) = seen
    assert changes is not None
    assert changes.references["/v"].index[:, 0].tolist() == [7, 40]
    assert "/x" not in changes.references
    with xr.open_dataset(out, engine="h5zarr") as opened:
        xr.testing.assert_identical(opened.load(), whole(sorted((tmp_path / "data").glob("*.nc"))))


@pytest.mark.parametrize("most", ["_MOST", "_MOST_DELETED"])
def test_large_changes_are_written_as_a_whole(most: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed_refs, most, 0)
    (tmp_path / "data").mkdir()
    archive = LivingArchive(tmp_path / "data", random.Random(9))
    archive.write("h0000.nc", [0, 1])
    out = f"icechunk+file://{tmp_path}/repository"
    h5zarr.combine(str(tmp_path / "data" / "*.nc"), out, along="time")
    archive.settle()
    for _ in range(6):
        archive.pass_hour()
        h5zarr.update(out, prune=True)
        with xr.open_dataset(out, engine="h5zarr") as opened:
            xr.testing.assert_identical(opened.load(), whole(archive.settle()))


@pytest.mark.parametrize("along", ["time", "time=2024-01-01/2024-01-03/PT1H"], ids=["as it is", "laid out"])
def test_large_cubes_change_record_by_record(along: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With records of four chunks, and a table of the files: as for cubes of half a million files."""
    monkeypatch.setattr(stored_files, "_MOST_IN_METADATA", 2)
    monkeypatch.setattr(file_rows, "_USUAL_IN_BLOCK", 3)
    monkeypatch.setattr(virtual_refs, "_MANIFEST", 4)
    monkeypatch.setattr(steps, "_STEP", 9)
    (tmp_path / "data").mkdir()
    archive = LivingArchive(tmp_path / "data", random.Random(5))
    for _ in range(5):
        archive.pass_hour()
    out = f"icechunk+file://{tmp_path}/repository"
    h5zarr.combine(str(tmp_path / "data" / "*.nc"), out, along=along, skip_broken=True)
    archive.settle()
    found = []
    find = changed_refs.find_changes

    def watch(*arguments: Any) -> Any:
        found.append(find(*arguments))
        return found[-1]

    monkeypatch.setattr("h5zarr.containers.icechunk.icechunk_writing.find_changes", watch)
    for _ in range(9):
        archive.pass_hour()
        h5zarr.update(out, prune=True)
        expected = whole(archive.settle())
        with xr.open_dataset(out, engine="h5zarr") as opened:
            xr.testing.assert_equal(opened.sel(time=expected.time).load(), expected)
        group = open_snapshot(tmp_path / "repository")
        assert "_h5zarr" in group
        with xr.open_zarr(group.store, consolidated=False) as plain:  # Icechunk compares the states of the files
            xr.testing.assert_equal(plain.sel(time=expected.time).load(), expected)
    assert any(one is not None and "/v" in one.totals for one in found)


def test_files_that_differ_keep_a_branch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the snapshot has its files in a table."""
    monkeypatch.setattr(stored_files, "_MOST_IN_METADATA", 2)
    for hour in range(6):
        write_granule(tmp_path / f"{hour}.nc", [hour], hour)
    out = f"icechunk+file://{tmp_path}/repository"
    h5zarr.combine([str(tmp_path / f"{hour}.nc") for hour in range(5)], out, along="time")
    with pytest.raises(OutputExists, match=r"branch main holds references to .*0\.nc and 4 more"):
        h5zarr.combine([str(tmp_path / f"{hour}.nc") for hour in (0, 2, 3, 5)], out, along="time")
    h5zarr.combine(str(tmp_path / "*.nc"), out, along="time")


@pytest.mark.parametrize("damage", ["described", "block", "totals"])
def test_damaged_tables_are_named(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_files, "_MOST_IN_METADATA", 2)
    monkeypatch.setattr(virtual_refs, "_MANIFEST", 2)
    for hour in range(6):
        write_granule(tmp_path / f"{hour}.nc", [hour], hour)
    out = f"icechunk+file://{tmp_path}/repository"
    h5zarr.combine(str(tmp_path / "*.nc"), out, along="time")
    repository = open_repository(tmp_path / "repository")
    (newest, *_) = repository.ancestry(branch="main")
    own = json.loads(json.dumps(newest.metadata["h5zarr"]))
    session = repository.writable_session("main")
    (name, *_), *_ = own["files"]["blocks"]
    message = "the table of the files of the cube is not described in h5zarr's form"
    if damage == "described":
        own["files"]["blocks"] = [[name, 0, 0]]
    elif damage == "totals":
        own["totals"]["/v"]["records"] = [[0, 10**9]]
        message = "/v: the totals of its records do not have h5zarr's form"
    else:
        zarr.open_array(session.store, path=f"_h5zarr/{name}")[3] ^= 1
        message = "a block of the table of the files of the cube is missing or damaged"
    zarr.open_group(session.store).attrs["changed"] = True
    session.commit("damage", metadata={"h5zarr": own})
    with pytest.raises(MalformedFile, match=re.escape(message)):
        h5zarr.verify(out)
