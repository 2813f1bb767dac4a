"""Processes of this machine: which processors they keep to."""

from __future__ import annotations

import os
import time

import pytest

from h5zarr.indexing.workers import LocalWorkers
from h5zarr.processes import Processes, keep_to_one_processor, processor_count

needs_affinity = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux's sched_setaffinity")


def processors_of(count: int, begin: object = keep_to_one_processor) -> list[set[int]]:
    """Return the processors that each of `count` processes may use."""
    processes = Processes(count, begin)  # type: ignore[arg-type]
    try:
        # As many as there are processes, so that each of them is started, and each does one.
        futures = [processes.submit(_wait_and_tell) for _ in range(count)]
        return [future.result() for future in futures]
    finally:
        processes.close()


def _wait_and_tell() -> set[int]:
    time.sleep(1)
    return os.sched_getaffinity(0)


@needs_affinity
def test_siblings_keep_to_different_processors() -> None:
    count = min(2, processor_count())
    found = processors_of(count)
    assert [len(one) for one in found] == [1] * count
    assert len(set.union(*found)) == count


@needs_affinity
@pytest.mark.skipif(processor_count() < 2, reason="needs two processors")
def test_workers_are_bound_only_where_there_is_one_for_each_processor() -> None:
    every = processor_count()
    for count, most in ((every, 1), (every - 1, every)):
        workers = LocalWorkers(count)
        try:
            bound = workers._processes.submit(os.sched_getaffinity, 0).result()
        finally:
            workers.close()
        assert len(bound) == most


@needs_affinity
def test_the_processors_that_this_process_may_use_are_counted() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert processor_count() == 1
        assert LocalWorkers().count == 1
    finally:
        os.sched_setaffinity(0, allowed)
