"""Open a local or remote file with another library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from h5zarr.commands.verify.classic_truth import ClassicTruth
from h5zarr.commands.verify.hdf5_truth import H5Truth
from h5zarr.errors import SourceError
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.io.source import open_source
from h5zarr.io.span import Span
from h5zarr.packages import missing

Truth: TypeAlias = H5Truth | ClassicTruth


@contextmanager
def open_truth(location: Location, access: Access) -> Iterator[Truth]:
    """Open the file with another library. Raises an H5ZarrError with the reason if that fails."""
    with open_source(location, access) as source:
        (head,) = source.read_many([Span(0, min(4, source.nbytes))])
        nbytes = source.nbytes
    truth = _open_classic(location, access, nbytes) if bytes(head[:3]) == b"CDF" else _open_hdf5(location, access)
    try:
        yield truth
    finally:
        truth.close()


def _open_hdf5(location: Location, access: Access) -> H5Truth:
    import h5py

    _load_plugins()
    try:
        return H5Truth(h5py.File(_open_remote(location, access) if location.path is None else location.path, "r"))
    except OSError as error:
        what = f"{location}: h5py cannot open it: {str(error).partition(chr(10))[0]}"
        raise SourceError(what, remedy="Check the file with h5dump.") from None


def _open_classic(location: Location, access: Access, nbytes: int) -> ClassicTruth:
    try:
        import netCDF4
    except ImportError:
        raise missing("netCDF4", "comparing a netCDF-3 file", place=str(location)) from None
    try:
        if location.path is not None:
            return ClassicTruth(netCDF4.Dataset(location.path, "r"))
        with _open_remote(location, access) as file:  # the library opens no URLs, but accepts bytes in memory
            return ClassicTruth(netCDF4.Dataset("remote.nc", "r", memory=file.read(nbytes)), is_copy=True)
    except OSError as error:
        what = f"{location}: netCDF4 cannot open it: {error.strerror or type(error).__name__}"
        raise SourceError(what, remedy="Check the file with ncdump -h.") from None


def _open_remote(location: Location, access: Access) -> Any:
    from h5zarr.io.failure import or_source_error
    from h5zarr.io.filesystems import shared_filesystem

    def open_it() -> Any:
        filesystem, path = shared_filesystem(location.for_fsspec(), access.options_for(location))
        return filesystem.open(path, "rb")

    return or_source_error(str(location), access.network.timeout_seconds, open_it)


def _load_plugins() -> None:
    """Let h5py use the installed filter plugins."""
    try:
        import hdf5plugin  # noqa: F401
    except ImportError:
        return
