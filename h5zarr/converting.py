"""The hallway from references to references: read, settle fill values, fit what the container can hold, write."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from warnings import warn

from h5zarr import __version__
from h5zarr.containers import Content, check_container, fit_container, write_references
from h5zarr.errors import H5ZarrError, MalformedFile, OutputError, Problem, ProblemWarning, Unsupported
from h5zarr.hierarchy import ArrayNode, Hierarchy, Json
from h5zarr.icechunk.commit import Commit
from h5zarr.icechunk.storage import find_place, is_icechunk
from h5zarr.io.log import RequestLog
from h5zarr.io.policy import ReadPolicy
from h5zarr.io.reference_url import hide_secrets
from h5zarr.io.source import open_source
from h5zarr.io.url import display_url, find_local_path
from h5zarr.patterns import compile_pattern
from h5zarr.read.references import decode_source, find_references
from h5zarr.read.sources import Sources, options_for
from h5zarr.refs.output_directory import is_directory_output
from h5zarr.refs.provenance import Provenance
from h5zarr.refs.reading import References
from h5zarr.refs.v2_fill import encode_given_fill, has_unwritten
from h5zarr.refs.v2_metadata import NodeV2
from h5zarr.translating import Options, ProblemsFound, fit_format

Ask = Callable[[str, ArrayNode], Json]
"""Is given the path of an array, and the array; returns its fill value, or None if nobody knows."""


class FillValueWanted(H5ZarrError):
    """Nothing says what unwritten chunks read as: version 2 of Zarr may leave it open, version 3 must know."""

    kind = "fill value"
    remedy = "Say it: --fill-value 0 for all of them, or --fill-value PATH=VALUE for each."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Conversion:
    """What was written: Zarr metadata and references, and what they were made of. `nodes_v2` where that is version 2.

    `problems` name what is left out, now or when the file was translated; `warnings` what is not all that it was.
    """

    source: str
    hierarchy: Hierarchy
    provenance: Provenance
    nodes_v2: Mapping[str, NodeV2] | None = None
    log: RequestLog = field(default_factory=RequestLog)
    seconds: float = 0

    def __repr__(self) -> str:
        count = sum(isinstance(node, ArrayNode) for node in self.hierarchy.nodes.values())
        return f"<Conversion of {self.source}: {count} arrays>"

    @property
    def problems(self) -> tuple[Problem, ...]:
        return self.hierarchy.problems

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return self.hierarchy.warnings

    def warn(self, stacklevel: int = 2) -> None:
        """Tell Python's warnings of everything that is left out, or not all that it was."""
        for problem in (*self.problems, *self.warnings):
            warn(f"{problem}. {problem.remedy}".rstrip(), ProblemWarning, stacklevel + 1)


def convert(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
    output_options: Mapping[str, Any] | None = None,
    policy: ReadPolicy | None = None,
    zarr_format: int = 3,
    fill_values: Mapping[str, Json] | None = None,
    ask: Ask | None = None,
    at: str | None = None,
    commit: Commit | None = None,
    strict: bool = False,
    on_open: Callable[[RequestLog], None] | None = None,
) -> Conversion:
    """Write the references at `source` to `out`: from and to JSON, Parquet or Icechunk, version 2 or 3 of Zarr.

    The names decide, as in `translate`; what kerchunk or VirtualiZarr wrote is read, too. The files that are referred
    to are not read. What `out` cannot hold is left out and named in `problems`; with `strict` it is an error, and
    nothing is written. `at` is the branch, tag or snapshot to read of an Icechunk repository, `commit` is for the one
    that is written to.

    In version 2, `fill_value` may be null. Then `fill_values` has it, by patterns of paths, or else `ask` is called.
    Where neither says it, and chunks are missing, FillValueWanted is raised; where none is, it does not matter.
    """
    started = time.perf_counter()
    given, target = os.fspath(source), os.fspath(out)
    options = Options(zarr_format=zarr_format, strict=strict)
    _check_places(given, target)
    check_container(out, given, zarr_format, commit, output_options)
    read, log = _read(given, storage_options, policy, at, on_open)
    settled = _settle_fill(read, fill_values or {}, ask, zarr_format)
    hierarchy = _settle_urls(settled, target)
    fitted, nodes_v2 = fit_format(replace(hierarchy, problems=(), warnings=()), options)
    content = fit_container(Content(_merge(hierarchy, fitted), nodes_v2), out)
    problems = content.hierarchy.problems
    if strict and len(problems) > len(hierarchy.problems):
        raise ProblemsFound(problems[len(hierarchy.problems) :])
    provenance = replace(read.provenance or Provenance(__version__), problems=problems)
    write_references(content, provenance, out, output_options, commit, storage_options)
    return Conversion(
        source=display_url(given),
        hierarchy=content.hierarchy,
        provenance=provenance,
        nodes_v2=content.nodes_v2,
        log=log,
        seconds=time.perf_counter() - started,
    )


