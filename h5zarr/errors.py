"""Exceptions, and the `Problem` values that results contain.

An exception ends the reading of one object. The result then holds a `Problem` in its place, so that one broken object
never costs the rest of the file.
"""

from __future__ import annotations

import errno
import struct
from dataclasses import dataclass
from typing import Any, Self


class H5ZarrError(Exception):
    """Base class of all errors that h5zarr raises deliberately. `remedy` says what to do; tracebacks show it as a note.

    Examples
    --------
    >>> import h5zarr
    >>> try:
    ...     h5zarr.translate("missing.nc")
    ... except h5zarr.H5ZarrError as error:
    ...     print(type(error).__name__, isinstance(error, FileNotFoundError))
    SourceGone True
    """

    kind = "error"
    remedy = ""

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        if remedy is not None:
            self.remedy = remedy
        super().__init__(message)
        if self.remedy:
            self.add_note(self.remedy)

    def advising(self, more: str) -> Self:
        """Add a sentence to the remedy, and return this error."""
        notes = getattr(self, "__notes__", [])
        self.__notes__ = [note for note in notes if note != self.remedy]
        self.remedy = f"{self.remedy} {more}".strip()
        self.add_note(self.remedy)
        return self

    def naming(self, where: str) -> Self:
        """Prefix the message with the location `where`, unless it has that prefix, and return this error."""
        if not str(self).startswith(f"{where}:"):
            self.args = (f"{where}: {self}",)
        return self

    def saying(self, more: str) -> Self:
        """Add a part to the message, and return this error."""
        self.args = (f"{self}; {more}",)
        return self

    def __str__(self) -> str:
        # OSError would show its errno and file name instead of the message.
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> Any:
        # Not by calling the class, as Python does: constructors differ, and the arguments of OSError are special.
        return _restore, (type(self), self.args, {**self.__dict__, **_slots(self)})


def _slots(error: H5ZarrError) -> dict[str, Any]:
    """Return what Python's own exceptions store outside `__dict__`."""
    found = {name: getattr(error, name, None) for name in ("filename", "name")}
    return {name: value for name, value in found.items() if value is not None}


def _restore(kind: type[H5ZarrError], arguments: tuple[Any, ...], state: dict[str, Any]) -> H5ZarrError:
    """Return an error that was sent to another process."""
    error = kind.__new__(kind)
    error.args = arguments
    for name, value in state.items():
        setattr(error, name, value)
    return error


class ArgumentError(H5ZarrError, ValueError):
    """An argument is wrong, or does not fit the others."""

    kind = "argument"


class PackageMissing(H5ZarrError, ImportError):
    """A package is needed for this, and is not installed. `name` is the module that could not be imported.

    `place` is the path or URL that needs it, with which the message then begins.
    """

    kind = "package"
    place = ""


class SourceError(H5ZarrError, OSError):
    """The source cannot be read: it is missing, has become shorter, or does not respond."""

    kind = "source"
    remedy = "Check the URL, the credentials and the network, then try again."


class SourceGone(SourceError, FileNotFoundError):
    """The file does not exist."""

    errno = errno.ENOENT


class SourceRefused(SourceError, PermissionError):
    """Access to the file was denied."""

    errno = errno.EACCES


class SourceIsDirectory(SourceError, IsADirectoryError):
    """A file is needed, but this is a directory."""

    errno = errno.EISDIR


class SourceTimeout(SourceError, TimeoutError):
    """The server did not answer in time."""

    errno = errno.ETIMEDOUT


class SourceUnreachable(SourceError, ConnectionError):
    """There is no connection to the server, or it was lost."""


class WrongSource(SourceError, ValueError):
    """The path or URL, or its storage options, makes no sense."""

    kind = "argument"


class SourceChanged(SourceError):
    """The file has changed since its references were made, so they may point to the wrong bytes.

    Examples
    --------
    >>> import pathlib, h5zarr, zarr
    >>> copy = pathlib.Path("copy.nc")
    >>> _ = copy.write_bytes(pathlib.Path("ocean.nc").read_bytes())
    >>> _ = h5zarr.translate(copy, "copy.json")
    >>> _ = copy.write_bytes(copy.read_bytes() + b"more")
    >>> try:
    ...     zarr.open_group(h5zarr.open_store("copy.json"), mode="r")["sst"][:]
    ... except h5zarr.SourceChanged as error:
    ...     print("translate it again")
    translate it again
    """

    kind = "changed"
    remedy = "Translate the file again."


