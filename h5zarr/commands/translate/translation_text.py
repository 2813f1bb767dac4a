"""The text of a translation or conversion: problems, warnings and a one-line summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from h5zarr.display import counted, readable, size
from h5zarr.errors import Problem
from h5zarr.io.log import cost_text
from h5zarr.zarr_model.hierarchy import ArrayNode, Hierarchy

if TYPE_CHECKING:
    from h5zarr.commands.translate.translation import Translation

Phrase: TypeAlias = Callable[[str], str]
"""Translates option names into the reader's terms."""


def translation_lines(done: Translation, *, quiet: bool = False, phrase: Phrase = str) -> Iterator[str]:
    """Return all lines about a translation; only the problems if `quiet`."""
    yield from problem_lines(done.source, done.problems, phrase=phrase)
    if quiet:
        return
    yield from problem_lines(done.source, done.warnings, "warning: ", phrase=phrase)
    if done.bare_dimensions:
        names = ", ".join(readable(path.lstrip("/")) for path in done.bare_dimensions)
        yield f"dimensions without a coordinate variable: {names}"
    if done.renamed:
        names = ", ".join(f"{readable(path)} ({readable(stored)})" for path, stored in done.renamed.items())
        yield f"variables that have another name in the file: {names}"
    log = done.log
    yield f"{held_text(done.hierarchy)} · {cost_text(log, done.source_nbytes)} · {done.seconds:.2f} s"


def problem_lines(source: str, problems: Sequence[Problem], prefix: str = "", *, phrase: Phrase = str) -> Iterator[str]:
    """Return each problem with source, path and message. The remedy follows, once for neighbours that share it."""
    shown = readable(source)
    for number, problem in enumerate(problems):
        yield f"{prefix}{shown}:{readable(problem.path)}: {readable(problem.message)}"
        following = problems[number + 1] if number + 1 < len(problems) else None
        if problem.remedy and (following is None or following.remedy != problem.remedy):
            yield f"  {readable(phrase(problem.remedy))}"


def held_text(hierarchy: Hierarchy) -> str:
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
    inlined = [sum(map(len, array.manifest.inline.values())) for array in arrays if array.manifest.inline_count]
    return {
        "arrays": len(arrays),
        "chunks": sum(array.manifest.count for array in arrays),
        "referenced_bytes": sum(array.manifest.referenced_nbytes for array in arrays),
        "inlined_arrays": len(inlined),
        "inlined_bytes": sum(inlined),
    }
