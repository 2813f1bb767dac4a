"""Large arrays are written in parts, with several manifests, and keep the same references."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from h5zarr.containers.icechunk import virtual_refs
from tests.containers.hierarchies import PROVENANCE, RawFile, make_array, make_hierarchy
from tests.containers.icechunk.repositories import local_storage, open_snapshot, write_icechunk

icechunk = pytest.importorskip("icechunk")

VALUES = np.arange(360, dtype="<i4").reshape(9, 8, 5)
MISSING = ((0, 0, 0), (3, 1, 2), (3, 1, 3), (8, 7, 4))
ODD_NAME = "a (b)[1]-+.*é"


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_refs, "_BATCH", 7)
    monkeypatch.setattr(virtual_refs, "_MANIFEST", 30)


def count_manifests(place: Path) -> int:
    return len(os.listdir(place / "manifests"))


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("missing", [(), MISSING])
def test_an_array_in_several_manifests_has_all_of_its_chunks(
    count: int, missing: tuple[tuple[int, ...], ...], tmp_path: Path
) -> None:
    files = [RawFile(tmp_path / f"{number}.bin") for number in range(count)]
    large = make_array(files, VALUES, (1, 1, 1), missing=missing, fill_value=-1)
    few = make_array(files, VALUES[0], (4, 5), inline=[(1, 0)])
    place = tmp_path / "repository"
    write_icechunk(make_hierarchy(files, {f"/{ODD_NAME}": large, "/few": few}), PROVENANCE, f"icechunk+file://{place}")
    expected = VALUES.copy()
    for index in missing:
        expected[index] = -1
    group = open_snapshot(place)
    np.testing.assert_array_equal(group[ODD_NAME][...], expected)
    np.testing.assert_array_equal(group["few"][...], VALUES[0])
    assert count_manifests(place) == 18 + 1  # half a plane of 40 chunks each


def test_how_it_is_laid_out_is_not_kept_in_the_configuration(tmp_path: Path) -> None:
    file = RawFile(tmp_path / "data.bin")
    hierarchy = make_hierarchy(file, {"/x": make_array(file, VALUES, (1, 1, 1))})
    place = tmp_path / "repository"
    write_icechunk(hierarchy, PROVENANCE, f"icechunk+file://{place}")
    config = icechunk.Repository.fetch_config(local_storage(place))
    assert list(config.virtual_chunk_containers) == [f"file://{tmp_path}/"]
    assert config.manifest is None or config.manifest.splitting is None


def test_a_configured_layout_is_kept(tmp_path: Path) -> None:
    file = RawFile(tmp_path / "data.bin")
    hierarchy = make_hierarchy(file, {"/x": make_array(file, VALUES, (1, 1, 1))})
    place = tmp_path / "repository"
    axis, anything = icechunk.ManifestSplitDimCondition.Axis, icechunk.ManifestSplitCondition.AnyArray
    splitting = icechunk.ManifestSplittingConfig.from_dict({anything(): {axis(0): 3}})
    config = icechunk.RepositoryConfig(manifest=icechunk.ManifestConfig(splitting=splitting))
    icechunk.Repository.create(local_storage(place), config=config).save_config()
    write_icechunk(hierarchy, PROVENANCE, f"icechunk+file://{place}")
    np.testing.assert_array_equal(open_snapshot(place)["x"][...], VALUES)
    assert count_manifests(place) == 3


def test_an_array_that_grows_and_shrinks_is_laid_out_anew(tmp_path: Path) -> None:
    file = RawFile(tmp_path / "data.bin")
    place = tmp_path / "repository"
    for values in (VALUES, VALUES[:2] + 5, VALUES[:, :3, :1] + 9, VALUES + 1):
        hierarchy = make_hierarchy(file, {"/x": make_array(file, values, (1, 1, 1))})
        write_icechunk(hierarchy, PROVENANCE, f"icechunk+file://{place}")
        np.testing.assert_array_equal(open_snapshot(place)["x"][...], values)


SCRIPT = """
import os, sys
{first}
from h5zarr.containers.icechunk.storage import is_silent, load_icechunk
icechunk = load_icechunk("here")
print(is_silent(), "ICECHUNK_NO_LOGS" in os.environ)
icechunk.Repository.create(icechunk.local_filesystem_storage(sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("first", "wanted", "told"),
    [("", {}, "True False"), ("import icechunk", {}, "False False"), ("", {"ICECHUNK_LOG": "warn"}, "False False")],
    ids=["first", "second", "with logs wanted"],
)
def test_icechunk_is_without_logs_unless_they_are_wanted(
    first: str, wanted: dict[str, str], told: str, tmp_path: Path
) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ICECHUNK")}
    command = [sys.executable, "-c", SCRIPT.format(first=first), str(tmp_path / "repository")]
    done = subprocess.run(command, env={**environment, **wanted}, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == told
    assert ("not safe for concurrent commits" in done.stdout + done.stderr) == (told == "False False")
