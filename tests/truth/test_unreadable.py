"""The list of files that h5zarr refuses is right in both directions, and every listed file exists."""

from __future__ import annotations

from pathlib import Path

import pytest

import h5zarr
from h5zarr.errors import MalformedFile, Unsupported
from tests.collections_of_files import PROJECT, SAMPLES, SHARED, name_of, parameters, shared_classic_files, shared_files
from tests.truth.unreadable import CYCLIC, NOT_OPENED_BY_H5PY, NOT_OPENED_BY_NETCDF, REFUSED, UNSUPPORTED

FOLDERS = ("corpus", "traps", "hostile")


def refused_files(folder: str) -> list[object]:
    """Return pytest parameters for the refused files of a collection, if any."""
    names = sorted(name for name in REFUSED if name.startswith(f"{folder}/"))
    return parameters([SHARED / name for name in names], SHARED / folder) if names and SHARED.is_dir() else []


@pytest.mark.parametrize("path", [one for folder in FOLDERS for one in refused_files(folder)])
def test_a_listed_file_is_refused_for_the_listed_reason(path: Path) -> None:
    expected = Unsupported if REFUSED[name_of(path)] == UNSUPPORTED else MalformedFile
    with pytest.raises(expected):
        h5zarr.translate(path)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_file_that_is_not_listed_is_translated(folder: str) -> None:
    paths = [*shared_files(folder), *shared_classic_files(folder)]
    if not paths:
        pytest.skip(f"the collection {folder} is not beside the project")
    for path in paths:
        if name_of(path) not in REFUSED:
            h5zarr.translate(path)


def test_every_listed_file_exists() -> None:
    names = {*REFUSED, *CYCLIC, *NOT_OPENED_BY_NETCDF, *NOT_OPENED_BY_H5PY}
    folders = {folder: SHARED / folder for folder in FOLDERS} | {"sample_data": SAMPLES}
    present = [name for name in names if folders[name.partition("/")[0]].is_dir()]
    assert not [name for name in present if not any((root / name).is_file() for root in (PROJECT, SHARED))]
