"""The end of a report: problems, and the cost of reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from h5zarr.display import counted, readable
from h5zarr.errors import Problem
from h5zarr.hdf5.model import ChunkedLayout, Group, H5File
from h5zarr.io.log import RequestLog, cost_text


def problem_lines(
    problems: tuple[Problem, ...], phrase: Callable[[str], str] = str, thing: str = "problem"
) -> Iterator[str]:
    """Return every problem with its remedy below. Consecutive problems with the same remedy share it, after the
    last. `thing` is what one is called.
    """
    if problems:
        yield f"{counted(len(problems), thing)}:"
    for number, problem in enumerate(problems):
        yield f"  {readable(problem.path)}: {readable(problem.message)}"
        following = problems[number + 1] if number + 1 < len(problems) else None
        if problem.remedy and (following is None or following.remedy != problem.remedy):
            yield f"    {readable(phrase(problem.remedy))}"


def summary(file: H5File, nbytes: int, log: RequestLog) -> str:
    """Return one line: what the file holds, and what was read to find out."""
    groups, datasets, chunks = counts(file)
    held = [f"{counted(datasets, 'dataset')} in {counted(groups, 'group')}"]
    if chunks:
        held.append(counted(chunks, "chunk"))
    if file.problems:
        held.append(counted(len(file.problems), "problem"))
    return f"{', '.join(held)} · {cost_text(log, nbytes)}"


def counts(file: H5File) -> tuple[int, int, int]:
    """Return the numbers of groups, of datasets and of stored chunks."""
    groups = sum(isinstance(found, Group) for _, found in file.walk())
    layouts = [dataset.layout for _, dataset in file.datasets()]
    return groups, len(layouts), sum(len(each.chunks) for each in layouts if isinstance(each, ChunkedLayout))
