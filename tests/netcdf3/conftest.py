"""Loads hdf5plugin before netCDF4: the other way round, its blosc filter finds the wrong library, and other tests fail."""

from __future__ import annotations

from contextlib import suppress

with suppress(ImportError):
    import hdf5plugin  # noqa: F401
