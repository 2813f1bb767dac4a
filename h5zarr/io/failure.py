"""What failed, in words that are safe to show.

The text of somebody else's exception may quote a signed URL or a key, so none of it is passed on: an exception is
told by its kind, its HTTP status or its errno. For the same reason these errors are raised `from None`.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from h5zarr.errors import SourceError, SourceGone
from h5zarr.io.log import format_nbytes
from h5zarr.io.span import Span

PASSING_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
# Classes of aiohttp and botocore, by name: neither need be installed.
_PASSING_NAMES = frozenset(
    ("ClientConnectionError", "ClientPayloadError", "ConnectionClosedError", "EndpointConnectionError")
)
_NAMELESS_NAMES = frozenset(("ClientConnectorDNSError", "gaierror"))  # aiohttp's, and socket's, which is slow to import
_REFUSING_NAMES = frozenset(("PermissionDeniedError", "UnauthenticatedError"))  # obstore's


class ShortBody(Exception):
    """An answer ended before it was complete."""

    def __init__(self, found: int, wanted: int) -> None:
        self.found, self.wanted = found, wanted
        super().__init__(f"{found} of {wanted} bytes")


class WrongRange(Exception):
    """An answer is of another range than was asked for."""

    def __init__(self, found: int, wanted: int) -> None:
        self.found, self.wanted = found, wanted
        super().__init__(f"from byte {found} instead of {wanted}")


class RangesIgnored(Exception):
    """A server sends a whole file, of so many bytes, instead of a range."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        super().__init__(f"{nbytes} bytes")


class Failure(NamedTuple):
    """What happened, and what to do about it."""

    what: str
    remedy: str


GONE = Failure(
    "there is no such file",
    "Check the path or URL. If references refer to it, the file has been moved or removed: translate it where it is.",
)
REFUSED = Failure("access was refused", "Check the credentials; a public bucket may need storage_options anon=True.")
SHRUNK = Failure("this is past the end of the file", "The file may be truncated; compare its size with the original.")
CLOSED = Failure("the source is closed", "Read before the source is closed, or open it again.")


NO_SIZE = Failure(
    "the server does not tell the size of the file", "Copy the file, or put simplecache:: in front of the URL."
)


def ignores_ranges(nbytes: int) -> Failure:
    """Return what it means that a server sends a whole file of `nbytes`."""
    return Failure(
        f"the server ignores byte ranges and sends the whole file of {format_nbytes(nbytes)}",
        "Copy the file, or put simplecache:: in front of the URL.",
    )


class FetchError(Exception):
    """One range of a round could not be fetched; why is `error`. Never leaves this room."""

    def __init__(self, span: Span, error: Exception) -> None:
        self.span = span
        self.error = error
        super().__init__(span)


def source_error(url: str, failure: Failure, span: Span | None = None) -> SourceError:
    """Return the error that names `url`, which must be safe to show, the bytes, what happened and the remedy."""
    where = "" if span is None else f" bytes {span.address}-{max(span.address, span.end - 1)}:"
    kind = SourceGone if failure is GONE else SourceError
    return kind(f"{url}:{where} {failure.what}", remedy=failure.remedy)


def may_pass(error: BaseException) -> bool:
    """Return whether the same request may well succeed when made again."""
    names = {kind.__name__ for kind in type(error).__mro__}
    passing = isinstance(error, ConnectionError | TimeoutError | ShortBody | WrongRange)
    return passing or not names.isdisjoint(_PASSING_NAMES) or find_status(error) in PASSING_STATUSES


def find_status(error: BaseException) -> int | None:
    """Return the HTTP status that `error` carries, in the manner of aiohttp, gcsfs or botocore, or None."""
    for name in ("status", "code", "status_code"):
        status = getattr(error, name, None)
        if isinstance(status, int) and 100 <= status < 600:
            return status
    response = getattr(error, "response", None)
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(response, dict) else None
    return status if isinstance(status, int) else None


def describe_failure(error: BaseException, timeout_seconds: float) -> Failure:
    """Return what `error`, raised by fsspec, by obstore or below them, means."""
    if type(error) is FileNotFoundError and error.__cause__ is not None:
        # fsspec's HTTP file system reports whatever goes wrong with the first question as "not found".
        return describe_failure(error.__cause__, timeout_seconds)
    status = find_status(error)
    if isinstance(error, FileNotFoundError) or status in (404, 410):
        return GONE
    if isinstance(error, PermissionError) or status in (401, 403) or type(error).__name__ in _REFUSING_NAMES:
        return REFUSED
    if status == 416:
        return SHRUNK
    if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
        return Failure(
            f"no answer within {timeout_seconds:g} seconds", "Try again, or raise timeout_seconds of the read policy."
        )
    if isinstance(error, ShortBody):
        return Failure(
            f"the answer has {error.found} bytes instead of {error.wanted}",
            "The file may have changed while it was read; try again, or compare its size with the original.",
        )
    if isinstance(error, RangesIgnored):
        return ignores_ranges(error.nbytes)
    if isinstance(error, WrongRange):
        return Failure(
            f"the answer begins at byte {error.found} instead of {error.wanted}",
            "A proxy may mix up ranges; go around it, or copy the file.",
        )
    if status in (400, 414):
        return Failure(f"the server answered HTTP {status}", "Check the URL: it is too long, or not understood.")
    if status is not None:
        return Failure(f"the server answered HTTP {status}", "Try again later, or with less concurrency.")
    return _describe_local_failure(error)


def _describe_local_failure(error: BaseException) -> Failure:
    """Return what `error` means, which no server had a part in."""
    name = type(error).__name__
    if isinstance(error, ImportError):
        return Failure(f"a package for this protocol is missing: {error}", "Install the package, then try again.")
    if isinstance(error, ValueError) and str(error).startswith("Protocol not known"):
        return Failure("the protocol is not known to fsspec", "Check the beginning of the URL.")
    if isinstance(error, TypeError | ValueError):
        return Failure(f"the URL or its storage options are not valid ({name})", "Check both, then try again.")
    if name in _NAMELESS_NAMES:
        return Failure("the name of the server is not known", "Check the URL and the network, then try again.")
    if name == "NoCredentialsError":
        return Failure("no credentials were found", REFUSED.remedy)
    reason = f"{name}, {os.strerror(error.errno)}" if isinstance(error, OSError) and error.errno else name
    return Failure(f"could not be read ({reason})", SourceError.remedy)
