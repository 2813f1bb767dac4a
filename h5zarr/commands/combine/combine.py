"""The combine command: open the sources, put them in order, join their arrays, and write the result."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from h5zarr.commands.combine.along import Along, AlongInput, parse_along
from h5zarr.commands.combine.cube import Cube, with_recipe
from h5zarr.commands.combine.plan import join_sources
from h5zarr.commands.combine.recipe import Recipe, along_texts, name_sources
from h5zarr.commands.combine.settings import Choices
from h5zarr.commands.combine.sources import CubeSources, OnFile, find_pieces
from h5zarr.commands.translate.options import make_options
from h5zarr.commands.translate.translation import ProblemsFound, Translation
from h5zarr.containers.container import Commit, Output
from h5zarr.containers.fitting import fit_into
from h5zarr.containers.output import check_output
from h5zarr.containers.registry import check_output_before, container_for_output
from h5zarr.errors import ArgumentError, OutputError
from h5zarr.io.access import Access
from h5zarr.io.location import Location


def combine(
    sources: CubeSources,
    out: str | os.PathLike[str] | None = None,
    *,
    along: AlongInput | None = None,
    merge: bool = False,
    on_duplicate: str = "refuse",
    constant: str = "refuse",
    attributes: str = "first",
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
    dry_run: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    anon: bool = False,
    network: Mapping[str, float] | None = None,
    limits: Mapping[str, int] | None = None,
    allow: Sequence[str] = (),
    output_options: Mapping[str, Any] | None = None,
    on_file: OnFile | None = None,
) -> Cube:
    """Join many files into one dataset, without copying a byte, and write its references if `out` is given.

    The order of files does not matter: they are ordered by their coordinate. Values are never silently wrong: if files
    differ in a way that one dataset cannot express, nothing is written and the error names them.

    Parameters
    ----------
    sources
        Paths, URLs, directories or patterns: HDF5 and netCDF files, or references to them in any container. The
        directory of an index stands for the references in it, so that no file is read again. Results of
        `h5zarr.translate` and `h5zarr.translate_many` are joined as they are.
    out
        Where to write: a name ending in .json, .json.gz, .json.zst or .parquet, `icechunk+file:///DIRECTORY` or
        `icechunk+s3://BUCKET/PREFIX`; `-` is standard output. None writes nothing.
    along
        The dimension to join along, or several for tiles. If no file has it, it is a new dimension, ordered by
        a scalar variable of that name, else in the order given. `"run=name:PATTERN"` takes the coordinate of each file
        from its name, by a regular expression with one group or a date format such as `ocean_%Y%m%d`;
        `"run=attr:NAME"` takes it from an attribute of the root; a mapping such as `{"run": function}` calls a
        function with the name of each file. The default is the unlimited dimension, else time, else the only dimension
        whose length differs. Files without any of these are merged, if they have different variables.
    merge
        Join no dimension: the dataset has the variables of all files. What several files have must be the same.
    on_duplicate
        Which file to use if several have the same part of a variable: "refuse" raises an error that names them,
        "first" and "last" go by the order of `sources`, "newest" by the time of the last change.
    constant
        What to do if a variable without the joined dimension differs between files: "refuse", use the "first", or
        give it the joined dimension ("along"), so that each file keeps its own.
    attributes
        "first" takes the attributes of the first file along the axis, "drop-conflicts" leaves out those that differ,
        "strict" raises an error if any differ.
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
        How many remote files to read at a time. Local files are read one by one, which is faster.
    branch, message, overwrite
        How to write, as in `h5zarr.translate`.
    dry_run
        Write nothing. The result says what would be written.
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
    >>> import h5zarr, xarray
    >>> h5zarr.combine(["ocean.nc"], "cube.json", along="time")
    <h5zarr.Cube of 1 file: joined along time (18), 6 arrays, 60 chunks, 0 problems>
    >>> dict(xarray.open_dataset("cube.json", engine="h5zarr").sizes)
    {'time': 18, 'lat': 40, 'lon': 120}
    """
    started = time.perf_counter()
    options = make_options(
        group=group, include=include, exclude=exclude, strict=strict, max_inline_bytes=max_inline_bytes
    )
    choices = Choices(on_duplicate=on_duplicate, constant=constant, attributes=attributes)
    given = _find_axes(along, merge=merge)
    access = Access.from_options(storage_options, network, limits, allow, anon=anon)
    if not isinstance(sources, str | os.PathLike | Translation):
        sources = list(sources)
    names = name_sources(sources)
    found = find_pieces(sources, access)
    output = None
    if out is not None:
        first, *others = found.locations
        output = Output(
            location=Location.parse(out),
            storage_options=output_options,
            source_options=access.options_for(first.text),
            commit=Commit.of(branch, message),
            overwrite=overwrite,
            network=access.network,
        )
        check_output_before(output, first, options.zarr_format, is_file=False)
        for location in others:
            check_output(output.location, location)
    how: dict[str, Any] = {"at_once": at_once, "skip_broken": skip_broken, "on_file": on_file}
    cube = join_sources(found, given, options, access, choices, **how)
    recipe = Recipe(
        sources=names,
        along=along_texts(given) if given else tuple(axis.name for axis in cube.axes),
        on_duplicate=on_duplicate,
        constant=constant,
        attributes=attributes,
        group=group,
        include=tuple(include),
        exclude=tuple(exclude),
        max_inline_bytes=max_inline_bytes,
    )
    cube = replace(with_recipe(cube, recipe.to_json()), seconds=time.perf_counter() - started)
    return cube if output is None or dry_run else write_cube(cube, output, strict=strict)


def _find_axes(along: AlongInput | None, *, merge: bool) -> tuple[Along, ...] | None:
    """Return the axes that the user chose; none to merge files, and None if the files determine them."""
    if merge and along is not None:
        raise ArgumentError("merge=True joins no dimension, but along names one", remedy="Give only one of the two.")
    if merge:
        return ()
    return None if along is None else parse_along(along)


def write_cube(cube: Cube, output: Output, *, strict: bool) -> Cube:
    """Write a cube and return what was written. With `strict`, raise ProblemsFound if anything is left out."""
    container = container_for_output(output.location)
    fitted = fit_into(cube.fitted, container)
    if strict and fitted.hierarchy.problems:
        raise ProblemsFound(fitted.hierarchy.problems)
    made = replace(cube, fitted=fitted)
    if _has_references(cube) and not _has_references(made):
        # Coordinates would be left, which nobody wants alone.
        what = f"none of the data fits into this container: {fitted.hierarchy.problems[-1]}"
        raise OutputError(str(output.location), what, remedy=fitted.hierarchy.problems[-1].remedy)
    provenance = replace(cube.provenance, problems=fitted.hierarchy.problems)
    container.write(fitted, provenance, output)
    return replace(made, provenance=provenance, is_written=True)


def _has_references(cube: Cube) -> bool:
    return any(one.manifest.count for one in cube.arrays().values())
