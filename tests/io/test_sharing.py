from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from h5zarr.io import sharing as sharing_module
from h5zarr.io.access import Access
from h5zarr.io.network import MIB
from h5zarr.io.sharing import ByteBudget, Sharing, sharing
from h5zarr.io.source import open_source
from h5zarr.io.span import Span
from tests.io.policies import EXACT


def test_a_budget_lets_in_no_more_than_it_has() -> None:
    budget, most, now, lock = ByteBudget(100), 0, 0, threading.Lock()

    def work(nbytes: int) -> None:
        nonlocal most, now
        with budget.reserve(nbytes):
            with lock:
                now += nbytes
                most = max(most, now)
            time.sleep(0.002)
            with lock:
                now -= nbytes

    threads = [threading.Thread(target=work, args=(number % 60 + 1,)) for number in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    assert 0 < most <= 100


def test_what_is_larger_than_the_budget_goes_alone() -> None:
    budget = ByteBudget(100)
    inside = threading.Event()

    def work() -> None:
        with budget.reserve(1):
            inside.set()

    with budget.reserve(1000):
        waiting = threading.Thread(target=work)
        waiting.start()
        assert not inside.wait(0.05)
    waiting.join(10)
    assert inside.is_set()


def test_a_failure_gives_back_what_was_reserved() -> None:
    budget = ByteBudget(100)
    with pytest.raises(KeyError), budget.reserve(100):
        raise KeyError
    with budget.reserve(100):
        pass


def test_sources_share_what_may_be_kept() -> None:
    shared = Sharing()
    sources = [type("Opened", (), {})() for _ in range(4)]
    assert shared.cache_nbytes(128 * MIB) == 128 * MIB
    for source in sources:
        shared.join(source)
    assert shared.cache_nbytes(128 * MIB) == 32 * MIB
    shared.leave(sources[0])
    del sources[1:3]
    assert shared.cache_nbytes(128 * MIB) == 128 * MIB
    many = [type("Opened", (), {})() for _ in range(100)]
    for source in many:
        shared.join(source)
    assert shared.cache_nbytes(128 * MIB) == 8 * MIB  # below which files would be read again and again
    assert shared.cache_nbytes(MIB) == MIB


def test_an_open_source_is_counted_until_it_is_closed(serve: Any, body: bytes) -> None:
    url = serve(body).url("/file.h5")
    before = sharing().cache_nbytes(1 << 40)
    with open_source(url), open_source(url):
        assert sharing().cache_nbytes(1 << 40) < before
    assert sharing().cache_nbytes(1 << 40) == before


def test_requests_of_all_sources_together_are_bounded(serve: Any, body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing_module, "MOST_REQUESTS", 10)
    monkeypatch.setattr(sharing_module, "_sharing", Sharing())
    server = serve(body, latency=0.05)
    # Less than the 2 seconds in total: waiting for other requests does not count towards the timeout.
    patience = replace(EXACT, timeout_seconds=1.5, attempts=1)

    def read() -> None:
        with open_source(server.url("/file.h5"), Access(network=patience)) as source:
            assert len(source.read_many([Span(number * 1000, 10) for number in range(100)])) == 100

    threads = [threading.Thread(target=read) for _ in range(4)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.perf_counter() - started > patience.timeout_seconds
    assert len(server.counts.gets) == 400
    assert server.counts.max_in_flight == 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_process_does_not_wait_for_what_is_in_flight_in_its_parent() -> None:
    with sharing().in_flight.reserve(1 << 40):
        child = os.fork()
        if child == 0:
            with sharing().in_flight.reserve(1):
                os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
