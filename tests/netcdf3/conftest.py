"""Loads hdf5plugin before netCDF4: the other way round its blosc filter fails, and with it other tests."""

from __future__ import annotations

from contextlib import suppress

with suppress(ImportError):
    import hdf5plugin  # noqa: F401
