"""The thread pool that decodes chunks: one per process, with one thread per processor."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

_pool: ThreadPoolExecutor | None = None


def decoding_threads() -> ThreadPoolExecutor:
    """Return the pool. A task in it must not wait for another task in it."""
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(processor_count(), thread_name_prefix="h5zarr")
    return _pool


def processor_count() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _forget() -> None:
    """Drop the pool in a child process, because its threads exist only in the parent."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
