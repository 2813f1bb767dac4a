"""Batch concurrent requests: Zarr requests chunks from its store one at a time, several concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from h5zarr.io.span import Span
from h5zarr.read.sources import Sources

Wanted: TypeAlias = tuple[int, Span]
"""A source number and a range of that source."""


class Gathering:
    """Collects requests for a moment, and reads them together with few requests, each range once.

    It belongs to one event loop. A request for a range that is already being fetched gets the same bytes.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Wanted, asyncio.Future[memoryview]] = {}
        self._in_flight: dict[Wanted, asyncio.Future[memoryview]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    async def get(self, source: int, span: Span) -> memoryview:
        """Return the bytes of `span`."""
        wanted = (source, span)
        future = self._in_flight.get(wanted) or self._waiting.get(wanted)
        if future is None:
            if not self._waiting:
                self._loop.call_later(self._sources.access.network.gather_seconds, self._send)
            future = self._waiting[wanted] = self._loop.create_future()
        # A cancelled request must not cancel the others.
        return await asyncio.shield(future)

    def _send(self) -> None:
        sent, self._waiting = self._waiting, {}
        self._in_flight |= sent
        by_source: dict[int, list[Wanted]] = {}
        for wanted in sent:
            by_source.setdefault(wanted[0], []).append(wanted)
        for source, group in by_source.items():
            task = self._loop.create_task(self._read(source, group))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _read(self, source: int, group: list[Wanted]) -> None:
        """Read the requested ranges of one source in a thread, answering each as its bytes arrive."""
        futures = [self._in_flight[wanted] for wanted in group]

        def deliver(numbers: Sequence[int], buffers: Sequence[memoryview]) -> None:
            self._loop.call_soon_threadsafe(_answer, [futures[number] for number in numbers], buffers)

        spans = np.array([span for _, span in group], np.int64)
        try:
            await asyncio.to_thread(self._sources.reader(source).read, spans[:, 0], spans[:, 1], deliver)
            await asyncio.sleep(0)  # let answers sent from the thread arrive first
        except Exception as error:
            for future in futures:
                if not future.done():
                    future.set_exception(error)
                    future.exception()  # mark it as retrieved: the requester may be gone
        finally:
            for wanted in group:
                del self._in_flight[wanted]


def _answer(futures: Sequence[asyncio.Future[memoryview]], buffers: Sequence[memoryview]) -> None:
    for future, buffer in zip(futures, buffers, strict=True):
        if not future.done():
            future.set_result(buffer)
