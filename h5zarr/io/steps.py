"""Steps: parsers that ask for bytes instead of reading them.

A Step is a generator that yields the spans it wants and is handed one buffer for each. It does no I/O, so many Steps
can run in lockstep: each round of all of them together is one batch of ranges, however many there are. The number of
rounds then depends on the depth of the file's structures, not on how many objects it holds.

Steps whose bytes were fetched before need not wait for those of others: a joint request may be answered in part. So the
rounds are as many as the longest chain of fetches has links, and a file whose metadata is at its beginning needs few.
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
    """What will be wanted later: answered with nothing, at once, and fetched along with the next round if it can be."""


class Joint(list[Span]):
    """The requests of several steps, each of which can go on without the others: some answers may come later.

    `is_stuck` says that the last answers were enough for none of them; `hints` are those of all.
    """

    __slots__ = ("hints", "is_stuck")

    def __init__(self, spans: Iterable[Span], hints: Hints, *, is_stuck: bool) -> None:
        super().__init__(spans)
        self.hints = hints
        self.is_stuck = is_stuck


class Partial(list[memoryview | None]):
    """Answers to a joint request, None where one comes later."""


class Far(Protocol):
    """A source for which it matters what was fetched before, and what will be wanted later."""

    def peek(self, spans: Sequence[Span], /) -> Sequence[memoryview] | Partial | None:
        """Return as many answers as take no fetching, None in the place of others; None for all where that is none."""
        ...

    def take_hints(self, hints: Hints, /) -> None:
        """Remember what will be wanted later."""
        ...


def run(step: Step[T], read_many: ReadMany, far: Far | None = None) -> T:
    """Return what `step` returns, reading what it asks for, one batch a round.

    From a source that is `far`, more is read only when all has been done that can be with the bytes at hand.
    """
    try:
        wanted = next(step)
        while True:
            hints = wanted if isinstance(wanted, Hints) else wanted.hints if isinstance(wanted, Joint) else None
            if far and hints:
                far.take_hints(hints)
            if not wanted or isinstance(wanted, Hints):
                wanted = step.send(())
                continue
            answers = far.peek(wanted) if far and isinstance(wanted, Joint) and not wanted.is_stuck else None
            # Only a joint request is answered in part, and those who make it know.
            wanted = step.send(read_many(wanted) if answers is None else cast("Sequence[memoryview]", answers))
    except StopIteration as finished:
        result: T = finished.value
        return result


def bounded(read_many: ReadMany, limits: Limits) -> ReadMany:
    """Return `read_many` as long as all that is asked for is no more metadata than a file may have."""
    asked = 0

    def read(spans: Sequence[Span]) -> Sequence[memoryview]:
        nonlocal asked
        asked += len(spans) * spans.nbytes if isinstance(spans, SpanColumn) else sum([nbytes for _, nbytes in spans])
        limits.check("metadata_nbytes", asked, f"its metadata take {asked:,} bytes or more")
        return read_many(spans)

    return read


def attempt(step: Step[T]) -> Step[T | H5ZarrError]:
    """Return what `step` returns, or the error that ended it: one broken part leaves its neighbours whole."""
    try:
        return (yield from step)
    except H5ZarrError as error:
        return error.with_traceback(None)  # which would keep all that the step held


def together(steps: Iterable[Step[T]]) -> Step[list[T]]:
    """Return the results of `steps`, in their order, having merged the requests of each round into one."""
    running = list(steps)
    try:
        return (yield from _in_lockstep(running))
    finally:
        for step in running:  # where one failed, the others are given up
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
    """Return what a step returns that asks for `wanted` next, and with which nobody else runs any more."""
    try:
        while True:
            wanted = step.send((yield wanted))
    except StopIteration as finished:
        result: T = finished.value
        return result


def _advance(step: Step[Any], answers: Sequence[memoryview] | None, hints: Hints) -> Sequence[Span]:
    """Return what a step asks for next, having added to `hints` what it will want later."""
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
    """Return several requests as one. One that is alone is passed on as it is: a column is answered as one."""
    if len(requests) == 1 and not hints:
        return requests[0]
    return Joint(chain.from_iterable(requests), hints, is_stuck=is_stuck)


def _share(buffers: Sequence[memoryview], requests: list[Sequence[Span]]) -> list[Sequence[memoryview] | None]:
    """Return the answers to each of the requests that were joined; None where somebody cannot yet go on."""
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
    """Return the results of two steps of different kinds, having merged their rounds."""
    first, second = yield from together(cast("list[Step[object]]", [one, other]))
    return cast("T", first), cast("U", second)


class Crew:
    """Steps that run in lockstep, to which more may be added while they run.

    `start` runs a step up to its first request; what it asks for joins the next round. When a step ends, `done` gets
    its result, and may start others: they run as soon as `done` returns, so a tree of any depth is walked without
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
        """Run every step that is ready until it asks for bytes or ends, and those that are started meanwhile."""
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
    except SURPRISES as error:
        raise surprised(error) from error
