"""Temporary files beside a local output, which is replaced by renaming one of them."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_TEMPORARY = re.compile(r"\.h5zarr-[0-9a-f]{16}\.tmp")
_DAY_SECONDS = 86_400


@contextmanager
def locked(directory: str) -> Iterator[None]:
    """Hold a lock on a local directory, while a file in it is compared and replaced. It ends with the process.

    Systems without such locks compare and replace all the same; only the moment between the two is unprotected.
    """
    try:
        import fcntl

        number = os.open(directory or ".", os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def new_name_beside(path: str) -> str:
    """Return a new name in the directory of `path`."""
    return os.path.join(os.path.dirname(path), f".h5zarr-{secrets.token_hex(8)}.tmp")


def sweep_beside(path: str) -> None:
    """Remove what writers of `path` and its neighbours left behind when they were killed, more than a day ago."""
    directory = os.path.dirname(path) or "."
    with suppress(OSError):
        for name in os.listdir(directory):
            if not _TEMPORARY.fullmatch(name):
                continue
            left = os.path.join(directory, name)
            if time.time() - os.lstat(left).st_mtime > _DAY_SECONDS:
                shutil.rmtree(left, ignore_errors=True) if os.path.isdir(left) else os.remove(left)
