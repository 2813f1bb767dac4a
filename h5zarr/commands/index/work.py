"""The work of one process: index a batch of sources, several at a time, and return small results."""

from __future__ import annotations

import hashlib
import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any, NamedTuple

from h5zarr import __version__
from h5zarr.commands.catalog.listing import ask_identity
from h5zarr.commands.catalog.place import Place
from h5zarr.commands.catalog.rows import UNWRITTEN, Row, Status, settings_of
from h5zarr.commands.combine.recipe import Recipe
from h5zarr.commands.index.output_formats import container_of_format, output_formats
from h5zarr.commands.index.planning import Task
from h5zarr.commands.index.watching import encode_related
from h5zarr.commands.translate.options import Options
from h5zarr.commands.translate.translate import run_translation
from h5zarr.commands.translate.translation import Translation
from h5zarr.commands.update.shards import ShardStore
from h5zarr.containers.container import Output
from h5zarr.containers.registry import mark_location
from h5zarr.display import counted
from h5zarr.errors import (
    H5ZarrError,
    OutputError,
    OutputExists,
    Problem,
    SourceError,
    SourceGone,
    SourceRefused,
    SourceTimeout,
    Truncated,
    WrongOutput,
)
from h5zarr.io.access import USUAL_ACCESS, Access
from h5zarr.io.location import Location
from h5zarr.io.source import Identity


@dataclass(frozen=True, kw_only=True)
class IndexSettings:
    """How sources are indexed: where outputs go, in which format, and how files are read.

    If `strict`, a source with problems is a failure. A process works on `at_once` sources at a time and starts none
    after `seconds`, so that batches stay short. For each of `recipes`, it leaves a shard of the files that it has read.
    If the format is `none`, that is all it leaves.
    """

    out: str = field(repr=False)
    format: str = "json"
    strict: bool = False
    access: Access = USUAL_ACCESS
    output_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    overwrite: bool = False
    options: Options = field(default_factory=Options)
    at_once: int = 16
    seconds: float = 1.0
    recipes: tuple[Recipe, ...] = ()

    @property
    def suffix(self) -> str:
        return output_formats()[self.format]

    @cached_property
    def digest(self) -> str:
        """A short hash of what affects the outputs: format, options and allowed places, not how files are opened.

        `settings_of` adds what `strict` changes.
        """
        return hashlib.sha256(f"{self.format} {self.options!r} {self.access.allow!r}".encode()).hexdigest()[:12]


class Unexpected(H5ZarrError):
    """An exception that h5zarr did not expect."""

    kind = "unexpected"
    remedy = "This is a bug in h5zarr: please open an issue, with the file if you can."


class Rejected(H5ZarrError):
    """A file was read, but too much of it would be left out. No references are written."""

    def __init__(self, kind: str, message: str, problems: Sequence[Problem], remedy: str, related: str) -> None:
        self.kind = kind
        self.problems = tuple(problems)
        self.related = related
        super().__init__(message, remedy=remedy)


class Done(NamedTuple):
    """The result of a task. `is_temporary`: it failed, but a retry may soon succeed."""

    task: Task
    row: Row
    is_temporary: bool


class Batch(NamedTuple):
    """The result of a batch: the tasks done, and those not started."""

    done: list[Done]
    left: list[Task]


def index_batch(tasks: Sequence[Task], settings: IndexSettings) -> Batch:
    """Index sources and return the result of each. Sources not started in time are returned as `left`."""
    end = time.monotonic() + settings.seconds
    place = Place(settings.out, settings.output_options, settings.access.network)

    read: dict[int, Translation] = {}

    def work(number: int) -> Done | None:
        # Always start the first, so that every batch makes progress.
        if number and time.monotonic() > end:
            return None
        return index_one(tasks[number], settings, place, partial(read.__setitem__, number))

    with ThreadPoolExecutor(settings.at_once) as pool:
        found = list(pool.map(work, range(len(tasks))))
    for recipe in settings.recipes:
        # What a shard has is also in the outputs or the files, so the cube gets it in any case.
        with suppress(H5ZarrError):
            files = [read[number] for number in sorted(read)]
            ShardStore(place, recipe, settings.access).add(files, keep_few=not settings.suffix)
    left = [task for task, one in zip(tasks, found, strict=True) if one is None]
    return Batch([one for one in found if one is not None], left)