def _check_places(source: str, out: str) -> None:
    """Raise OutputError where both are the same repository; files and directories are compared elsewhere."""
    if not (is_icechunk(source) and is_icechunk(out)):
        return
    one, other = find_place(source), find_place(out)
    if (one.directory, one.bucket, one.prefix) == (other.directory, other.bucket, other.prefix):
        what = "this is the repository that is read"
        raise OutputError(display_url(out), what, remedy="Give another place for the output.")


def _read(
    url: str,
    storage_options: Mapping[str, Any] | None,
    policy: ReadPolicy | None,
    at: str | None,
    on_open: Callable[[RequestLog], None] | None,
) -> tuple[References, RequestLog]:
    """Return the references at `url`, and what was asked for to have them."""
    sources = Sources(urls=(), storage_options=dict(storage_options or {}))
    try:
        if (found := find_references(url, sources, at)) is not None:
            return found[0], RequestLog()
        with open_source(url, options_for(url, sources.storage_options), policy) as source:
            if on_open is not None:
                on_open(source.log)
            if (references := decode_source(source, url)) is not None:
                return references, source.log
    finally:
        sources.close()
    remedy = "Write references for it first: h5zarr translate."
    raise Unsupported(f"{display_url(url)}: these are no references", remedy=remedy)


def _settle_fill(read: References, given: Mapping[str, Json], ask: Ask | None, zarr_format: int) -> Hierarchy:
    """Return the hierarchy with fill values for the arrays that version 2 gives none.

    What h5zarr wrote needs none: there null means that nothing reads as fill but what zarr gives for null, too.
    """
    unfilled = [path for path in read.hierarchy.nodes if path in read.unfilled]
    known = _match(given, unfilled)
    nodes, wanted = dict(read.hierarchy.nodes), []
    for path in unfilled:
        node = nodes[path]
        assert isinstance(node, ArrayNode)
        if path not in known:
            if read.provenance is not None or zarr_format == 2 or not has_unwritten(node):
                continue
            answer = None if ask is None else ask(path, node)
            if answer is None:
                wanted.append(path)
                continue
            known[path] = answer
        try:
            nodes[path] = replace(node, fill_value=encode_given_fill(known[path], node))
        except MalformedFile as error:
            raise MalformedFile(f"{path}: {error}", remedy="Give another value with --fill-value.") from None
    if wanted:
        raise FillValueWanted(f"{', '.join(wanted)}: fill_value is null, and there are chunks that were never written")
    return replace(read.hierarchy, nodes=nodes)


def _match(given: Mapping[str, Json], paths: Sequence[str]) -> dict[str, Json]:
    """Return what was given for each path, the last that fits it. Raises an error for what fits none."""
    found: dict[str, Json] = {}
    for pattern, value in given.items():
        matches = compile_pattern(pattern)
        fitting = [path for path in paths if matches(path)]
        if not fitting:
            remedy = "Only arrays of Zarr version 2 whose fill_value is null take one."
            raise FillValueWanted(f"no array that lacks a fill value matches {pattern}", remedy=remedy)
        found |= dict.fromkeys(fitting, value)
    return found


def _settle_urls(hierarchy: Hierarchy, out: str) -> Hierarchy:
    """Return the hierarchy with absolute URLs. Raises OutputError for what the container has no words for."""
    if "" in hierarchy.urls and (is_icechunk(out) or is_directory_output(out)):
        what = "the references do not say which file they refer to, which only JSON can leave open"
        raise OutputError(display_url(out), what, remedy="Write JSON.")
    urls, warnings = [], []
    for url in hierarchy.urls:
        path = find_local_path(url) if url else None
        if path is not None and not os.path.isabs(path):
            urls.append(os.path.abspath(path))
            what = f"the references name {path}, which is taken for {urls[-1]}"
            warnings.append(Problem("/", "url", what, "Convert them where the path leads to the file."))
            continue
        if hide_secrets(url) != url:
            what = f"the references hold what looks like a secret in the URL of {display_url(url)}: it is kept"
            warnings.append(Problem("/", "secret", what, "Do not pass them on."))
        urls.append(url)
    return replace(hierarchy, urls=tuple(urls), warnings=(*hierarchy.warnings, *warnings))


def _merge(hierarchy: Hierarchy, fitted: Hierarchy) -> Hierarchy:
    """Return what was fitted, with what was known before: a problem that was recorded is not told twice."""
    problems = tuple(problem for problem in fitted.problems if problem not in hierarchy.problems)
    return replace(fitted, problems=hierarchy.problems + problems, warnings=(*hierarchy.warnings, *fitted.warnings))
