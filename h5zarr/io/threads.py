"""The threads that chunks are decoded in: as many as there are processors, for the whole process."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

_pool: ThreadPoolExecutor | None = None


def decoding_threads() -> ThreadPoolExecutor:
    """Return the pool. Nothing that runs in it may wait for another thing that does."""
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(processor_count(), thread_name_prefix="h5zarr")
    return _pool


def processor_count() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _forget() -> None:
    """The threads of a pool stay behind when a process forks."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
