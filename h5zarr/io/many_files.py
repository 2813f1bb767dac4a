"""Read ranges of many files at the same time, with few connections and one limit for what is in flight.

A time series through a cube takes one small range of each of thousands of files. A thread for each file would wait for
one answer at a time. Here, all requests share one event loop: while some files are looked up, the ranges of others are
on their way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain

from h5zarr.errors import SourceError
from h5zarr.io.ranges import Column, Deliver, RangeReader
from h5zarr.io.remote_ranges import IN_FLIGHT_NBYTES, LEAST_WORKERS, RemoteRanges, Turn

_FILES_AT_ONCE = 32  # in threads
_HANDED_OVER = 64  # requests, to the event loop


@dataclass(frozen=True, slots=True)
class FileRanges:
    """Ranges of one file, and who gets their bytes. `part` says what the file has, for errors."""

    reader: RangeReader
    address: Column
    nbytes: Column
    deliver: Deliver
    part: Callable[[], str]

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop in which the file is read; None if it is read in threads."""
        return self.reader.loop if isinstance(self.reader, RemoteRanges) else None

    def read(self) -> None:
        """Read them all, in this thread."""
        with self.saying_part():
            self.reader.read(self.address, self.nbytes, self.deliver)

    def turns(self) -> list[_Turn]:
        """Return the requests for them, in an event loop."""
        assert isinstance(self.reader, RemoteRanges)
        with self.saying_part():
            return [_Turn(self, turn) for turn in self.reader.turns(self.address, self.nbytes, self.deliver)]

    @contextmanager
    def saying_part(self) -> Iterator[None]:
        """Say in errors what would have come from this file."""
        try:
            yield
        except SourceError as error:
            error.saying(self.part())
            raise


@dataclass(frozen=True, slots=True)
class _Turn:
    """A request for some of the ranges of a file."""

    file: FileRanges
    turn: Turn


def read_files(files: Iterable[FileRanges]) -> None:
    """Read ranges of several files. Files are taken one by one, while those before are being read.

    Raises the first SourceError, which says what the file has.
    """
    remaining = iter(files)
    first = next(remaining, None)
    if first is None:
        return
    every = chain([first], remaining)
    if isinstance(first.reader, RemoteRanges) and (loop := first.loop) is not None:
        _read_in_loop(loop, first.reader.most_requests, every)
    else:
        _read_in_threads(every)


def _read_in_threads(files: Iterable[FileRanges]) -> None:
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        for future in [pool.submit(one.read) for one in files]:
            future.result()


def _read_in_loop(loop: asyncio.AbstractEventLoop, most: int, files: Iterator[FileRanges]) -> None:
    """Hand requests over to an event loop, some at a time, and wait for all of them. `most` are in flight at once."""
    reading = _Together(most)
    result = asyncio.run_coroutine_threadsafe(reading.run(), loop)
    others: list[FileRanges] = []
    turns: list[_Turn] = []
    try:
        for one in files:
            if result.done():
                break  # one has failed
            if one.loop is not loop:
                others.append(one)
                continue
            turns += one.turns()
            if len(turns) >= _HANDED_OVER:
                loop.call_soon_threadsafe(reading.add, turns)
                turns = []
        loop.call_soon_threadsafe(reading.add, [*turns, *[None] * most])
        result.result()
    except BaseException:
        result.cancel()
        raise
    _read_in_threads(others)


class _Together:
    """Workers in an event loop that take one request after the other. The first failure ends all of them."""

    def __init__(self, count: int) -> None:
        self._worker_count = count
        self._waiting: asyncio.Queue[_Turn | None] = asyncio.Queue()
        self._nbytes = self._count = 0
        self._has_room = asyncio.Condition()

    def add(self, turns: Iterable[_Turn | None]) -> None:
        """Add requests; None ends a worker."""
        for one in turns:
            self._waiting.put_nowait(one)

    async def run(self) -> None:
        """Read until all workers have ended."""
        tasks = [asyncio.create_task(self._work()) for _ in range(self._worker_count)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self) -> None:
        while (one := await self._waiting.get()) is not None:
            nbytes = one.turn.nbytes
            async with self._has_room:
                await self._has_room.wait_for(partial(self._fits, nbytes))
                self._nbytes, self._count = self._nbytes + nbytes, self._count + 1
            try:
                with one.file.saying_part():
                    await one.turn.take()
            finally:
                async with self._has_room:
                    self._nbytes, self._count = self._nbytes - nbytes, self._count - 1
                    self._has_room.notify_all()

    def _fits(self, nbytes: int) -> bool:
        """Return whether a request of so many bytes may be sent now."""
        return self._count < LEAST_WORKERS or self._nbytes + nbytes <= IN_FLIGHT_NBYTES
