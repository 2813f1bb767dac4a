"""The text report of a check."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from h5zarr.commands.check.advice import MetadataCost
from h5zarr.commands.check.combining import Combining, Difference, Value
from h5zarr.commands.check.files import CheckedFile
from h5zarr.commands.check.variables import CheckedVariable, Verdict
from h5zarr.display import counted, readable, shortened, size
from h5zarr.errors import Problem
from h5zarr.zarr_model.hierarchy import Json

if TYPE_CHECKING:
    from h5zarr.commands.check.check import CheckReport

Phrase: TypeAlias = Callable[[str], str]
"""Translates option names into the reader's terms."""

MOST_FILES = 20  # up to this many files get a line each
_MOST_NAMES = 3
_MOST_VALUES = 3
_VALUE_LIMIT = 80
_BETWEEN = " · "


def report_lines(report: CheckReport, *, all: bool = False, phrase: Phrase = str) -> Iterator[str]:
    """Return the whole report. One file, or each if `all`, is listed by variable; several get a line each."""
    if all or len(report.files) == 1:
        for file in report.files:
            yield from file_lines(file, phrase)
            yield ""
    else:
        yield from _many_lines(report.files, phrase)
    for one in report.unreadable:
        yield f"cannot be read: {readable(one.source)}: {readable(one.message.removeprefix(f'{one.source}:').strip())}"
        if one.remedy:
            yield f"  {readable(phrase(one.remedy))}"
    if report.combining is not None:
        yield from combining_lines(report.combining, phrase)
    if report.plan is not None:
        yield f"h5zarr combine {'refuses them' if report.plan.cube is None else 'joins them'}:"
        yield from (f"  {line}" for line in report.plan.lines(phrase))
    yield conclusion(report)


# --- one file


def file_lines(file: CheckedFile, phrase: Phrase = str) -> Iterator[str]:
    """Return the lines about one file."""
    yield f"{readable(file.source)}: {file.format}, {size(file.nbytes)}"
    for variable in file.variables:
        yield from _variable_lines(variable, phrase)
    for problem in file.problems:
        yield from _problem_lines("  problem     ", problem, phrase)
    for warning in file.warnings:
        yield from _problem_lines("  warning     ", warning, phrase)
    yield f"  {_metadata_text(file.metadata)}"
    if file.advice:
        yield "advice:"
    for advice in file.advice:
        yield f"  {_of(advice.path)}{readable(advice.message)}"
        if advice.command:
            yield f"    {readable(advice.command)}"


def _variable_lines(variable: CheckedVariable, phrase: Phrase) -> Iterator[str]:
    if variable.verdict is not Verdict.REFUSED:
        yield f"  {variable.verdict.value:<10}  {readable(variable.path)} {_BETWEEN.join(_parts(variable))}"
    for problem in variable.problems:
        is_refused = variable.verdict is Verdict.REFUSED
        yield from _problem_lines("  refused     " if is_refused else "  in part     ", problem, phrase)


def _problem_lines(prefix: str, problem: Problem, phrase: Phrase) -> Iterator[str]:
    yield f"{prefix}{readable(problem.path)}: {readable(problem.message)}"
    if problem.remedy:
        yield f"{'':<14}  {readable(phrase(problem.remedy))}"


def _parts(variable: CheckedVariable) -> Iterator[str]:
    axes = zip(variable.dimension_names, variable.shape, strict=True)
    yield f"({', '.join(f'{readable(name)}={extent}' for name, extent in axes)}) {_type_name(variable.data_type)}"
    if variable.chunk_count:
        shape = f"({', '.join(map(str, variable.chunk_shape))})"
        yield f"{counted(variable.chunk_count, 'chunk')} {shape}"
        ratio = f" ({variable.compression_ratio:,.1f}:1)" if variable.is_compressed else ""
        yield f"{size(variable.stored_chunk_nbytes)} stored, {size(variable.chunk_nbytes)} decoded{ratio}"
        yield f"{variable.requests_per_gb or 0:,.0f} requests per GB"
    if variable.inlined_nbytes:
        yield f"{size(variable.inlined_nbytes)} in the references"
    if variable.verdict is Verdict.UNWRITTEN:
        yield "nothing is stored, reads as fill"


def _type_name(data_type: Json) -> str:
    return str(data_type if isinstance(data_type, str) else data_type["name"])


def _metadata_text(cost: MetadataCost) -> str:
    where = f"in {counted(cost.places, 'place')}" + (", in pages" if cost.is_paged else "")
    block = f", behind a user block of {size(cost.user_block_nbytes)}" if cost.user_block_nbytes else ""
    taken = f"{counted(cost.rounds, 'round')}, {counted(cost.requests, 'request')}, {size(cost.nbytes)}"
    return f"metadata    {size(cost.asked_nbytes)} {where}{block} · a scan takes {taken}"


