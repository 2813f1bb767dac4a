"""Scan a file. The first bytes of the file determine its format."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from h5zarr.errors import H5ZarrError, SourceError
from h5zarr.hdf5.file import read_file
from h5zarr.hdf5.model import H5File
from h5zarr.hdf5.scope import WHOLE, Scope
from h5zarr.io.access import Access
from h5zarr.io.source import Source, open_source
from h5zarr.io.span import Span
from h5zarr.io.steps import Step, bounded, run
from h5zarr.limits import USUAL, Limits
from h5zarr.netcdf3.classic_file import ClassicFile
from h5zarr.netcdf3.header import is_classic
from h5zarr.netcdf3.layout import read_classic


def scan(
    source: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
    anon: bool = False,
    network: Mapping[str, float] | None = None,
    limits: Mapping[str, int] | None = None,
) -> H5File | ClassicFile:
    """Read all metadata of an HDF5 or netCDF file, as the file states them.

    Parameters
    ----------
    source
        A path, or any URL that fsspec opens.
    storage_options, anon, network, limits
        How to open the file, as in `h5zarr.translate`.

    Returns
    -------
    H5File or ClassicFile
        For HDF5 and netCDF-4, an `H5File`: groups, links, attributes with values, datasets with their chunk tables;
        `walk()` and `datasets()` iterate over them. For netCDF-3, a `ClassicFile`: `header` has dimensions, attributes
        and variables with their positions. In both, `problems` lists what cannot be read. Both can be pickled.

    Raises
    ------
    H5ZarrError
        Nothing can be read.

    Examples
    --------
    >>> import h5zarr
    >>> file = h5zarr.scan("ocean.nc")
    >>> file
    <h5zarr.H5File of ocean.nc: 6 datasets in 1 group, 0 problems>
    >>> dict(file.datasets())["/sst"]
    <Dataset: FixedPoint, shape (18, 40, 120), 20 chunks, 8 attributes>
    >>> classic = h5zarr.scan("classic_by_netcdf.nc")
    >>> [variable.name for variable in classic.header.variables][:2]
    ['never_written', 'written']
    """
    access = Access.from_options(storage_options, network, limits, anon=anon)
    with open_source(source, access) as opened:
        return scan_any(opened, access.limits)


def scan_source(source: Source, limits: Limits = USUAL) -> H5File:
    """Return all metadata of an open HDF5 source. The source's log then records the requests."""
    with paused_collector(), naming_errors(source.url):
        step = read_file(source.url, source.nbytes, limits)
        return run(step, bounded(source.read_many, limits), source.planner)


def scan_any(source: Source, limits: Limits = USUAL, scope: Scope = WHOLE) -> H5File | ClassicFile:
    """Return the metadata of an open source in any supported format: all, or those of one group."""
    with paused_collector(), naming_errors(source.url):
        step = read_any(source.url, source.nbytes, limits, scope)
        return run(step, bounded(source.read_many, limits), source.planner)


def read_any(url: str, nbytes: int, limits: Limits = USUAL, scope: Scope = WHOLE) -> Step[H5File | ClassicFile]:
    """Return the metadata of a file, using the parser for its format, without extra rounds.

    The HDF5 parser first asks for the beginning of the file. If that is netCDF-3, the netCDF-3 parser continues with
    it.
    """
    reading = read_file(url, nbytes, limits, scope)
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
def naming_errors(url: str) -> Iterator[None]:
    """Name the file in errors about its content. Errors of sources already name theirs."""
    try:
        yield
    except H5ZarrError as error:
        if not isinstance(error, SourceError):
            error.naming(url)
        raise


@contextmanager
def paused_collector() -> Iterator[None]:
    """Disable Python's cycle collector.

    All objects that a scan creates stay alive, but the collector would visit them repeatedly. That took 5 to 25 % of
    the time for a file with 2,000 datasets.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
