"""Exceptions, and the `Problem` values that results contain.

An exception ends the reading of one object. The result then holds a `Problem` in its place, so that one broken object
never costs the rest of the file.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Self


class H5ZarrError(Exception):
    """Base class of all errors that h5zarr raises deliberately. Tracebacks show the remedy as a note."""

    kind = "error"
    remedy = ""

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        if remedy is not None:
            self.remedy = remedy
        super().__init__(message)
        if self.remedy:
            self.add_note(self.remedy)

    def naming(self, where: str) -> Self:
        """Prefix the message with the location `where`, and return this error."""
        self.args = (f"{where}: {self}",)
        return self


class SourceError(H5ZarrError):
    """The source cannot be read: it is missing, has become shorter, or does not respond."""

    kind = "source"
    remedy = "Check the URL, the credentials and the network, then try again."


class SourceGone(SourceError):
    """The file does not exist."""


class SourceRefused(SourceError):
    """Access to the file was denied."""


class SourceChanged(SourceError):
    """The file has changed since its references were made, so they may point to the wrong bytes."""

    kind = "changed"
    remedy = "Translate the file again."


class OutputError(H5ZarrError):
    """The output could not be written. Earlier output, if any, is unchanged. `path` is safe to display."""

    kind = "output"
    remedy = "Choose another location for the output, then try again."

    def __init__(self, path: str, what: str, *, remedy: str | None = None) -> None:
        self.path = path
        super().__init__(f"{path}: {what}", remedy=remedy)


class MalformedFile(H5ZarrError):
    """The file violates its format. `address` is the byte address of the violation, or None."""

    kind = "malformed"
    remedy = "The file may be truncated or damaged; compare its size with the original."

    def __init__(self, message: str, *, at: int | None = None, remedy: str | None = None) -> None:
        self.address = at
        super().__init__(message if at is None else f"{message} (byte {at:#x})", remedy=remedy)


class Unsupported(H5ZarrError):
    """The file is valid, but h5zarr does not support this part of the format."""

    kind = "unsupported"
    remedy = "The file is valid. If you need this feature, please open an issue."


class Unrepresentable(H5ZarrError):
    """The file is valid, but Zarr cannot represent this part of it."""

    kind = "unrepresentable"
    remedy = "Read it from the file itself, for example with h5py."


class ProblemWarning(UserWarning):
    """Something could not be read or translated. The rest of the file is unaffected."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be read or translated: its path, the kind of error, a message and a remedy."""

    path: str
    kind: str
    message: str
    remedy: str = ""

    @classmethod
    def from_error(cls, path: str, error: H5ZarrError) -> Problem:
        return cls(path, error.kind, str(error), error.remedy)

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


SURPRISES = (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError, struct.error)
"""What Python and numpy raise for input that no check foresaw."""


def surprised(error: BaseException) -> MalformedFile:
    """Return the error to raise instead of one of the `SURPRISES`."""
    return MalformedFile(f"it cannot be decoded: {type(error).__name__}: {error}")