def index_one(
    task: Task, settings: IndexSettings, place: Place, on_read: Callable[[Translation], None] | None = None
) -> Done:
    """Write the references of one source and return the result. `on_read` gets what was translated."""
    started = time.perf_counter()
    try:
        output = _output(task, settings, place)
        accept = partial(reject_unreadable, strict=settings.strict)
        made = run_translation(Location.parse(task.url), output, settings.options, settings.access, accept=accept)
    except H5ZarrError as error:
        failure = error
    except Exception as error:  # one unreadable file must not end a job of a million
        failure = Unexpected(f"{task.source}: {_describe(error)}")
    else:
        if on_read is not None and settings.recipes:
            on_read(made)
        return Done(task, _indexed_row(task, settings, made, time.perf_counter() - started), False)
    seconds = time.perf_counter() - started
    # Without the file's state, the next run could not tell whether the same file fails again.
    identity = task.identity or ask_identity(task.url, settings.access)
    return Done(task, failed_row(replace(task, identity=identity), settings, failure, seconds), _is_temporary(failure))


def _output(task: Task, settings: IndexSettings, place: Place) -> Output | None:
    """Return where the references of a source go; None if none are written."""
    container = container_of_format(settings.format)
    if container is None:
        return None
    return Output(
        location=mark_location(container, Location.parse(place.prepare(task.output))),
        storage_options=settings.output_options,
        source_options=settings.access.options_for(task.url),
        overwrite=settings.overwrite,
        network=settings.access.network,
    )


def reject_unreadable(made: Translation, *, strict: bool = False) -> None:
    """Raise Rejected if a file is truncated, if it has problems and no readable array, or if `strict` and it has any.

    A valid file without arrays is fine: its references contain its groups and attributes.
    """
    problems, is_cut = made.problems, [problem for problem in made.problems if problem.kind == Truncated.kind]
    related = encode_related(_related(made))
    if is_cut:
        message = is_cut[0].message if is_cut[0].path == "/" else str(is_cut[0])
        raise Rejected(Truncated.kind, message, problems, Truncated.remedy, related)
    if problems and not made.arrays():
        raise Rejected(
            "unreadable", f"nothing in it can be read: {_first_of(problems)}", problems, problems[0].remedy, related
        )
    if problems and strict:
        remedy = "Leave out what cannot be read with exclude=[PATTERN], or index the rest without strict=True."
        raise Rejected("strict", f"it has problems, and strict=True: {_first_of(problems)}", problems, remedy, related)


def _first_of(problems: Sequence[Problem]) -> str:
    more = f" (and {counted(len(problems) - 1, 'more problem')})" if len(problems) > 1 else ""
    return f"{problems[0]}{more}"


def _describe(error: Exception) -> str:
    """Return the exception's type and location, without its text, which may quote a secret."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {os.path.basename(frames[-1].filename)}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"


def _is_temporary(error: H5ZarrError) -> bool:
    """Return whether a retry may soon succeed.

    After a timeout, the time that the user allows has passed, over several attempts; the next run tries again.
    """
    is_final = isinstance(error, SourceGone | SourceRefused | SourceTimeout | OutputExists | WrongOutput)
    return isinstance(error, SourceError | OutputError) and not is_final


def _indexed_row(task: Task, settings: IndexSettings, made: Translation, seconds: float) -> Row:
    arrays = made.arrays().values()
    status = Status.INDEXED_WITH_PROBLEMS if made.problems else Status.INDEXED
    return Row(
        source=task.source,
        found_by=task.found_by,
        identity=made.provenance.sources[0].identity,
        related=encode_related(_related(made)),
        output=task.output,
        settings=settings_of(settings.digest, status, strict=settings.strict),
        status=status,
        problems=made.problems,
        arrays=len(arrays),
        chunks=sum(array.manifest.count for array in arrays),
        requests=made.log.requests,
        bytes_read=made.log.nbytes,
        seconds=round(seconds, 6),
        tool_version=__version__,
        time=datetime.now(UTC),
    )


def _related(made: Translation) -> Iterator[tuple[str, Identity | None]]:
    """Yield the states of all other files that affect the output."""
    yield from ((one.url, one.identity) for one in made.provenance.sources[1:])
    yield from made.unread.items()


def _without_name(message: str, task: Task) -> str:
    """Return a message without the name of the source at its beginning, as it was given or as it is recorded."""
    for name in (str(Location.parse(task.url)), task.source):
        message = message.removeprefix(f"{name}:").strip()
    return message


def failed_row(task: Task, settings: IndexSettings, error: H5ZarrError, seconds: float = 0.0) -> Row:
    """Return the row of a source that could not be indexed."""
    status = Status.STALE if task.had_output else Status.FAILED
    is_unwritten = isinstance(error, OutputError)
    problems, related = (error.problems, error.related) if isinstance(error, Rejected) else ((), "")
    return Row(
        source=task.source,
        found_by=task.found_by,
        identity=task.identity,
        related=related,
        output=task.output,
        settings=UNWRITTEN if is_unwritten else settings_of(settings.digest, status, strict=settings.strict),
        status=status,
        problems=problems,
        reason=f"{error.kind}: {_without_name(str(error), task)}",
        remedy=error.remedy,
        attempts=task.attempts + 1,
        seconds=round(seconds, 6),
        tool_version=__version__,
        time=datetime.now(UTC),
    )
