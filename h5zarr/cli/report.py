"""What a translation says at its end: problems, warnings, and one line that sums it up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from h5zarr.errors import H5ZarrError, Problem
from h5zarr.hierarchy import ArrayNode, Hierarchy
from h5zarr.inspect.escape import readable
from h5zarr.inspect.quantities import counted, size
from h5zarr.io.url import display_url
from h5zarr.translating import ProblemsFound, Translation

if TYPE_CHECKING:
    from h5zarr.converting import Conversion


def report_lines(source: str, done: Translation, *, quiet: bool) -> Iterator[str]:
    """Return all lines that people should see; only the problems if `quiet`."""
    yield from problem_lines(source, done.problems)
    if quiet:
        return
    yield from problem_lines(source, done.warnings, "warning: ")
    if done.bare_dimensions:
        names = ", ".join(readable(path.lstrip("/")) for path in done.bare_dimensions)
        yield f"dimensions without a variable, which are no arrays: {names}"
    if done.renamed:
        names = ", ".join(f"{readable(path)} ({readable(stored)})" for path, stored in done.renamed.items())
        yield f"variables that have another name in the file: {names}"
    yield summary(done)


def problem_lines(source: str, problems: Sequence[Problem], prefix: str = "") -> Iterator[str]:
    """Return each problem with source, path, what, and below it what to do, once for neighbours that share it."""
    shown = readable(display_url(source))
    for number, problem in enumerate(problems):
        yield f"{prefix}{shown}:{readable(problem.path)}: {readable(problem.message)}"
        following = problems[number + 1] if number + 1 < len(problems) else None
        if problem.remedy and (following is None or following.remedy != problem.remedy):
            yield f"  {readable(problem.remedy)}"


def summary(done: Translation) -> str:
    """Return one line: what was written, what it took."""
    log = done.log
    cost = [counted(log.rounds, "round"), counted(log.requests, "request")]
    cost.append(f"{size(log.nbytes)} of {size(done.source_nbytes)}")
    return f"{_held(done.hierarchy)} · {', '.join(cost)} · {done.seconds:.2f} s"


def conversion_lines(source: str, done: Conversion, *, quiet: bool) -> Iterator[str]:
    """Return all lines that people should see of a conversion; only the problems if `quiet`."""
    yield from problem_lines(source, done.problems)
    if not quiet:
        yield from problem_lines(source, done.warnings, "warning: ")
        yield f"{_held(done.hierarchy)} · {done.seconds:.2f} s"


def _held(hierarchy: Hierarchy) -> str:
    """Return what references hold, in one line."""
    counts = count_up(hierarchy)
    held = [
        counted(counts["arrays"], "array"),
        f"{counted(counts['chunks'], 'chunk')} referred to",
        f"{size(counts['inlined_bytes'])} inlined in {counted(counts['inlined_arrays'], 'array')}",
        counted(len(hierarchy.problems), "problem"),
    ]
    return ", ".join(held)


def count_up(hierarchy: Hierarchy) -> dict[str, int]:
    """Return the numbers of arrays and chunks, and how much of them is inlined."""
    arrays = [node for node in hierarchy.nodes.values() if isinstance(node, ArrayNode)]
    inlined = [sum(map(len, array.manifest.inline.values())) for array in arrays if array.manifest.inline]
    return {
        "arrays": len(arrays),
        "chunks": sum(array.manifest.count for array in arrays),
        "referred_bytes": sum(int(np.sum(np.maximum(array.manifest.nbytes, 0))) for array in arrays),
        "inlined_arrays": len(inlined),
        "inlined_bytes": sum(inlined),
    }


def describe_translation(source: str, done: Translation) -> dict[str, Any]:
    """Return the report for machines."""
    return {
        "source": display_url(source),
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


def describe_conversion(source: str, done: Conversion) -> dict[str, Any]:
    """Return the report for machines of a conversion."""
    return {
        "source": display_url(source),
        **count_up(done.hierarchy),
        "problems": [_describe(problem) for problem in done.problems],
        "warnings": [_describe(problem) for problem in done.warnings],
        "seconds": round(done.seconds, 6),
    }


def describe_failure(source: str, error: H5ZarrError) -> dict[str, Any]:
    """Return the report for machines of a translation of which nothing was written."""
    problems = error.problems if isinstance(error, ProblemsFound) else ()
    return {
        "source": display_url(source),
        "error": {"kind": error.kind, "message": str(error), "remedy": error.remedy},
        "problems": [_describe(problem) for problem in problems],
    }


def _describe(problem: Problem) -> dict[str, str]:
    return {"path": problem.path, "kind": problem.kind, "message": problem.message, "remedy": problem.remedy}
