"""Read HDF5 and netCDF metadata as Zarr, without copying a byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from h5zarr.scanning import scan
    from h5zarr.translating import translate

__version__ = "0.1.0"
__all__ = ["__version__", "scan", "translate"]


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: `h5zarr --help` needs none of it."""
    if name == "scan":
        from h5zarr.scanning import scan

        return scan
    if name == "translate":
        from h5zarr.translating import translate

        return translate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
