"""Read HDF5 and netCDF metadata as Zarr, without copying a byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from h5zarr.hdf5.model import H5File
    from h5zarr.io.policy import ReadPolicy

__version__ = "0.1.0"
__all__ = ["__version__", "scan"]


def scan(url: str, storage_options: dict[str, Any] | None = None, policy: ReadPolicy | None = None) -> H5File:
    """Return all metadata of the HDF5 file at `url`: a local path or any fsspec URL."""
    from h5zarr.hdf5.file import read_file
    from h5zarr.io.source import open_source
    from h5zarr.io.steps import run

    with open_source(url, storage_options, policy) as source:
        return run(read_file(source.url, source.nbytes), source.read_many)
