"""What can go wrong, and how it is told.

An exception ends the thing that was being read; a `Problem` is what remains of it in the result, so that one broken
object never takes the rest of the file with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self


class H5ZarrError(Exception):
    """Base of every error that h5zarr raises on purpose. Its remedy stands below it in a traceback."""

    kind = "error"
    remedy = ""

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        if remedy is not None:
            self.remedy = remedy
        super().__init__(message)
        if self.remedy:
            self.add_note(self.remedy)

    def naming(self, where: str) -> Self:
        """Return this error, with where it happened in front of what it says."""
        self.args = (f"{where}: {self}",)
        return self


class SourceError(H5ZarrError):
    """The source could not be read: it is missing, shorter than it was, or did not answer."""

    kind = "source"
    remedy = "Check the URL, the credentials and the network, then try again."


class SourceGone(SourceError):
    """There is no such file."""


class SourceRefused(SourceError):
    """Access to the file was refused."""


class SourceChanged(SourceError):
    """The source is not the file that the references were made of: what they point to may be anything."""

    kind = "changed"
    remedy = "Translate it again."


class OutputError(H5ZarrError):
    """Output could not be written. Carries where it was to go, safe to show; nothing, or what was there, is there."""

    kind = "output"
    remedy = "Choose another place for the output, then try again."

    def __init__(self, path: str, what: str, *, remedy: str | None = None) -> None:
        self.path = path
        super().__init__(f"{path}: {what}", remedy=remedy)


class MalformedFile(H5ZarrError):
    """The file breaks its own format. Carries the byte address where that was seen, when there is one."""

    kind = "malformed"
    remedy = "The file may be truncated or damaged; compare its size with the original."

    def __init__(self, message: str, *, at: int | None = None, remedy: str | None = None) -> None:
        self.address = at
        super().__init__(message if at is None else f"{message} (byte {at:#x})", remedy=remedy)


class Unsupported(H5ZarrError):
    """The file is fine, but h5zarr does not read this part of the format."""

    kind = "unsupported"
    remedy = "Nothing is wrong with the file; if you need this, please say so in an issue."


class Unrepresentable(H5ZarrError):
    """The file is fine, but Zarr cannot express what it says."""

    kind = "unrepresentable"
    remedy = "Read it from the file itself, with h5py for instance."


class ProblemWarning(UserWarning):
    """Something could not be read or translated, and the rest is there."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that could not be read or translated: where, what kind, what exactly, and what to do about it."""

    path: str
    kind: str
    message: str
    remedy: str = ""

    @classmethod
    def from_error(cls, path: str, error: H5ZarrError) -> Problem:
        return cls(path, error.kind, str(error), error.remedy)

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"
