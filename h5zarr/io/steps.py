"""Steps: parsers that ask for bytes instead of reading them.

A Step is a generator that yields the spans it wants and is handed one buffer for each. It does no I/O, so many Steps
can run in lockstep: each round of all of them together is one batch of ranges, however many there are. The number of
rounds then depends on the depth of the file's structures, not on how many objects it holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TypeAlias, TypeVar, cast

from h5zarr.errors import H5ZarrError
from h5zarr.io.span import Span

T = TypeVar("T")
U = TypeVar("U")
Step: TypeAlias = Generator[Sequence[Span], Sequence[memoryview], T]
ReadMany: TypeAlias = Callable[[Sequence[Span]], Sequence[memoryview]]


def run(step: Step[T], read_many: ReadMany) -> T:
    """Return what `step` returns, reading what it asks for, one batch a round."""
    try:
        wanted = next(step)
        while True:
            wanted = step.send(read_many(wanted) if wanted else ())
    except StopIteration as finished:
        result: T = finished.value
        return result


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
    for number, step in enumerate(running):
        try:
            waiting.append((number, next(step)))
        except StopIteration as finished:
            results[number] = finished.value
    while waiting:
        buffers = yield [span for _, wanted in waiting for span in wanted] if len(waiting) > 1 else waiting[0][1]
        answered, waiting, taken = waiting, [], 0
        for number, wanted in answered:
            end = taken + len(wanted)
            try:
                waiting.append((number, running[number].send(buffers[taken:end])))
            except StopIteration as finished:
                results[number] = finished.value
            taken = end
    return cast("list[T]", results)


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
        self._advancing = False

    def start(self, step: Step[T], done: Callable[[T], None]) -> None:
        """Run `step` until it asks for bytes or ends."""
        self._ready.append((step, done, None))  # type: ignore[arg-type]
        if not self._advancing:
            self._advance()

    def finish(self) -> Step[None]:
        """Run every step to its end, merging the requests of each round into one."""
        while self._waiting:
            running, self._waiting = self._waiting, []
            # One that is alone has its request passed on as it is: it may be a column, which is answered as one.
            buffers = yield [span for _, _, wanted in running for span in wanted] if len(running) > 1 else running[0][2]
            taken = 0
            for step, done, wanted in running:
                self._ready.append((step, done, buffers[taken : taken + len(wanted)]))
                self._advance()
                taken += len(wanted)

    def _advance(self) -> None:
        """Run every step that is ready until it asks for bytes or ends, and those that are started meanwhile."""
        self._advancing = True
        try:
            while self._ready:
                step, done, buffers = self._ready.popleft()
                try:
                    wanted = next(step) if buffers is None else step.send(buffers)
                    while not wanted:
                        wanted = step.send(())
                except StopIteration as finished:
                    done(finished.value)
                else:
                    self._waiting.append((step, done, wanted))
        finally:
            self._advancing = False
