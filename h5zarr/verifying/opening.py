"""Opening the file with another library, near or far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from h5zarr.errors import SourceError, Unsupported
from h5zarr.io.source import open_source
from h5zarr.io.span import Span
from h5zarr.io.url import display_url, find_local_path
from h5zarr.read.sources import options_for
from h5zarr.verifying.classic_truth import ClassicTruth
from h5zarr.verifying.hdf5_truth import H5Truth

Truth: TypeAlias = H5Truth | ClassicTruth


@contextmanager
def open_truth(url: str, storage_options: Mapping[str, Any]) -> Iterator[Truth]:
    """Open the file with another library. Raises an H5ZarrError that says why it cannot."""
    options = options_for(url, dict(storage_options))
    with open_source(url, options) as source:
        (head,) = source.read_many([Span(0, min(4, source.nbytes))])
        nbytes = source.nbytes
    truth = _open_classic(url, options, nbytes) if bytes(head[:3]) == b"CDF" else _open_hdf5(url, options)
    try:
        yield truth
    finally:
        truth.close()


def _open_hdf5(url: str, options: Mapping[str, Any]) -> H5Truth:
    import h5py

    _load_plugins()
    path = find_local_path(url)
    try:
        return H5Truth(h5py.File(path if path is not None else _open_remote(url, options), "r"))
    except OSError as error:
        what = f"{display_url(url)}: h5py does not open it: {str(error).partition(chr(10))[0]}"
        raise SourceError(what, remedy="Check the file with h5dump.") from None


def _open_classic(url: str, options: Mapping[str, Any], nbytes: int) -> ClassicTruth:
    try:
        import netCDF4
    except ImportError:
        what = f"{display_url(url)}: the package netCDF4 is needed to read a netCDF-3 file"
        raise Unsupported(what, remedy="pip install netCDF4") from None
    path = find_local_path(url)
    try:
        if path is not None:
            return ClassicTruth(netCDF4.Dataset(path, "r"))
        with _open_remote(url, options) as file:  # the library opens no URLs, but it takes what is in memory
            return ClassicTruth(netCDF4.Dataset("remote.nc", "r", memory=file.read(nbytes)), is_copy=True)
    except OSError as error:
        what = f"{display_url(url)}: netCDF4 does not open it: {error.strerror or type(error).__name__}"
        raise SourceError(what, remedy="Check the file with ncdump -h.") from None


def _open_remote(url: str, options: Mapping[str, Any]) -> Any:
    from h5zarr.io.failure import or_source_error
    from h5zarr.io.filesystems import shared_filesystem
    from h5zarr.io.quoting import settle_url

    def open_it() -> Any:
        filesystem, path = shared_filesystem(settle_url(url), options)
        return filesystem.open(path, "rb")

    return or_source_error(display_url(url), 60, open_it)


def _load_plugins() -> None:
    """Let h5py use the filters that are installed."""
    try:
        import hdf5plugin  # noqa: F401
    except ImportError:
        return
