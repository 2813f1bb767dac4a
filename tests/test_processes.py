"""Processes of this machine: which processors they keep to."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from h5zarr.commands.index.workers import LocalWorkers
from h5zarr.io.threads import processor_count
from h5zarr.processes import Processes, keep_to_one_processor

needs_affinity = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux's sched_setaffinity")


def _meet_and_tell(place: Path, count: int) -> set[int]:
    """Return the processors that this process may use, as soon as `count` of them are here: none does two of these."""
    (place / str(os.getpid())).touch()
    while len(list(place.iterdir())) < count:
        time.sleep(0.01)
    return os.sched_getaffinity(0)


@needs_affinity
def test_siblings_keep_to_different_processors(tmp_path: Path) -> None:
    count = min(2, processor_count())
    processes = Processes(count, keep_to_one_processor)
    try:
        futures = [processes.submit(_meet_and_tell, tmp_path, count) for _ in range(count)]
        found = [future.result(60) for future in futures]
    finally:
        processes.close()
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
        workers = LocalWorkers()
        workers.close()
        assert workers.count == 1
    finally:
        os.sched_setaffinity(0, allowed)
