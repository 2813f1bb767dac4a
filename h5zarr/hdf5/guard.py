"""The last line of defence against files that no parser foresaw."""

from __future__ import annotations

import struct
from typing import TypeVar

from h5zarr.errors import MalformedFile
from h5zarr.io.steps import Step

T = TypeVar("T")
SURPRISES = (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError, struct.error)


def guarded(step: Step[T]) -> Step[T]:
    """Return what `step` returns; numpy's and Python's complaints about impossible numbers become `MalformedFile`.

    Parsers check what they read, and tests with thousands of damaged files say that this is enough. But where one does
    not, the file at hand must lose one object, not all of them.
    """
    try:
        return (yield from step)
    except SURPRISES as error:
        raise surprised(error) from error


def surprised(error: BaseException) -> MalformedFile:
    """Return the error to raise in the place of one of the `SURPRISES`."""
    return MalformedFile(f"it cannot be decoded: {type(error).__name__}: {error}")
