"""The translate command, from a file to references: open, scan, interpret, select, encode, write."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from h5zarr import __version__
from h5zarr.commands.translate.options import Options, make_options
from h5zarr.commands.translate.related import Related, find_related
from h5zarr.commands.translate.translation import ProblemsFound, Translation
from h5zarr.containers.container import Commit, Container, Fitted, Output
from h5zarr.containers.fitting import fit
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.registry import check_output_before, container_for_output
from h5zarr.containers.source_state import SourceState
from h5zarr.encode.encode import Encoded, Encoding
from h5zarr.errors import Problem
from h5zarr.formats import naming_errors, paused_collector, scan_any
from h5zarr.hdf5.model import H5File
from h5zarr.hdf5.scope import WHOLE, Scope
from h5zarr.io.access import USUAL_ACCESS, Access
from h5zarr.io.location import Location
from h5zarr.io.log import RequestLog
from h5zarr.io.source import Opener, Source, open_source
from h5zarr.io.steps import Step, run
from h5zarr.netcdf3.classic_file import ClassicFile
from h5zarr.netcdf3.interpret import interpret_classic
from h5zarr.netcdf4.certainty import is_certain
from h5zarr.netcdf4.interpret import interpret_file
from h5zarr.netcdf4.named_file import Naming
from h5zarr.netcdf4.names import interpret_names
from h5zarr.netcdf4.scales import NOT_COORDINATE
from h5zarr.tree import Tree
from h5zarr.zarr_model.hierarchy import Hierarchy


def translate(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    group: str = "/",
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    strict: bool = False,
    target_url: str | None = None,
    zarr_format: int = 3,
    nz: bool = False,
    chunk_bytes: int | None = None,
    inline_bytes: int | None = None,
    max_inline_bytes: int | None = None,
    joinable: bool = False,
    branch: str | None = None,
    message: str | None = None,
    overwrite: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    anon: bool = False,
    network: Mapping[str, float] | None = None,
    limits: Mapping[str, int] | None = None,
    allow: Sequence[str] = (),
    output_options: Mapping[str, Any] | None = None,
    on_open: Callable[[RequestLog], None] | None = None,
) -> Translation:
    """Translate an HDF5 or netCDF file to Zarr metadata and references, and write them if `out` is given.

    Parameters
    ----------
    source
        A path, or any URL that fsspec opens.
    out
        Where to write: a name ending in .json, .json.gz, .json.zst or .parquet, `icechunk+file:///DIRECTORY` or
        `icechunk+s3://BUCKET/PREFIX`; `-` is standard output. None writes nothing.
    group
        Translate only this group, which becomes the root.
    include, exclude
        Patterns of array paths to translate or to exclude. `*`, `?` and `[...]` match within one name, `**` any
        number of groups; a pattern without a leading slash matches at any depth.
    strict
        Raise `ProblemsFound` and write nothing if anything must be left out.
    target_url
        The URL to write into the references in place of `source`.
    zarr_format
        Version of the Zarr metadata, 3 or 2.
    nz
        Declare the NZ-1.0 convention, and warn about violations.
    chunk_bytes
        Cut contiguous datasets and netCDF-3 variables into chunks of about this size (default 8 MiB).
    inline_bytes
        Store arrays of up to this size in the references themselves; 0 inlines only what cannot be referenced.
        The default is 1 KiB, and 256 KiB for coordinates.
    max_inline_bytes
        Limit for all inlined arrays together (default 64 MiB).
    joinable
        Make arrays whose chunks, codecs and fill values do not depend on their length, so that they can be joined
        with those of other files.
    branch, message
        Branch and commit message for an Icechunk repository.
    overwrite
        Replace what is at `out` even if it is not references, or a branch with references to other files. An HDF5 or
        netCDF file is never replaced.
    storage_options
        Options for fsspec to open `source` with.
    anon
        Read from the cloud without credentials.
    network
        How to read over a network, such as `{"timeout_seconds": 120}`; see `docs/remote.md`.
    limits
        What the file may use, such as `{"depth": 100}`; see `docs/threat-model.md`.
    allow
        Directories, as paths or URLs, in which `source` may refer to other files besides its own directory.
    output_options
        Options for fsspec to write `out` with.
    on_open
        Called with the log of requests as soon as the file is open.

    Returns
    -------
    Translation
        `problems` lists what is left out and why; everything else is included.

    Raises
    ------
    H5ZarrError
        The file cannot be read, or `out` cannot be written. Nothing was written.

    Examples
    --------
    >>> import h5zarr
    >>> translation = h5zarr.translate("ocean.nc", "ocean.json")
    >>> translation
    <h5zarr.Translation of ocean.nc: 6 arrays, 60 chunks, 0 problems>
    >>> h5zarr.translate("ocean.nc", "sst.json", include=["sst"], zarr_format=2).arrays().keys()
    dict_keys(['/lat', '/lon', '/time', '/sst'])
    """
    options = make_options(
        group=group,
        include=include,
        exclude=exclude,
        strict=strict,
        target_url=target_url,
        zarr_format=zarr_format,
        nz=nz,
        chunk_bytes=chunk_bytes,
        inline_bytes=inline_bytes,
        max_inline_bytes=max_inline_bytes,
        joinable=joinable,
    )
    access = Access.from_options(storage_options, network, limits, allow, anon=anon)
    location, output = Location.parse(source), None
    if out is not None:
        output = Output(
            location=Location.parse(out),
            storage_options=output_options,
            source_options=access.options_for(location),
            commit=Commit.of(branch, message),
            overwrite=overwrite,
            network=access.network,
        )
    return run_translation(location, output, options, access, on_open=on_open)


def run_translation(
    location: Location,
    output: Output | None,
    options: Options,
    access: Access,
    *,
    on_open: Callable[[RequestLog], None] | None = None,
    accept: Callable[[Translation], None] = lambda translation: None,
) -> Translation:
    """Translate one file and write the references to `output`, if given; see `translate`.

    `accept` is called before anything is written. If it raises, nothing is.
    """
    container = None
    if output is not None:
        check_output_before(output, location, options.zarr_format)
        container = container_for_output(output.location)
    started = time.perf_counter()
    with open_source(location, access) as opened:
        if on_open is not None:
            on_open(opened.log)
        translation = translate_source(opened, location, options, access, container=container)
    # Opening takes the first request, which is often the only one.
    translation = replace(translation, seconds=time.perf_counter() - started)
    if options.strict and translation.problems:
        with naming_errors(translation.source):
            raise ProblemsFound(translation.problems)
    accept(translation)
    if output is not None:
        translation.write_to(output)
    return translation


def translate_source(
    source: Source,
    location: Location,
    options: Options,
    access: Access = USUAL_ACCESS,
    opener: Opener | None = None,
    container: Container | None = None,
    group: str | None = None,
    is_deep: bool = True,
) -> Translation:
    """Return the translation of an open source. `location` is the user's name for it.

    Files it refers to are opened by `opener` if given, else with the same `access`. Nothing but `group` is scanned,
    and if it `is_deep` what is below, unless more is needed; by default, it is the group that `options` select.
    """
    started = time.perf_counter()
    scope = Scope.of(options.selection.group if group is None else group, is_deep=is_deep)
    with paused_collector(), naming_errors(source.url):
        file = _scan(source, access, scope)
        made = translate_scanned(source, file, location, options, access, opener, container, scope)
    return replace(made, seconds=time.perf_counter() - started)


def _scan(source: Source, access: Access, scope: Scope) -> H5File | ClassicFile:
    """Scan a part of a file; all of it, if the part alone may look different."""
    file = scan_any(source, access.limits, scope)
    return file if isinstance(file, ClassicFile) or is_certain(file, scope) else scan_any(source, access.limits)


def translate_scanned(
    source: Source,
    file: H5File | ClassicFile,
    location: Location,
    options: Options,
    access: Access = USUAL_ACCESS,
    opener: Opener | None = None,
    container: Container | None = None,
    scope: Scope = WHOLE,
) -> Translation:
    """Return the translation of an open source that is already scanned; the time of the scan is unknown here."""
    target, hidden = Location.parse(options.target_url or location).for_references()
    warnings: tuple[Problem, ...] = (_secret_left_out(target),) if hidden else ()
    if source.log.is_range_ignored and options.target_url is None:
        warnings += (_RANGES_IGNORED,)
    if isinstance(file, ClassicFile):
        return _translate_classic(source, file, location, target, options, warnings, container)
    with find_related(source, file, location.text, access, target=target, opener=opener) as related:
        return _translate_related(related, source, options, warnings, container, scope)


def _translate_classic(
    source: Source,
    file: ClassicFile,
    location: Location,
    target: str,
    options: Options,
    warnings: tuple[Problem, ...],
    container: Container | None,
) -> Translation:
    """Return the translation of a netCDF-3 file, which refers to no other files."""
    tree = interpret_classic(file, target)
    hierarchy = _encode(tree, lambda _, step: run(step, source.read_many, source.planner), options, warnings)
    return Translation(
        source=str(location),
        fitted=_fit(hierarchy, options, container),
        provenance=Provenance(__version__, (SourceState(location.for_references()[0], source.identity),)),
        options=options,
        log=source.log,
        source_nbytes=source.nbytes,
        seconds=0,
    )


def _translate_related(
    related: Related,
    source: Source,
    options: Options,
    warnings: tuple[Problem, ...],
    container: Container | None,
    scope: Scope,
) -> Translation:
    """Return the translation of an HDF5 file and the files it refers to."""
    naming = interpret_names(related.file, related.links)
    if scope.is_deep:
        tree = interpret_file(related.file, naming, related.urls, related)
    else:
        tree = interpret_file(related.file, naming := naming.only(scope.path), related.urls, related)
        tree = tree.about(scope.path)
    hierarchy = _encode(tree, related.run, options, warnings)
    return Translation(
        source=str(Location.parse(related.members[0].url)),
        fitted=_fit(hierarchy, options, container),
        provenance=_provenance(related),
        options=options,
        log=related.log,
        source_nbytes=source.nbytes,
        seconds=0,
        renamed=_renamed(naming),
        bare_dimensions=tuple(dimension.path for dimension in naming.bare_dimensions() if dimension.dataset),
        unread={_reference(url): state for url, state in related.unread.items()},
    )


def _provenance(related: Related) -> Provenance:
    return Provenance(__version__, tuple(SourceState(_reference(one.url), one.identity) for one in related.members))


def _reference(url: str) -> str:
    return Location.parse(url).for_references()[0]


def _renamed(naming: Naming) -> dict[str, str]:
    """Return the paths in the file of variables that netCDF renamed."""
    found = {}
    for variable in naming.variables():
        stored = variable.file.paths.get(variable.dataset.address, "")
        if stored.rpartition("/")[2] == NOT_COORDINATE + variable.path.rpartition("/")[2]:
            found[variable.path] = stored
    return found


def _encode(
    tree: Tree, run_on: Callable[[int, Step[Encoded]], Encoded], options: Options, warnings: tuple[Problem, ...]
) -> Hierarchy:
    """Return the selected part of a tree as a hierarchy. `run_on` reads from a source."""
    tree = options.selection.apply(tree)
    tree = replace(tree, warnings=tree.warnings + warnings)
    encoding = Encoding(tree, options.inlining, options.chunk_nbytes, joinable=options.joinable)
    encoded: Encoded = {}
    for number, step in encoding.steps.items():
        encoded |= run_on(number, step)
    return encoding.finish(encoded)


def _fit(hierarchy: Hierarchy, options: Options, container: Container | None) -> Fitted:
    return fit(
        hierarchy,
        zarr_format=options.zarr_format,
        container=container,
        nz=options.nz,
        joinable=options.joinable,
    )


_RANGES_IGNORED = Problem(
    "/",
    "ranges",
    "the server ignores byte ranges: each read transfers the whole file, and most readers other than h5zarr fail",
    "Download the file and use the copy, or use a server that supports range requests.",
)


def _secret_left_out(target: str) -> Problem:
    message = f"the references name {target}: what looks like a secret in the URL is removed"
    return Problem("/", "secret", message, "Give the URL that readers should use: target_url=URL.")
