"""The end of a translation's output: problems, warnings and a one-line summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from h5zarr.cli.common import phrase
from h5zarr.commands.translate.translation import ProblemsFound, Translation
from h5zarr.display import counted, readable, size
from h5zarr.errors import H5ZarrError, Problem
from h5zarr.io.location import Location
from h5zarr.zarr_model.hierarchy import ArrayNode, Hierarchy

if TYPE_CHECKING:
    from h5zarr.commands.convert.convert import Conversion


def report_lines(source: Location, done: Translation, *, quiet: bool) -> Iterator[str]:
    """Return all lines of the report; only the problems if `quiet`."""
    yield from problem_lines(source, done.problems)
    if quiet:
        return
    yield from problem_lines(source, done.warnings, "warning: ")
    if done.bare_dimensions:
        names = ", ".join(readable(path.lstrip("/")) for path in done.bare_dimensions)
        yield f"dimensions without a variable, which are not arrays: {names}"
    if done.renamed:
        names = ", ".join(f"{readable(path)} ({readable(stored)})" for path, stored in done.renamed.items())
        yield f"variables that have another name in the file: {names}"
    yield summary(done)


def problem_lines(source: Location, problems: Sequence[Problem], prefix: str = "") -> Iterator[str]:
    """Return each problem with source, path and message. The remedy follows, once for neighbours that share it."""
    shown = readable(str(source))
    for number, problem in enumerate(problems):
        yield f"{prefix}{shown}:{readable(problem.path)}: {readable(problem.message)}"
        following = problems[number + 1] if number + 1 < len(problems) else None
        if problem.remedy and (following is None or following.remedy != problem.remedy):
            yield f"  {readable(phrase(problem.remedy))}"


def summary(done: Translation) -> str:
    """Return one line: what was written, and the cost."""
    log = done.log
    cost = [counted(log.rounds, "round"), counted(log.requests, "request")]
    cost.append(f"{size(log.nbytes)} of {size(done.source_nbytes)}")
    return f"{_held(done.hierarchy)} · {', '.join(cost)} · {done.seconds:.2f} s"


def conversion_lines(source: Location, done: Conversion, *, quiet: bool) -> Iterator[str]:
    """Return all lines about a conversion; only the problems if `quiet`."""
    yield from problem_lines(source, done.problems)
    if not quiet:
        yield from problem_lines(source, done.warnings, "warning: ")
        yield f"{_held(done.hierarchy)} · {done.seconds:.2f} s"


def _held(hierarchy: Hierarchy) -> str:
    """Return the content of the references, in one line."""
    counts = count_up(hierarchy)
    held = [
        counted(counts["arrays"], "array"),
        f"{counted(counts['chunks'], 'chunk')} referenced",
        f"{size(counts['inlined_bytes'])} inlined in {counted(counts['inlined_arrays'], 'array')}",
        counted(len(hierarchy.problems), "problem"),
    ]
    return ", ".join(held)


def count_up(hierarchy: Hierarchy) -> dict[str, int]:
    """Return the numbers of arrays and chunks, and the inlined share."""
    arrays = [node for node in hierarchy.nodes.values() if isinstance(node, ArrayNode)]
    inlined = [sum(map(len, array.manifest.inline.values())) for array in arrays if array.manifest.inline]
    return {
        "arrays": len(arrays),
        "chunks": sum(array.manifest.count for array in arrays),
        "referenced_bytes": sum(int(np.sum(np.maximum(array.manifest.nbytes, 0))) for array in arrays),
        "inlined_arrays": len(inlined),
        "inlined_bytes": sum(inlined),
    }


def describe_translation(source: Location, done: Translation) -> dict[str, Any]:
    """Return the report for machines."""
    return {
        "source": str(source),
        "source_bytes": done.source_nbytes,
        **count_up(done.hierarchy),
        "problems": [_describe(problem) for problem in done.problems],
        "warnings": [_describe(problem) for problem in done.warnings],
        "dimensions_without_variable": list(done.bare_dimensions),
        "rounds": done.log.rounds,
        "requests": done.log.requests,
        "bytes_read": done.log.nbytes,
        "seconds": round(done.seconds, 6),
    }


def describe_conversion(source: Location, done: Conversion) -> dict[str, Any]:
    """Return the report for machines of a conversion."""
    return {
        "source": str(source),
        **count_up(done.hierarchy),
        "problems": [_describe(problem) for problem in done.problems],
        "warnings": [_describe(problem) for problem in done.warnings],
        "seconds": round(done.seconds, 6),
    }


def describe_failure(source: Location, error: H5ZarrError) -> dict[str, Any]:
    """Return the report for machines of a translation that wrote nothing."""
    problems = error.problems if isinstance(error, ProblemsFound) else ()
    return {
        "source": str(source),
        "error": {"kind": error.kind, "message": str(error), "remedy": error.remedy},
        "problems": [_describe(problem) for problem in problems],
    }


def _describe(problem: Problem) -> dict[str, str]:
    return {"path": problem.path, "kind": problem.kind, "message": problem.message, "remedy": problem.remedy}
