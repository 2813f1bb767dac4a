"""The combine command: open the sources, put them in order, join their arrays, and write the result."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from h5zarr.commands.check.check import find_sources
from h5zarr.commands.check.facts import find_facts
from h5zarr.commands.check.joining import find_axis
from h5zarr.commands.combine.axes import NotJoinable
from h5zarr.commands.combine.cube import Cube, join_pieces
from h5zarr.commands.combine.pieces import UNCUT, CubePiece, open_piece
from h5zarr.commands.translate.many import work_through
from h5zarr.commands.translate.options import Options, make_options, several
from h5zarr.commands.translate.translation import ProblemsFound
from h5zarr.containers.container import Commit, Output
from h5zarr.containers.fitting import fit_into
from h5zarr.containers.output import check_output
from h5zarr.containers.registry import check_output_before, container_for_output
from h5zarr.errors import ArgumentError, H5ZarrError, Problem
from h5zarr.io.access import Access
from h5zarr.io.location import Location


def combine(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str] | None = None,
    *,
    along: str | Sequence[str] | None = None,
    group: str = "/",
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    skip_broken: bool = False,
    strict: bool = False,
    max_inline_bytes: int | None = None,
    at_once: int = 8,
    branch: str | None = None,
    message: str | None = None,
    overwrite: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    anon: bool = False,
    network: Mapping[str, float] | None = None,
    limits: Mapping[str, int] | None = None,
    allow: Sequence[str] = (),
    output_options: Mapping[str, Any] | None = None,
    on_file: Callable[[str, int], None] | None = None,
) -> Cube:
    """Join many files into one dataset, without copying a byte, and write its references if `out` is given.

    The order of files does not matter: they are ordered by their coordinate. Values are never silently wrong: if files
    differ in a way that one dataset cannot express, nothing is written and the error names them.

    Parameters
    ----------
    sources
        Paths, URLs, directories or patterns: HDF5 and netCDF files, or references to them in any container.
    out
        Where to write: a name ending in .json, .json.gz, .json.zst or .parquet, `icechunk+file:///DIRECTORY` or
        `icechunk+s3://BUCKET/PREFIX`; `-` is standard output. None writes nothing.
    along
        The dimension to join along, or several for tiles. If no file has it, it is a new dimension, ordered by
        a scalar variable of that name, else in the order given. The default is the unlimited dimension, else time, else
        the only dimension whose length differs.
    group, include, exclude
        The part of each file to join, as in `h5zarr.translate`.
    skip_broken
        Leave out files that cannot be read, and name them in `problems`. By default, the first one raises its error.
    strict
        Raise `ProblemsFound` and write nothing if anything must be left out.
    max_inline_bytes
        Limit for all inlined arrays together (default 64 MiB): coordinates, and pieces that are stored differently
        from most.
    at_once
        How many files to read at a time.
    branch, message, overwrite
        How to write, as in `h5zarr.translate`.
    storage_options, anon, network, limits, allow
        How to open the files, as in `h5zarr.translate`.
    output_options
        fsspec options for writing `out`.
    on_file
        Called for each file that has been opened, with its name and the number of all files.

    Returns
    -------
    Cube
        `axes` says what was joined; `problems` lists what is left out and why.

    Raises
    ------
    NotJoinable
        Joining the files would give wrong values. Nothing was written.
    H5ZarrError
        A file cannot be read, or `out` cannot be written. Nothing was written.

    Examples
    --------
    >>> cube = h5zarr.combine(["day1.nc", "day2.nc"], "days.json", along="time")  # doctest: +SKIP
    """
    started = time.perf_counter()
    options = make_options(
        group=group, include=include, exclude=exclude, strict=strict, max_inline_bytes=max_inline_bytes
    )
    options = replace(options, chunk_nbytes=UNCUT)
    access = Access.from_options(storage_options, network, limits, allow, anon=anon)
    urls = find_sources(sources, access)
    output = None
    if out is not None:
        output = Output(
            location=Location.parse(out),
            storage_options=output_options,
            source_options=access.options_for(urls[0]),
            commit=Commit.of(branch, message),
            overwrite=overwrite,
        )
        check_output_before(output, Location.parse(urls[0]), options.zarr_format, is_file=False)
        for url in urls[1:]:
            check_output(output.location, Location.parse(url))
    pieces, broken = _open_pieces(urls, access, options, at_once, skip_broken, on_file)
    try:
        cube = join_pieces(pieces, _choose_axes(pieces, along), options.inlining, broken)
    finally:
        for piece in pieces:
            piece.opened.close()
    cube = replace(cube, seconds=time.perf_counter() - started)
    return cube if output is None else _write(cube, output, strict=strict)


def _write(cube: Cube, output: Output, *, strict: bool) -> Cube:
    """Write a cube and return what was written. With `strict`, raise ProblemsFound if anything is left out."""
    container = container_for_output(output.location)
    fitted = fit_into(cube.fitted, container)
    if strict and fitted.hierarchy.problems:
        raise ProblemsFound(fitted.hierarchy.problems)
    provenance = replace(cube.provenance, problems=fitted.hierarchy.problems)
    container.write(fitted, provenance, output)
    return replace(cube, fitted=fitted, provenance=provenance)


def _open_pieces(
    urls: Sequence[str],
    access: Access,
    options: Options,
    at_once: int,
    skip_broken: bool,
    on_file: Callable[[str, int], None] | None,
) -> tuple[list[CubePiece], tuple[Problem, ...]]:
    """Return the pieces in the order of `urls`, and a problem for each file that was skipped."""

    def work(url: str) -> tuple[str, CubePiece | H5ZarrError]:
        try:
            return url, open_piece(url, access, options)
        except H5ZarrError as error:
            return url, error

    found: dict[str, CubePiece | H5ZarrError] = {}
    for url, one in work_through(urls, work, at_once):
        if isinstance(one, H5ZarrError) and not skip_broken:
            raise one
        found[url] = one
        if on_file is not None:
            on_file(str(Location.parse(url)), len(urls))
    pieces = [one for url in urls if isinstance(one := found[url], CubePiece)]
    broken = {url: one for url in urls if isinstance(one := found[url], H5ZarrError)}
    if not pieces:
        raise next(iter(broken.values()))
    return pieces, tuple(
        Problem("/", error.kind, f"{Location.parse(url)} is left out: {error}", error.remedy)
        for url, error in broken.items()
    )


def _choose_axes(pieces: Sequence[CubePiece], along: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the axes. Raises NotJoinable if `along` is None and the files do not determine the axis."""
    if along is not None:
        names = (along,) if isinstance(along, str) else several("along", along)
        if not names or len(set(names)) < len(names):
            raise ArgumentError("along must name at least one dimension, and each only once")
        return names
    axis = find_axis([find_facts(piece.hierarchy) for piece in pieces])
    if axis.name is None:
        raise NotJoinable(f"it is not clear along which dimension to join: {axis.reason}", remedy="Give along=NAME.")
    return (axis.name,)
