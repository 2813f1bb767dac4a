"""Steps: parsers that ask for bytes instead of reading them.

A Step is a generator that yields the spans it wants and receives one buffer for each. It does no I/O, so many Steps can
run in lockstep: each round of all Steps together is one batch of ranges. The number of rounds then depends on the depth
of the file's structures, not on the number of objects.

A Step whose bytes are cached need not wait for other Steps: a joint request may be answered in part. So the number of
rounds is the length of the longest chain of fetches, and a file with its metadata at the start needs few.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import chain
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from h5zarr.errors import SURPRISES, H5ZarrError, surprised
from h5zarr.io.column import SpanColumn
from h5zarr.io.span import AmongData, Pages, Rounds, Span
from h5zarr.limits import Limits

T = TypeVar("T")
U = TypeVar("U")
Step: TypeAlias = "Generator[Sequence[Span] | Hints, Sequence[memoryview], T]"
ReadMany: TypeAlias = Callable[[Sequence[Span]], Sequence[memoryview]]


class Hints(list[Span | Pages | Rounds | AmongData]):
    """Spans that will be wanted later. They get an empty answer; the next round fetches them if that is cheap."""


class Joint(list[Span]):
    """The merged requests of several steps. Each step can continue without the others, so some answers may come later.

    `is_stuck` means that the last answers let no step continue. `hints` has the hints of all steps.
    """

    __slots__ = ("hints", "is_stuck")

    def __init__(self, spans: Iterable[Span], hints: Hints, *, is_stuck: bool) -> None:
        super().__init__(spans)
        self.hints = hints
        self.is_stuck = is_stuck


class Partial(list[memoryview | None]):
    """Answers to a joint request; None for those that come later."""


class Planner(Protocol):
    """A source with a cache, which plans its rounds."""

    def peek(self, spans: Sequence[Span], /) -> Sequence[memoryview] | Partial | None:
        """Return the cached answers, with None for spans that are not cached. Return None if no span is cached."""
        ...

    def take_hints(self, hints: Hints, /) -> None:
        """Remember hints for the next round."""
        ...


def run(step: Step[T], read_many: ReadMany, planner: Planner | None = None) -> T:
    """Return the result of `step`. Each round reads the spans it asks for as one batch.

    With a `planner`, the next round is read only when no step can continue with the cached bytes.
    """
    try:
        wanted = next(step)
        while True:
            hints = wanted if isinstance(wanted, Hints) else wanted.hints if isinstance(wanted, Joint) else None
            if planner and hints:
                planner.take_hints(hints)
            if not wanted or isinstance(wanted, Hints):
                wanted = step.send(())
                continue
            answers = planner.peek(wanted) if planner and isinstance(wanted, Joint) and not wanted.is_stuck else None
            # Only joint requests get partial answers, and the code that makes them expects that.
            wanted = step.send(read_many(wanted) if answers is None else cast("Sequence[memoryview]", answers))
    except StopIteration as finished:
        result: T = finished.value
        return result


def bounded(read_many: ReadMany, limits: Limits) -> ReadMany:
    """Return a `read_many` that raises LimitReached once more metadata than `limits` allows has been requested."""
    asked = 0

    def read(spans: Sequence[Span]) -> Sequence[memoryview]:
        nonlocal asked
        asked += len(spans) * spans.nbytes if isinstance(spans, SpanColumn) else sum([nbytes for _, nbytes in spans])
        limits.check("metadata_nbytes", asked, f"its metadata take {asked:,} bytes or more")
        return read_many(spans)

    return read


def attempt(step: Step[T]) -> Step[T | H5ZarrError]:
    """Return the result of `step`, or the error that ended it, so that one broken part does not affect others."""
    try:
        return (yield from step)
    except H5ZarrError as error:
        return error.with_traceback(None)  # the traceback would keep the step's local variables alive


def together(steps: Iterable[Step[T]]) -> Step[list[T]]:
    """Return the results of `steps`, in the same order. The requests of each round are merged into one."""
    running = list(steps)
    try:
        return (yield from _in_lockstep(running))
    finally:
        for step in running:  # if one has failed, the others have not finished
            step.close()


def _in_lockstep(running: list[Step[T]]) -> Step[list[T]]:
    results: list[T | None] = [None] * len(running)
    waiting: list[tuple[int, Sequence[Span]]] = []  # number of a step and what it asks for
    hints = Hints()
    for number, step in enumerate(running):
        try:
            waiting.append((number, _advance(step, None, hints)))
        except StopIteration as finished:
            results[number] = finished.value
    is_stuck = False
    while waiting:
        if len(waiting) == 1 and not hints:
            number, wanted = waiting[0]
            results[number] = yield from _finish_alone(running[number], wanted)
            break
        buffers = yield _join([wanted for _, wanted in waiting], hints, is_stuck)
        answered, waiting, hints, is_stuck = waiting, [], Hints(), True
        shares = _share(buffers, [wanted for _, wanted in answered])
        for (number, wanted), share in zip(answered, shares, strict=True):
            if share is None:
                waiting.append((number, wanted))
                continue
            try:
                wanted = _advance(running[number], share, hints)
            except StopIteration as finished:
                results[number] = finished.value
                is_stuck = False
            else:
                waiting.append((number, wanted))
                is_stuck &= isinstance(wanted, Joint) and wanted.is_stuck
    if hints:
        yield hints
    return cast("list[T]", results)


def _finish_alone(step: Step[T], wanted: Sequence[Span] | Hints) -> Step[T]:
    """Return the result of the last running step, which asks for `wanted` next."""
    try:
        while True:
            wanted = step.send((yield wanted))
    except StopIteration as finished:
        result: T = finished.value
        return result


def _advance(step: Step[Any], answers: Sequence[memoryview] | None, hints: Hints) -> Sequence[Span]:
    """Return the next request of a step, and add its hints to `hints`."""
    wanted = next(step) if answers is None else step.send(answers)
    if type(wanted) is list:  # as nearly all requests are
        return cast("list[Span]", wanted)
    while isinstance(wanted, Hints):
        hints += wanted
        wanted = step.send(())
    if isinstance(wanted, Joint) and wanted.hints:
        hints += wanted.hints
        wanted.hints = Hints()
    return wanted


def _join(requests: list[Sequence[Span]], hints: Hints, is_stuck: bool) -> Sequence[Span]:
    """Return several requests as one. A single request is passed on unchanged, so that a column stays a column."""
    if len(requests) == 1 and not hints:
        return requests[0]
    return Joint(chain.from_iterable(requests), hints, is_stuck=is_stuck)


def _share(buffers: Sequence[memoryview], requests: list[Sequence[Span]]) -> list[Sequence[memoryview] | None]:
    """Return the answers to each of the joined requests; None if its step cannot continue yet."""
    if len(requests) == 1 and not isinstance(buffers, Partial):
        return [buffers]
    shares: list[Sequence[memoryview] | None] = []
    start = 0
    for wanted in requests:
        end = start + len(wanted)
        shares.append(buffers[start:end])
        start = end
    if not isinstance(buffers, Partial):
        return shares
    return [_partial_share(share or (), wanted) for share, wanted in zip(shares, requests, strict=True)]


def _partial_share(share: Sequence[memoryview], wanted: Sequence[Span]) -> Sequence[memoryview] | None:
    if None not in share:
        return share
    if isinstance(wanted, Joint) and any(buffer is not None for buffer in share):
        return cast("Sequence[memoryview]", Partial(share))
    return None


def both(one: Step[T], other: Step[U]) -> Step[tuple[T, U]]:
    """Return the results of two steps of different types. Their rounds are merged."""
    first, second = yield from together(cast("list[Step[object]]", [one, other]))
    return cast("T", first), cast("U", second)


class Crew:
    """Steps that run in lockstep. Running steps can start others.

    `start` runs a step up to its first request, which becomes part of the next round. When a step ends, `done` receives
    its result and may start other steps. They run as soon as `done` returns, so a tree of any depth is walked without
    recursion.
    """

    def __init__(self) -> None:
        self._ready: deque[tuple[Step[object], Callable[[object], None], Sequence[memoryview] | None]] = deque()
        self._waiting: list[tuple[Step[object], Callable[[object], None], Sequence[Span]]] = []
        self._hints = Hints()
        self._advancing = False

    def start(self, step: Step[T], done: Callable[[T], None]) -> None:
        """Run `step` until it asks for bytes or ends."""
        self._ready.append((step, done, None))  # type: ignore[arg-type]
        if not self._advancing:
            self._advance()

    def finish(self) -> Step[None]:
        """Run every step to its end, merging the requests of each round into one."""
        is_stuck = False
        while self._waiting:
            running, self._waiting = self._waiting, []
            hints, self._hints = self._hints, Hints()
            buffers = yield _join([wanted for _, _, wanted in running], hints, is_stuck)
            is_stuck = True
            shares = _share(buffers, [wanted for _, _, wanted in running])
            for (step, done, wanted), share in zip(running, shares, strict=True):
                if share is None:
                    self._waiting.append((step, done, wanted))
                    continue
                before = len(self._waiting)
                self._ready.append((step, done, share))
                self._advance()
                added = self._waiting[before:]
                is_stuck &= len(added) == 1 and isinstance(added[0][2], Joint) and added[0][2].is_stuck
        if self._hints:
            yield self._hints

    def _advance(self) -> None:
        """Run every ready step until it asks for bytes or ends, including steps that are started meanwhile."""
        self._advancing = True
        try:
            while self._ready:
                step, done, buffers = self._ready.popleft()
                try:
                    wanted = _advance(step, buffers, self._hints)
                    while not wanted:
                        wanted = _advance(step, (), self._hints)
                except StopIteration as finished:
                    done(finished.value)
                else:
                    self._waiting.append((step, done, wanted))
        finally:
            self._advancing = False


def guarded(step: Step[T]) -> Step[T]:
    """Return the result of `step`. Unexpected exceptions from Python or numpy become `MalformedFile`.

    Parsers check what they read, and tests with thousands of damaged files show that this suffices. If a check is
    missing, the file should lose one object, not all of them.
    """
    try:
        return (yield from step)
    except H5ZarrError:  # some are also what Python programmers expect, such as a ValueError
        raise
    except SURPRISES as error:
        raise surprised(error) from error