# --- many files


def _many_lines(files: Sequence[CheckedFile], phrase: Phrase) -> Iterator[str]:
    """Return a line per file if they are few, and the refusals and advice of all files, grouped."""
    if len(files) <= MOST_FILES:
        yield from (f"{readable(file.source)}: {_counts(file)}" for file in files)
    else:
        nbytes = sum(file.nbytes for file in files)
        yield f"{len(files):,} files, {size(nbytes)}; {phrase('all=True')} shows each"
    refused: dict[tuple[str, str, str], list[str]] = {}
    advised: dict[tuple[str, str], list[str]] = {}
    first: dict[tuple[str, str], tuple[str, str]] = {}
    for file in files:
        problems = [*file.problems, *(problem for variable in file.variables for problem in variable.problems)]
        for problem in problems:
            refused.setdefault((problem.path, problem.message, problem.remedy), []).append(file.source)
        for advice in file.advice:
            advised.setdefault((advice.path, advice.kind), []).append(file.source)
            first.setdefault((advice.path, advice.kind), (advice.message, advice.command))
    for (path, message, remedy), names in refused.items():
        yield f"refused: {readable(path)}: {readable(message)} ({_names(names)})"
        if remedy:
            yield f"  {readable(phrase(remedy))}"
    for key, names in advised.items():
        message, command = first[key]
        yield f"advice: {_of(key[0])}{readable(message)} ({_names(names)})"
        if command:
            yield f"  {readable(command)}"


def _counts(file: CheckedFile) -> str:
    found = ((file.count(verdict), verdict.value) for verdict in Verdict)
    parts = [f"{count:,} {what}" for count, what in found if count]
    return f"{size(file.nbytes)}, {', '.join(parts) or 'no variables'}"


def combining_lines(combining: Combining, phrase: Phrase = str) -> Iterator[str]:
    """Return the lines about what keeps files from becoming plain arrays, which every tool can join."""
    axis = combining.axis
    name = "a new axis" if axis.name is None else readable(axis.name)
    yield f"combining {counted(combining.count, 'file')} along {name}: {axis.reason}"
    if not combining.is_possible:
        yield "  these differences keep them from becoming plain arrays, which every tool can join:"
    for number, difference in enumerate(combining.differences):
        yield f"  {difference_text(difference)}"
        following = combining.differences[number + 1 : number + 2]
        if not following or following[0].remedy != difference.remedy:
            yield f"    {readable(phrase(difference.remedy))}"


def difference_text(difference: Difference) -> str:
    """Return `/temp: chunk shape (1, 90) in 999 files, but (1, 45) in odd.nc`."""
    paths = _names(list(difference.paths))
    rule = "" if difference.rule == "presence" else f"{readable(difference.rule)} "
    common, *others = difference.values
    if difference.rule == "last chunk":
        rule = "the last chunk is partial: "
    text = f"{paths}: {rule}{_value(common, is_common=bool(others))}"
    if others:
        text += f", but {', '.join(_value(value) for value in others[:_MOST_VALUES])}"
    rest = others[_MOST_VALUES:]
    if rest:
        text += f", and {counted(len(rest), 'other value')} in {counted(sum(len(one.files) for one in rest), 'file')}"
    return text


def _value(value: Value, *, is_common: bool = False) -> str:
    text = shortened(readable(value.text), _VALUE_LIMIT)
    is_many = is_common and len(value.files) > _MOST_NAMES
    return f"{text} in {counted(len(value.files), 'file') if is_many else _names(value.files)}"


def _names(names: Sequence[str]) -> str:
    """Return up to three names, and the number of others."""
    if len(names) <= _MOST_NAMES:
        return ", ".join(map(readable, names))
    rest = len(names) - _MOST_NAMES + 1
    return f"{', '.join(map(readable, names[: _MOST_NAMES - 1]))} and {counted(rest, 'other')}"


def _of(path: str) -> str:
    return "" if path == "/" else f"{readable(path)}: "


# --- the end


def conclusion(report: CheckReport) -> str:
    """Return the conclusion in one line."""
    refused = sum(file.count(Verdict.REFUSED) for file in report.files)
    others = sum(not file.is_virtualisable for file in report.files)
    said = []
    if report.unreadable:
        said.append(f"{counted(len(report.unreadable), 'file')} cannot be read")
    if refused:
        said.append(f"{counted(refused, 'variable')} cannot be virtualised")
    elif others:
        said.append(f"some of {counted(others, 'file')} cannot be virtualised")
    elif report.files:
        said.append("everything can be virtualised")
    if report.plan is not None:
        is_plain = "" if report.combining is not None and report.combining.is_possible else ", but not by every tool"
        is_possible = report.plan.is_possible
        said.append(
            f"the files can be combined{is_plain}" if is_possible else "the files cannot be combined as they are"
        )
    return _BETWEEN.join(said)
