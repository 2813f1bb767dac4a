"""The work itself: a few sources, several at a time, in whatever process it is asked for. What comes back is small."""

from __future__ import annotations

import hashlib
import os
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

from h5zarr import __version__
from h5zarr.errors import H5ZarrError, OutputError, SourceError, SourceGone, SourceRefused
from h5zarr.hierarchy import ArrayNode
from h5zarr.indexing.listing import ask_identity
from h5zarr.indexing.place import Place
from h5zarr.indexing.planning import Task
from h5zarr.indexing.rows import Row, Status
from h5zarr.indexing.watching import encode_related
from h5zarr.io.policy import ReadPolicy
from h5zarr.io.source import Identity
from h5zarr.translating import Options, Translation, translate

SUFFIXES = {
    "json": ".json",
    "json.gz": ".json.gz",
    "json.zst": ".json.zst",
    "parquet": ".parquet",
    "icechunk": ".icechunk",
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How sources are indexed: where outputs go, in which format, and how files are read.

    `at_once` sources are under way at a time in a process, and none is begun after `seconds`: a batch ends soon.
    """

    out: str = field(repr=False)
    format: str = "json"
    found_by: str = ""
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    output_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    policy: ReadPolicy | None = None
    options: Options = field(default_factory=Options)
    at_once: int = 16
    seconds: float = 1.0

    @property
    def suffix(self) -> str:
        return SUFFIXES[self.format]

    @cached_property
    def digest(self) -> str:
        """A few letters that differ where outputs would: by format and options, not by how files are reached."""
        return hashlib.sha256(f"{self.format} {self.options!r}".encode()).hexdigest()[:12]


class Unexpected(H5ZarrError):
    """Something happened that h5zarr does not know of."""

    kind = "unexpected"
    remedy = "This is a mistake in h5zarr: please tell of it in an issue, with the file if you can."


class Done(NamedTuple):
    """What became of a task; `may_pass` says that it failed for a reason that may be gone soon."""

    task: Task
    row: Row
    may_pass: bool


class Batch(NamedTuple):
    """What became of a batch: tasks that were done, and those that were not begun."""

    done: list[Done]
    left: list[Task]


def index_batch(tasks: Sequence[Task], settings: Settings) -> Batch:
    """Index sources, and return what became of each; those for which no time was left are handed back."""
    end = time.monotonic() + settings.seconds
    place = Place(settings.out, settings.output_options)

    def work(number: int) -> Done | None:
        # The first is begun in any case: every batch does something.
        return None if number and time.monotonic() > end else index_one(tasks[number], settings, place)

    with ThreadPoolExecutor(settings.at_once) as pool:
        found = list(pool.map(work, range(len(tasks))))
    left = [task for task, one in zip(tasks, found, strict=True) if one is None]
    return Batch([one for one in found if one is not None], left)


def index_one(task: Task, settings: Settings, place: Place) -> Done:
    """Write the references of one source, and return what became of it."""
    started = time.perf_counter()
    try:
        out = place.prepare(task.output)
        made = translate(
            task.url,
            _container(out, settings),
            storage_options=settings.storage_options,
            output_options=settings.output_options,
            policy=settings.policy,
            options=settings.options,
        )
    except H5ZarrError as error:
        failure = error
    except Exception as error:  # one file that h5zarr is not up to does not end a job of a million
        failure = Unexpected(f"{task.source}: {_describe(error)}")
    else:
        return Done(task, _indexed_row(task, settings, made, time.perf_counter() - started), False)
    seconds = time.perf_counter() - started
    # Without its state, the next run could not tell whether it is the same file that fails again.
    identity = task.identity or ask_identity(task.url, settings.storage_options)
    return Done(task, failed_row(replace(task, identity=identity), settings, failure, seconds), _may_pass(failure))


def _container(out: str, settings: Settings) -> str:
    if settings.format != "icechunk":
        return out
    return f"icechunk+{out if '://' in out else 'file://' + os.path.abspath(out)}"


def _describe(error: Exception) -> str:
    """Return what happened and where, without the text of the exception, which may quote a secret."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {os.path.basename(frames[-1].filename)}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"


def _may_pass(error: H5ZarrError) -> bool:
    """Return whether it is worth trying again soon."""
    return isinstance(error, SourceError | OutputError) and not isinstance(error, SourceGone | SourceRefused)


def _indexed_row(task: Task, settings: Settings, made: Translation, seconds: float) -> Row:
    arrays = [node for node in made.hierarchy.nodes.values() if isinstance(node, ArrayNode)]
    return Row(
        source=task.source,
        found_by=settings.found_by,
        identity=made.provenance.sources[0].identity,
        related=encode_related(_related(made)),
        output=task.output,
        settings=settings.digest,
        status=Status.INDEXED,
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
    """Yield the states of all other files that decide on what was made."""
    yield from ((one.url, one.identity) for one in made.provenance.sources[1:])
    yield from made.unread.items()


def failed_row(task: Task, settings: Settings, error: H5ZarrError, seconds: float = 0.0) -> Row:
    """Return the row of a source that could not be indexed."""
    return Row(
        source=task.source,
        found_by=settings.found_by,
        identity=task.identity,
        output=task.output,
        settings=settings.digest,
        status=Status.STALE if task.had_output else Status.FAILED,
        reason=f"{error.kind}: {error}",
        remedy=error.remedy,
        attempts=task.attempts + 1,
        seconds=round(seconds, 6),
        tool_version=__version__,
        time=datetime.now(UTC),
    )
