"""The files that tests read: the project's samples, and larger collections in a folder beside the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.truth.unreadable import NOT_OPENED_BY_H5PY, REFUSED

PROJECT = Path(__file__).resolve().parent.parent
SAMPLES = PROJECT / "sample_data"
SHARED = Path(os.environ.get("H5ZARR_SHARED", PROJECT.parent / "shared"))

_CLASSIC = b"CDF"
_NOT_FILES = {".csv", ".py", ".raw", ".bin", ".dat", ".md"}


def sample_files() -> list[Path]:
    """Return every HDF5 file of `sample_data/`."""
    return [path for path in _samples() if _first_bytes(path) != _CLASSIC]


def classic_samples() -> list[Path]:
    """Return every netCDF classic file of `sample_data/`."""
    return [path for path in _samples() if _first_bytes(path) == _CLASSIC]


def shared_classic_files(folder: str) -> list[Path]:
    """Return the netCDF classic files of a shared collection; none if it is absent."""
    found = (path for path in sorted((SHARED / folder).rglob("*")) if path.is_file())
    return [path for path in found if _first_bytes(path) == _CLASSIC]


def _samples() -> list[Path]:
    return sorted([*SAMPLES.glob("*.h5"), *SAMPLES.glob("*.nc")])


def shared_files(folder: str) -> list[Path]:
    """Return the files of a shared collection that are not classic netCDF; none if it is absent."""
    found = (path for path in sorted((SHARED / folder).rglob("*")) if path.is_file())
    return [path for path in found if path.suffix not in _NOT_FILES and _first_bytes(path) != _CLASSIC]


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(_CLASSIC))


def parameters(paths: list[Path], root: Path) -> list[object]:
    """Return pytest parameters that are named after the files; or one that skips with a reason if there are none."""
    if not paths:
        reason = f"the collection {root.name} is not beside the project"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason), id=f"no-{root.name}")]
    return [pytest.param(path, id=str(path.relative_to(root))) for path in paths]


def name_of(path: Path) -> str:
    """Return the name of a file in the lists of `tests/truth/unreadable.py`."""
    root = PROJECT if path.is_relative_to(SAMPLES) else SHARED
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


def translatable(paths: list[Path]) -> list[Path]:
    """Return the files that h5zarr must translate: all but those it is known to refuse."""
    return [path for path in paths if name_of(path) not in REFUSED]


def comparable(paths: list[Path]) -> list[Path]:
    """Return the files that both h5zarr and h5py read."""
    return [path for path in translatable(paths) if name_of(path) not in NOT_OPENED_BY_H5PY]


def any_samples() -> list[object]:
    """Return pytest parameters for every file of `sample_data/`, of both formats."""
    return parameters([*sample_files(), *classic_samples()], SAMPLES)


def any_shared(folder: str) -> list[object]:
    """Return pytest parameters for the files of a shared collection, of both formats."""
    return parameters([*shared_files(folder), *shared_classic_files(folder)], SHARED / folder)


def translatable_shared(folder: str, most_nbytes: int | None = None) -> list[object]:
    """Return pytest parameters for the files of a shared collection that h5zarr must translate, of both formats."""
    paths = translatable([*shared_files(folder), *shared_classic_files(folder)])
    small = [path for path in paths if most_nbytes is None or path.stat().st_size <= most_nbytes]
    return parameters(small, SHARED / folder)
