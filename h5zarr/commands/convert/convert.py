"""The convert command: read references, settle fill values, fit them to the container, and write them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from h5zarr import __version__
from h5zarr.commands.translate.fitted_result import FittedResult
from h5zarr.commands.translate.options import make_options
from h5zarr.commands.translate.translation import ProblemsFound
from h5zarr.commands.translate.translation_text import Phrase, count_up, held_text, problem_lines
from h5zarr.containers.container import Commit, Container, Fitted, Output
from h5zarr.containers.fitting import fit
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.references import References
from h5zarr.containers.registry import (
    check_output_before,
    container_for_output,
    decode_source,
    not_references,
    plain_location,
    read_references,
)
from h5zarr.display import summary_repr
from h5zarr.errors import ArgumentError, MalformedFile, OutputError, Problem
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.io.log import RequestLog
from h5zarr.io.source import open_source
from h5zarr.patterns import compile_pattern
from h5zarr.read.sources import Sources
from h5zarr.zarr_model.hierarchy import ArrayNode, Hierarchy, Json
from h5zarr.zarr_model.v2_fill import encode_given_fill, has_unwritten

Ask = Callable[[str, ArrayNode], Json]
"""Called with the path of an array and the array. Returns its fill value, or None if unknown."""


class FillValueWanted(ArgumentError):
    """The value of unwritten chunks is unknown: version 2 of Zarr may leave it open, version 3 needs it."""

    kind = "fill value"
    remedy = "Give it: fill_value=0 for all of them, or fill_value={'PATH': VALUE} for each."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Conversion(FittedResult):
    """References that were written into another container. `str()` is the text that `h5zarr convert` prints.

    Attributes
    ----------
    source
        Where the references were, without secrets.
    fitted
        What was written.
    provenance
        The version of h5zarr that made the references, and the state of the files they refer to.
    log
        Counts of rounds, requests and bytes.
    seconds
        How long it took.

    Examples
    --------
    >>> import h5zarr
    >>> _ = h5zarr.translate("ocean.nc", "ocean.json")
    >>> h5zarr.convert("ocean.json", "again.json").to_json()["chunks"]
    60
    """

    source: str
    fitted: Fitted
    provenance: Provenance
    log: RequestLog = field(default_factory=RequestLog)
    seconds: float = 0

    def __repr__(self) -> str:
        return summary_repr("Conversion", self.source, *self._counts())

    def __str__(self) -> str:
        return "\n".join(conversion_lines(self))

    def to_json(self) -> dict[str, Json]:
        """Return the report for machines: what `h5zarr convert --report` writes."""
        return {
            "source": self.source,
            **count_up(self.hierarchy),
            "problems": [problem.to_json() for problem in self.problems],
            "warnings": [problem.to_json() for problem in self.warnings],
            "seconds": round(self.seconds, 6),
        }


def conversion_lines(done: Conversion, *, quiet: bool = False, phrase: Phrase = str) -> Iterator[str]:
    """Return all lines about a conversion; only the problems if `quiet`."""
    yield from problem_lines(done.source, done.problems, phrase=phrase)
    if not quiet:
        yield from problem_lines(done.source, done.warnings, "warning: ", phrase=phrase)
        yield f"{held_text(done.hierarchy)} · {done.seconds:.2f} s"


def convert(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    zarr_format: int = 3,
    fill_value: Json | Mapping[str, Json] = None,
    strict: bool = False,
    at: str | None = None,
    branch: str | None = None,
    message: str | None = None,
    overwrite: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    anon: bool = False,
    network: Mapping[str, float] | None = None,
    limits: Mapping[str, int] | None = None,
    output_options: Mapping[str, Any] | None = None,
    ask: Ask | None = None,
    on_open: Callable[[RequestLog], None] | None = None,
) -> Conversion:
    """Write references from one container into another: JSON, Parquet or Icechunk, version 2 or 3 of Zarr.

    Also reads references of kerchunk and VirtualiZarr. Does not read the files they refer to.

    Parameters
    ----------
    source, out
        Where the references are, and where to write them. Names decide the container, as in `h5zarr.translate`.
    zarr_format
        Version of the Zarr metadata to write, 3 or 2.
    fill_value
        Fill value for version 2 arrays whose `fill_value` is null: one for all of them, or a dictionary of patterns of
        paths and values. If it is not given, `ask` is called. If it stays unknown and chunks are missing,
        `FillValueWanted` is raised.
    strict
        Raise `ProblemsFound` and write nothing if anything must be left out.
    at
        Branch, tag or snapshot of an Icechunk repository to read.
    branch, message
        Branch and commit message for the Icechunk repository to write.
    overwrite
        Replace what is at `out` even if it is not references, as in `h5zarr.translate`.
    storage_options, anon, network, limits
        How to open `source`, as in `h5zarr.translate`.
    output_options
        Options for fsspec to write `out` with.
    ask
        Called with the path of an array and the array; returns its fill value, or None.
    on_open
        Called with the log of requests as soon as `source` is open.

    Returns
    -------
    Conversion
        `problems` lists what is left out and why.

    Raises
    ------
    H5ZarrError
        The references cannot be read, or `out` cannot be written. Nothing was written.

    Examples
    --------
    >>> import h5zarr
    >>> _ = h5zarr.translate("ocean.nc", "ocean.json")
    >>> h5zarr.convert("ocean.json", "old.json", zarr_format=2)
    <h5zarr.Conversion of ocean.json: 6 arrays, 60 chunks, 0 problems>
    """
    started = time.perf_counter()
    given = Location.parse(source)
    access = Access.from_options(storage_options, network, limits, anon=anon)
    output = Output(
        location=Location.parse(out),
        storage_options=output_options,
        source_options=access.options_for(plain_location(given)),
        commit=Commit.of(branch, message),
        overwrite=overwrite,
        network=access.network,
    )
    options = make_options(zarr_format=zarr_format, strict=strict)
    check_output_before(output, given, zarr_format, is_file=False)
    container = container_for_output(output.location)
    read, log = _read(given, access, at, on_open)
    settled = _settle_fill(read, _by_pattern(fill_value), ask, zarr_format)
    hierarchy = _settle_urls(settled, output, container)
    fitted = _fit(hierarchy, options.zarr_format, container)
    problems = fitted.hierarchy.problems
    if strict and len(problems) > len(hierarchy.problems):
        raise ProblemsFound(problems[len(hierarchy.problems) :])
    provenance = replace(read.provenance or Provenance(__version__), problems=problems)
    container.write(fitted, provenance, output)
    return Conversion(
        source=str(given),
        fitted=fitted,
        provenance=provenance,
        log=log,
        seconds=time.perf_counter() - started,
    )


def _by_pattern(fill_value: Json | Mapping[str, Json]) -> Mapping[str, Json]:
    """Return fill values by path pattern. A single value applies to all arrays."""
    if fill_value is None:
        return {}
    return fill_value if isinstance(fill_value, Mapping) else {"**": fill_value}


def _read(
    location: Location, access: Access, at: str | None, on_open: Callable[[RequestLog], None] | None
) -> tuple[References, RequestLog]:
    """Return the references at a location, and the log of requests for them."""
    sources = Sources(urls=(), access=access)
    try:
        if (found := read_references(location, sources, at)) is not None:
            return found[0], RequestLog()
        with open_source(location, access) as source:
            if on_open is not None:
                on_open(source.log)
            if (references := decode_source(source, location, access.limits)) is not None:
                return references, source.log
            raise not_references(source)
    finally:
        sources.close()


def _settle_fill(read: References, given: Mapping[str, Json], ask: Ask | None, zarr_format: int) -> Hierarchy:
    """Return the hierarchy with fill values for the version 2 arrays that have none.

    References written by h5zarr need none: there, null means the value that zarr uses for null.
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
            raise MalformedFile(f"{path}: {error}", remedy="Give another value: fill_value=VALUE.") from None
    if wanted:
        raise FillValueWanted(f"{', '.join(wanted)}: fill_value is null, but some chunks are unwritten")
    return replace(read.hierarchy, nodes=nodes)