class OutputError(H5ZarrError, OSError):
    """The output could not be written. Earlier output, if any, is unchanged. `path` is safe to display."""

    kind = "output"
    remedy = "Choose another location for the output, then try again."

    def __init__(self, path: str, what: str, *, remedy: str | None = None) -> None:
        self.path = path
        super().__init__(f"{path}: {what}", remedy=remedy)
        self.filename = path


class OutputGone(OutputError, FileNotFoundError):
    """The directory or bucket of the output does not exist."""

    errno = errno.ENOENT


class OutputRefused(OutputError, PermissionError):
    """Writing the output was denied."""

    errno = errno.EACCES


class OutputTimeout(OutputError, TimeoutError):
    """The server that holds the output did not answer in time."""

    errno = errno.ETIMEDOUT


class OutputExists(OutputError, FileExistsError):
    """There is something else in the place of the output, which is not replaced."""

    errno = errno.EEXIST


class OutputChanged(OutputError):
    """What was to be replaced has changed since it was read: somebody else has written there."""

    kind = "changed"
    remedy = "Try again."


class OutputIsDirectory(OutputError, IsADirectoryError):
    """The output must be a file, but this is a directory."""

    errno = errno.EISDIR


class WrongOutput(OutputError, ValueError):
    """The name of the output, or an option for it, makes no sense."""

    kind = "argument"


class MalformedFile(H5ZarrError):
    """The file violates its format. `address` is the byte address of the violation, or None."""

    kind = "malformed"
    remedy = "The file may be truncated or damaged; compare its size with the original."

    def __init__(self, message: str, *, at: int | None = None, remedy: str | None = None) -> None:
        self.address = at
        super().__init__(message if at is None else f"{message} (byte {at:#x})", remedy=remedy)


class Truncated(MalformedFile):
    """The file ends before the end that it states: a download or a copy was interrupted, or is not finished yet."""

    kind = "truncated"
    remedy = "Copy the file again, or wait until it is complete; compare its size with the original."


class Unsupported(H5ZarrError):
    """The file is valid, but h5zarr does not support this part of the format."""

    kind = "unsupported"
    remedy = "The file is valid. If you need this feature, please open an issue."


class Unrepresentable(H5ZarrError):
    """The file is valid, but Zarr cannot represent this part of it."""

    kind = "unrepresentable"
    remedy = "Read it from the file itself, for example with h5py."


class NotJoinable(H5ZarrError, ValueError):
    """Joining the files would give wrong values. The message names the files and the reason.

    Examples
    --------
    >>> import shutil, h5zarr
    >>> _ = shutil.copy("ocean.nc", "copy.nc")
    >>> try:
    ...     h5zarr.combine(["ocean.nc", "copy.nc"], along="time")
    ... except h5zarr.NotJoinable as error:
    ...     print("both files have the same days")
    both files have the same days
    """

    kind = "not joinable"
    remedy = "Leave out the files or variables that differ, or name another axis with along=[NAME]."


class ProblemWarning(UserWarning):
    """Something could not be read or translated. The rest of the file is unaffected.

    Examples
    --------
    >>> import warnings, h5zarr
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", h5zarr.ProblemWarning)  # instead, stop at the first problem
    ...     _ = h5zarr.open_store("ocean.nc")
    """


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

    def to_json(self) -> dict[str, str]:
        """Return the problem for machines."""
        return {"path": self.path, "kind": self.kind, "message": self.message, "remedy": self.remedy}


SURPRISES = (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError, struct.error)
"""What Python and numpy raise for input that no check foresaw."""


def surprised(error: BaseException) -> MalformedFile:
    """Return the error to raise instead of one of the `SURPRISES`."""
    return MalformedFile(f"it cannot be decoded: {type(error).__name__}: {error}")
