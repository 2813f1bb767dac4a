"""The worker that other tests ask about files."""

from __future__ import annotations

import json

from tests.collections_of_files import SAMPLES
from tests.worker import Worker


def test_a_worker_that_has_died_is_started_again() -> None:
    worker = Worker("tests.netcdf4.netcdf_worker", 20)
    try:
        first = worker.ask(str(SAMPLES / "ocean.nc"))
        assert "groups" in json.loads(first)
        assert worker._process is not None
        worker._process.kill()
        worker._process.wait()
        assert worker.ask(str(SAMPLES / "ocean.nc")) == first
    finally:
        worker.close()
