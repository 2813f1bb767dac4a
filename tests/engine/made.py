"""Files made by tests, compared as all others are."""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path

from h5zarr.translating import Options, translate
from tests.engine.comparison import Agreement, compare
from tests.roundtrip.xarray_library import Engine


@cache
def _engine() -> Engine:
    started = Engine("tests.engine.netcdf_worker")
    atexit.register(started.close)
    return started


def agreement_of(path: Path, options: Options | None = None) -> Agreement:
    """Return how the engine over a file's references agrees with xarray's netCDF engine over the file."""
    shown = _engine().show(path)
    assert not isinstance(shown, str), shown
    return compare(path, translate(path, options=options), shown)


def check_identical(path: Path, variables: int, options: Options | None = None) -> None:
    """Fail unless all that there is, and that many variables, are identical without an excuse."""
    found = agreement_of(path, options)
    assert not found.unopened
    assert not found.differences
    assert not found.excused
    assert (found.variables, found.identical) == (variables, variables)
