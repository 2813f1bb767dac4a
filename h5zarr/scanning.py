"""The hallway from a URL to a scanned file. Which format a file has is decided here, by its first bytes."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from h5zarr.hdf5.file import read_file
from h5zarr.hdf5.model import H5File
from h5zarr.io.policy import ReadPolicy
from h5zarr.io.source import Source, open_source
from h5zarr.io.span import Span
from h5zarr.io.steps import Step, bounded, run
from h5zarr.limits import USUAL, Limits
from h5zarr.netcdf3.header import is_classic
from h5zarr.netcdf3.layout import read_classic
from h5zarr.netcdf3.model import ClassicFile


def scan(
    url: str,
    storage_options: dict[str, Any] | None = None,
    policy: ReadPolicy | None = None,
    limits: Limits = USUAL,
) -> H5File:
    """Return all metadata of the HDF5 file at `url`: a local path or any fsspec URL. (For netCDF-3, see `translate`.)

    What cannot be read is in the result's `problems`; an `H5ZarrError` means that nothing could be read.
    """
    with open_source(url, storage_options, policy) as source:
        return scan_source(source, limits)


def scan_source(source: Source, limits: Limits = USUAL) -> H5File:
    """Return all metadata of an open source, which must be HDF5; its log then says what that took."""
    with paused_collector():
        step = read_file(source.url, source.nbytes, limits)
        return run(step, bounded(source.read_many, limits), source.far)


def scan_any(source: Source, limits: Limits = USUAL) -> H5File | ClassicFile:
    """Return all metadata of an open source of any format that h5zarr reads."""
    with paused_collector():
        step = read_any(source.url, source.nbytes, limits)
        return run(step, bounded(source.read_many, limits), source.far)


def read_any(url: str, nbytes: int, limits: Limits = USUAL) -> Step[H5File | ClassicFile]:
    """Return what a file holds, by the parser of its format, in no more rounds than that parser takes.

    HDF5's asks first for the beginning of the file. Where that is netCDF-3's, the other parser goes on with it.
    """
    reading = read_file(url, nbytes, limits)
    wanted = next(reading)
    assert isinstance(wanted[0], Span)
    assert wanted[0].address == 0
    answer = yield wanted
    if is_classic(bytes(answer[0][:4])):
        reading.close()
        return (yield from read_classic(url, nbytes, bytes(answer[0]), limits))
    try:
        while True:
            answer = yield reading.send(answer)
    except StopIteration as finished:
        file: H5File = finished.value
        return file


@contextmanager
def paused_collector() -> Iterator[None]:
    """Keep Python's cycle collector from running.

    A scan makes objects that all stay, and the collector would walk them again and again: 5 to 25 % of the time
    was seen with 2,000 datasets.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
