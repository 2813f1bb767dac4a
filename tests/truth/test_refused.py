"""Files that h5zarr refuses are refused, for a reason that is known. Other tests show that it reads all the others."""

from __future__ import annotations

from pathlib import Path

import pytest

import h5zarr
from h5zarr.errors import MalformedFile, Unsupported
from tests.collections_of_files import SHARED, name_of, parameters, shared_classic_files, shared_files
from tests.truth.unreadable import REFUSED, UNSUPPORTED

FOLDERS = ("corpus", "traps", "hostile")


def refused_files(folder: str) -> list[object]:
    """Return pytest parameters for the refused files of a collection; there may be none."""
    names = sorted(name for name in REFUSED if name.startswith(f"{folder}/"))
    return parameters([SHARED / name for name in names], SHARED / folder) if names and SHARED.is_dir() else []


@pytest.mark.parametrize("path", [one for folder in FOLDERS for one in refused_files(folder)])
def test_a_file_on_the_list_is_refused_for_the_listed_reason(path: Path) -> None:
    expected = Unsupported if REFUSED[name_of(path)] == UNSUPPORTED else MalformedFile
    with pytest.raises(expected):
        h5zarr.translate(path)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_file_that_is_not_on_the_list_is_translated(folder: str) -> None:
    paths = [*shared_files(folder), *shared_classic_files(folder)]
    if not paths:
        pytest.skip(f"the collection {folder} is not beside the project")
    for path in paths:
        if name_of(path) not in REFUSED:
            h5zarr.translate(path)
