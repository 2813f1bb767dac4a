from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import numpy as np
import pytest

from tests.servers import Faults, RangeServer

Serve = Callable[..., RangeServer]


@pytest.fixture(scope="session")
def body() -> bytes:
    """Eight mebibytes of distinct content, too large to be read whole."""
    return np.random.default_rng(7).bytes(8 * 2**20)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start servers for one file, /file.h5; they end with the test."""
    with ExitStack() as servers:

        def start(body: bytes, *, latency: float = 0.0, faults: Faults | None = None) -> RangeServer:
            return servers.enter_context(RangeServer({"/file.h5": body}, latency=latency, faults=faults))

        yield start
