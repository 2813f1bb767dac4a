"""The hallway from a file to references: open, scan, interpret, select, encode, write."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from warnings import warn

from h5zarr import __version__
from h5zarr.containers import Content, check_container, fit_container, write_references
from h5zarr.encode.encode import Encoded, Encoding
from h5zarr.encode.options import Inlining
from h5zarr.encode.runs import CHUNK_NBYTES
from h5zarr.errors import H5ZarrError, Problem, ProblemWarning
from h5zarr.hdf5.model import H5File
from h5zarr.hierarchy import ArrayNode, Hierarchy
from h5zarr.icechunk.commit import Commit, check_form
from h5zarr.io.log import RequestLog
from h5zarr.io.policy import ReadPolicy
from h5zarr.io.reference_url import reference_url
from h5zarr.io.source import Identity, Opener, Source, open_source
from h5zarr.io.steps import Step, run
from h5zarr.limits import USUAL, Limits
from h5zarr.netcdf3.interpret import interpret_classic
from h5zarr.netcdf3.model import ClassicFile
from h5zarr.netcdf4.interpret import interpret_file
from h5zarr.netcdf4.model import Naming
from h5zarr.netcdf4.names import interpret_names
from h5zarr.netcdf4.scales import NOT_COORDINATE
from h5zarr.refs.names import check_readers, check_reserved, check_urls, leave_out_unreadable
from h5zarr.refs.nz import declare_nz
from h5zarr.refs.provenance import Provenance, SourceState
from h5zarr.refs.v2_metadata import NodeV2, encode_v2
from h5zarr.related import Related, find_related
from h5zarr.scanning import paused_collector, scan_any
from h5zarr.selecting import Selection
from h5zarr.tree import Tree


class ProblemsFound(H5ZarrError):
    """Some of the file cannot be translated, and the user wants all or nothing."""

    kind = "strict"
    remedy = "Leave out what is named with --exclude, or do without --strict."

    def __init__(self, problems: Sequence[Problem], because: str = "--strict was given: nothing was written") -> None:
        self.problems = tuple(problems)
        what = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(f"{what} found, and {because}")
        for problem in self.problems:
            self.add_note(str(problem))


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to translate. `target_url` stands in the references in the place of the source's own URL.

    Values that have no chunks of their own are cut into some of about `chunk_nbytes`. With `joinable` they are not: the
    arrays of several files can then be joined along an axis, since their chunks, codecs and fill values do not depend
    on how much of an array a file has. `limits` bound what the file may take. Other files that it refers to are read
    where they are below its own directory, or below one of those in `allow`, which are paths and URLs.
    """

    selection: Selection = field(default_factory=Selection)
    inlining: Inlining = field(default_factory=Inlining)
    chunk_nbytes: int = CHUNK_NBYTES
    target_url: str | None = field(default=None, repr=False)  # which may be signed, until it stands in references
    zarr_format: int = 3
    nz: bool = False
    strict: bool = False
    joinable: bool = False
    limits: Limits = USUAL
    allow: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.zarr_format not in (2, 3):
            raise ValueError(f"zarr_format is {self.zarr_format}, but must be 2 or 3")
        if isinstance(self.allow, str):
            raise TypeError("allow must be a sequence of paths and URLs, and not one of them")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Translation:
    """The result: Zarr metadata and references, what is left out (`problems`) or not all that it was (`warnings`).

    `bare_dimensions` are the paths of dimensions that have no variable: they are no arrays. `renamed` has the paths in
    the file of variables that netCDF calls otherwise. `nodes_v2` is the hierarchy
    as Zarr version 2 has it, where that was asked for. `unread` are the files that it refers to and of which nothing is
    in here: in what state they are, None for those that are not there.
    """

    hierarchy: Hierarchy
    provenance: Provenance
    options: Options
    log: RequestLog
    source_nbytes: int
    seconds: float
    bare_dimensions: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    nodes_v2: Mapping[str, NodeV2] | None = None
    unread: Mapping[str, Identity | None] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return f"<Translation of {self.provenance.sources[0].url}: {len(self.arrays())} arrays>"

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self.hierarchy.problems

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return self.hierarchy.warnings

    def arrays(self) -> Mapping[str, ArrayNode]:
        """The arrays, by path."""
        return {path: node for path, node in self.hierarchy.nodes.items() if isinstance(node, ArrayNode)}

    def warn(self, stacklevel: int = 2) -> None:
        """Tell Python's warnings of everything that is left out, or not all that it was."""
        for problem in (*self.problems, *self.warnings):
            warn(f"{problem}. {problem.remedy}".rstrip(), ProblemWarning, stacklevel + 1)

    def write(
        self,
        out: str | os.PathLike[str],
        storage_options: Mapping[str, Any] | None = None,
        *,
        commit: Commit | None = None,
        source_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the references to a path or URL, `-` being standard output. All, or nothing.

        They are JSON, compressed where the name ends in .gz or .zst, or a directory of Parquet files where it ends in
        .parquet or .parq. Into an Icechunk repository, icechunk+file:///directory or icechunk+s3://bucket/prefix, they
        go as a new snapshot; what is no secret of `source_options`, such as an endpoint, is kept there for readers.
        What a container cannot hold is left out, and named in a ProblemWarning.
        """
        check_form(out, self.options.zarr_format, commit)
        fitted = self.fit(out)
        known = len(self.problems), len(self.warnings)
        for problem in (*fitted.problems[known[0] :], *fitted.warnings[known[1] :]):
            warn(f"{problem}. {problem.remedy}", ProblemWarning, stacklevel=2)
        provenance = replace(self.provenance, problems=fitted.problems)
        content = Content(fitted.hierarchy, fitted.nodes_v2)
        write_references(content, provenance, out, storage_options, commit, source_options)

    def fit(self, out: str | os.PathLike[str]) -> Translation:
        """Return this as the container at `out` can hold it."""
        content = fit_container(Content(self.hierarchy, self.nodes_v2), out)
        return replace(self, hierarchy=content.hierarchy, nodes_v2=content.nodes_v2)


def translate(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    output_options: Mapping[str, Any] | None = None,
    policy: ReadPolicy | None = None,
    options: Options | None = None,
    commit: Commit | None = None,
    on_open: Callable[[RequestLog], None] | None = None,
) -> Translation:
    """Translate the file at `source`, a local path or any fsspec URL, to Zarr references; write them to `out` if given.

    What cannot be expressed is in the result's `problems`, and the rest is there; with `options.strict` it is an error.
    An `H5ZarrError` means that nothing was written. `on_open` is given the log of requests, to watch it grow. `commit`
    is for an Icechunk repository: the branch, and what to say of the snapshot.
    """
    options = options or Options()
    if out is not None:
        check_container(out, os.fspath(source), options.zarr_format, commit, output_options)
    with open_source(source, storage_options, policy) as opened:
        if on_open is not None:
            on_open(opened.log)
        translation = translate_source(opened, os.fspath(source), options, storage_options, policy)
    if out is not None:
        translation = translation.fit(out)
    if options.strict and translation.problems:
        raise ProblemsFound(translation.problems)
    if out is not None:
        translation.write(out, output_options, commit=commit, source_options=storage_options)
    return translation


def translate_source(
    source: Source,
    url: str,
    options: Options,
    storage_options: Mapping[str, Any] | None = None,
    policy: ReadPolicy | None = None,
    opener: Opener | None = None,
) -> Translation:
    """Return the translation of an open source; `url` is how the user calls it.

    The files that it refers to are opened by `opener`, or else with the same storage options and policy.
    """
    started = time.perf_counter()
    with paused_collector():
        file = scan_any(source, options.limits)
        made = translate_scanned(source, file, url, options, storage_options, policy, opener)
    return replace(made, seconds=time.perf_counter() - started)


def translate_scanned(
    source: Source,
    file: H5File | ClassicFile,
    url: str,
    options: Options,
    storage_options: Mapping[str, Any] | None = None,
    policy: ReadPolicy | None = None,
    opener: Opener | None = None,
) -> Translation:
    """Return the translation of an open source that was scanned already; how long that took is not known here."""
    target, hidden = reference_url(options.target_url or url)
    warnings = (_secret_left_out(target),) if hidden else ()
    if isinstance(file, ClassicFile):
        return _translate_classic(source, file, url, target, options, warnings)
    choices: dict[str, Any] = {"storage_options": storage_options, "policy": policy, "opener": opener}
    choices |= {"limits": options.limits, "allow": options.allow}
    with find_related(source, file, url, target=target, **choices) as related:
        return _translate_related(related, source, options, warnings)


def _translate_classic(
    source: Source, file: ClassicFile, url: str, target: str, options: Options, warnings: tuple[Problem, ...]
) -> Translation:
    """Return the translation of a netCDF-3 file, which refers to no other."""
    tree = interpret_classic(file, target)
    hierarchy, nodes_v2 = _encode(tree, lambda _, step: run(step, source.read_many, source.far), options, warnings)
    return Translation(
        hierarchy=hierarchy,
        nodes_v2=nodes_v2,
        provenance=Provenance(__version__, (SourceState(reference_url(url)[0], source.identity),)),
        options=options,
        log=source.log,
        source_nbytes=source.nbytes,
        seconds=0,
    )


def _translate_related(
    related: Related, source: Source, options: Options, warnings: tuple[Problem, ...]
) -> Translation:
    """Return the translation of an HDF5 file with those that it refers to."""
    naming = interpret_names(related.file, related.links)
    tree = interpret_file(related.file, naming, related.urls, related)
    hierarchy, nodes_v2 = _encode(tree, related.run, options, warnings)
    return Translation(
        hierarchy=hierarchy,
        nodes_v2=nodes_v2,
        provenance=_provenance(related),
        options=options,
        log=related.log,
        source_nbytes=source.nbytes,
        seconds=0,
        renamed=_renamed(naming),
        bare_dimensions=tuple(dimension.path for dimension in naming.bare_dimensions() if dimension.dataset),
        unread={reference_url(url)[0]: state for url, state in related.unread.items()},
    )


def _provenance(related: Related) -> Provenance:
    return Provenance(
        __version__, tuple(SourceState(reference_url(one.url)[0], one.identity) for one in related.members)
    )


def _renamed(naming: Naming) -> dict[str, str]:
    """Return the paths in the file of variables whose names netCDF made up from others."""
    found = {}
    for variable in naming.variables():
        stored = variable.file.paths.get(variable.dataset.address, "")
        if stored.rpartition("/")[2] == NOT_COORDINATE + variable.path.rpartition("/")[2]:
            found[variable.path] = stored
    return found


def _encode(
    tree: Tree, run_on: Callable[[int, Step[Encoded]], Encoded], options: Options, warnings: tuple[Problem, ...]
) -> tuple[Hierarchy, Mapping[str, NodeV2] | None]:
    """Return the selected part of a tree as a hierarchy, and as version 2 has it; `run_on` reads from a source."""
    tree = options.selection.apply(tree)
    tree = replace(tree, warnings=tree.warnings + warnings)
    encoding = Encoding(tree, options.inlining, options.chunk_nbytes, joinable=options.joinable)
    encoded: Encoded = {}
    for number, step in encoding.steps.items():
        encoded |= run_on(number, step)
    return fit_format(encoding.finish(encoded), options)


def fit_format(hierarchy: Hierarchy, options: Options) -> tuple[Hierarchy, Mapping[str, NodeV2] | None]:
    """Return the hierarchy without what the chosen version of Zarr cannot hold, which is then among its problems.

    For version 2 also its nodes as that has them.
    """
    readable, problems = leave_out_unreadable(hierarchy)
    problems += check_urls(hierarchy.urls)
    warnings = hierarchy.warnings + check_readers(hierarchy.urls)
    if options.zarr_format == 3:
        warnings += check_reserved(readable.nodes)
    if options.nz:
        readable, against = declare_nz(readable, options.zarr_format)
        warnings += against
    nodes: Mapping[str, NodeV2] | None = None
    if options.zarr_format == 2:
        nodes, left_out = encode_v2(readable, joinable=options.joinable)
        problems += left_out
        readable = replace(readable, nodes={path: node for path, node in readable.nodes.items() if path in nodes})
    return replace(readable, problems=hierarchy.problems + problems, warnings=warnings), nodes


def _secret_left_out(target: str) -> Problem:
    message = f"references refer to {target}: what looks like a secret in the URL is left out"
    return Problem("/", "secret", message, "Give the URL that readers should use with --target-url.")
