"""An update of a repository writes only what it changes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import xarray as xr

import h5zarr
from h5zarr.containers.icechunk import changed_refs
from tests.commands.update.living import LivingArchive, whole, write_granule

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