def _match(given: Mapping[str, Json], paths: Sequence[str]) -> dict[str, Json]:
    """Return the given value for each path; the last matching pattern wins. Raises an error for a pattern without
    match.
    """
    found: dict[str, Json] = {}
    for pattern, value in given.items():
        matches = compile_pattern(pattern)
        fitting = [path for path in paths if matches(path)]
        if not fitting:
            remedy = "Only arrays of Zarr version 2 whose fill_value is null take one."
            raise FillValueWanted(f"no array that lacks a fill value matches {pattern}", remedy=remedy)
        found |= dict.fromkeys(fitting, value)
    return found


def _settle_urls(hierarchy: Hierarchy, output: Output, container: Container) -> Hierarchy:
    """Return the hierarchy with absolute URLs. Raises OutputError for URLs that the container cannot hold."""
    if "" in hierarchy.urls and not container.traits.allows_empty_urls:
        what = "the references do not say which file they refer to; only JSON can hold such references"
        raise OutputError(output.shown, what, remedy="Write JSON.")
    urls, warnings = [], []
    for url in hierarchy.urls:
        location = Location.parse(url)
        if url and location.path is not None and not os.path.isabs(location.path):
            urls.append(location.absolute())
            what = f"the references contain the relative path {location.path}, which is read as {urls[-1]}"
            warnings.append(Problem("/", "url", what, "Convert them in the directory that the path is relative to."))
            continue
        if location.without_secrets() != url:
            what = f"the references contain what looks like a secret in the URL of {location}: it is kept"
            warnings.append(Problem("/", "secret", what, "Do not pass them on."))
        urls.append(url)
    return replace(hierarchy, urls=tuple(urls), warnings=(*hierarchy.warnings, *warnings))


def _fit(hierarchy: Hierarchy, zarr_format: int, container: Container) -> Fitted:
    """Return what fits, with the problems and warnings known before. A recorded problem is not reported twice."""
    fitted = fit(replace(hierarchy, problems=(), warnings=()), zarr_format=zarr_format, container=container)
    found = fitted.hierarchy
    problems = tuple(problem for problem in found.problems if problem not in hierarchy.problems)
    merged = replace(found, problems=hierarchy.problems + problems, warnings=(*hierarchy.warnings, *found.warnings))
    return replace(fitted, hierarchy=merged)
