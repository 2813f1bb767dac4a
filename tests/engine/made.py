"""Compares files that tests make in the same way as all others."""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path
from typing import Any

from h5zarr.commands.translate.translate import translate
from tests.truth.agreement import Agreement
from tests.truth.datasets_against_netcdf import compare
from tests.truth.netcdf_library import NetcdfLibrary


@cache
def _library() -> NetcdfLibrary:
    started = NetcdfLibrary()
    atexit.register(started.close)
    return started


def agreement_of(path: Path, options: dict[str, Any] | None = None) -> Agreement:
    """Return how the engine over a file's references agrees with xarray's netCDF engine over the file."""
    shown = _library().datasets(path)
    assert not isinstance(shown, str), shown
    return compare(path, translate(path, **(options or {})), shown)


def check_identical(path: Path, variables: int, options: dict[str, Any] | None = None) -> None:
    """Check that the file has this many variables, and that everything is identical without an allowed difference."""
    found = agreement_of(path, options)
    assert not found.unopened
    assert not found.differences
    assert not found.allowed
    assert (len(found.compared), found.identical) == (variables, variables)
