"""Describe failures in words that are safe to show.

The text of another package's exception may quote a signed URL or a key, so h5zarr never passes it on. It describes an
exception by its class, its HTTP status, its errno, or an error code from a table in this module. For the same reason,
errors are raised outside `except` blocks: otherwise they would carry the original exception along.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from h5zarr.errors import (
    H5ZarrError,
    SourceError,
    SourceGone,
    SourceIsDirectory,
    SourceRefused,
    SourceTimeout,
    SourceUnreachable,
    WrongSource,
)
from h5zarr.io.log import format_nbytes
from h5zarr.io.protocols import grammar_of
from h5zarr.io.span import Span

TEMPORARY_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
# Names of classes of aiohttp, botocore and azure.core, which may not be installed.
_TEMPORARY_NAMES = {
    *("ClientConnectionError", "ClientPayloadError", "HTTPClientError", "ResponseStreamingError"),
    *("ServiceRequestError", "ServiceResponseError", "IncompleteReadError"),
}
_NO_CREDENTIALS_NAMES = {  # of botocore, google.auth and azure.identity
    *("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ProfileNotFound"),
    *("TokenRetrievalError", "SSOError", "GoogleAuthError", "CredentialUnavailableError", "ClientAuthenticationError"),
}
_UNREACHED_NAMES = {  # of aiohttp and botocore
    *("ClientConnectionError", "EndpointConnectionError", "ConnectionClosedError", "ServiceRequestError"),
}
_UNRESOLVED_NAMES = frozenset(("ClientConnectorDNSError", "gaierror"))  # of aiohttp and socket, which is slow to import
_REFUSING_NAMES = frozenset(("PermissionDeniedError", "UnauthenticatedError"))  # obstore's

_CODES = {
    "InvalidAccessKeyId": "the access key is not known",
    "SignatureDoesNotMatch": "the secret does not match the access key, or a proxy changes the requests",
    "ExpiredToken": "the credentials have expired",
    "TokenRefreshRequired": "the credentials have expired",
    "InvalidToken": "the session token is not valid",
    "RequestTimeTooSkewed": "the clock of this machine is wrong",
    "InvalidObjectState": "the object is archived, and must be restored first",
    "AuthenticationFailed": "the key or token is not valid",
    "NoAuthenticationInformation": "no credentials were given",
    "PublicAccessNotPermitted": "the account does not allow access without credentials",
}
"""Error codes of S3 and Azure that say why access is refused, and what they mean."""

_UNKNOWN_OPTION = re.compile(r"got an unexpected keyword argument '(\w+)'")  # Python's words, not botocore's

T = TypeVar("T")


class ShortBody(Exception):
    """A response ended before it was complete."""

    def __init__(self, found: int, wanted: int) -> None:
        self.found, self.wanted = found, wanted
        super().__init__(f"{found} of {wanted} bytes")


class WrongRange(Exception):
    """A response contains a different range than requested."""

    def __init__(self, found: int, wanted: int) -> None:
        self.found, self.wanted = found, wanted
        super().__init__(f"from byte {found} instead of {wanted}")


class RangesIgnored(Exception):
    """A server sends a whole file of `nbytes` bytes instead of a range."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        super().__init__(f"{nbytes} bytes")


class Failure(NamedTuple):
    """What happened, what to do about it, and the class of the error to raise."""

    what: str
    remedy: str
    kind: type[SourceError] = SourceError


GONE = Failure(
    "there is no such file",
    "Check the path or URL.",
    SourceGone,
)
_MOVED = "If references name it, it has been moved or removed since: translate it again from its new place."
_HOST = re.compile(r"(?:[a-z0-9-]+\.)+[a-z]{2,}(?::\d+)?/|(?:localhost|\d+\.\d+\.\d+\.\d+)(?::\d+)?/", re.IGNORECASE)
DIRECTORY = Failure(
    "this is a directory",
    "Give the path or URL of a file in it. For all files in it: h5zarr index.",
    SourceIsDirectory,
)
ZARR_DIRECTORY = Failure(
    "this is a directory of Zarr data",
    "The data is Zarr already: open it with xarray.open_zarr or zarr.open.",
    SourceIsDirectory,
)
REFUSED = Failure("access was refused", "Check the credentials; a public bucket may need anon=True.", SourceRefused)
NOT_PERMITTED = Failure(
    "you do not have permission to read this file",
    "Check the permissions of the file and of its directories.",
    SourceRefused,
)
NO_BUCKET = Failure(
    "there is no such bucket or container",
    "Check its name, and the endpoint or account: endpoint_url, AWS_ENDPOINT_URL, account_name.",
    SourceGone,
)
ELSEWHERE = Failure(
    "the bucket is in another region, or the request was signed for another region",
    'Give the region: storage_options client_kwargs={"region_name": "..."}, or AWS_DEFAULT_REGION.',
)
SHRUNK = Failure("this is past the end of the file", "The file may be truncated; compare its size with the original.")
CLOSED = Failure("the source is closed", "Read before the source is closed, or open it again.")


NO_SIZE = Failure(
    "the server does not state the size of the file", "Copy the file, or put simplecache:: in front of the URL."
)


def ignores_ranges(nbytes: int) -> Failure:
    """Return the failure of a server that sends a whole file of `nbytes` bytes."""
    return Failure(
        f"the server ignores byte ranges and sends the whole file of {format_nbytes(nbytes)}",
        "Copy the file, or put simplecache:: in front of the URL.",
    )


class FetchError(Exception):
    """One range of a round could not be fetched, because of `error`. Never leaves `io`."""

    def __init__(self, span: Span, error: Exception) -> None:
        self.span = span
        self.error = error
        super().__init__(span)


def source_error(url: str, failure: Failure, span: Span | None = None) -> SourceError:
    """Return an error that names the URL, the bytes, what happened and the remedy. `url` must be safe to show."""
    where = "" if span is None else f" bytes {span.address}-{max(span.address, span.end - 1)}:"
    rules = grammar_of(url.rpartition("::")[2])
    if failure.kind is SourceGone and failure.remedy == GONE.remedy and "://" in url and url.endswith("/"):
        failure = Failure(
            f"{failure.what}: a URL that ends with a slash names a directory", DIRECTORY.remedy, SourceGone
        )
    remedy = failure.remedy
    if failure.remedy == REFUSED.remedy:
        remedy = rules.check or remedy
    elif failure.kind is SourceGone and failure.remedy == GONE.remedy and rules.is_bucket:
        remedy += " A prefix that looks like a directory is not a file. Also check endpoint_url, or the account."
    elif failure.kind is SourceUnreachable and rules.server:
        remedy = f"Check the server ({rules.server}) and the network, then try again."
    elif failure is GONE and _HOST.match(url):
        remedy = f"If this is a URL, write https://{url}."
    elif failure is GONE and url.startswith("~"):
        remedy = "Give the full path: ~ is expanded by the shell, and in Python by os.path.expanduser."
    error = failure.kind(f"{url}:{where} {failure.what}", remedy=remedy)
    error.filename = url
    return error


@contextmanager
def advising_readers() -> Iterator[None]:
    """Add advice about references to errors about missing files. For reading values, not for scans."""
    try:
        yield
    except SourceGone as error:
        error.advising(_MOVED)
        raise


def or_source_error(url: str, timeout_seconds: float, act: Callable[[], T]) -> T:
    """Return the result of `act`. Exceptions become errors that name `url`, which must be safe to show."""
    try:
        return act()
    except H5ZarrError:
        raise
    except FetchError as failed:
        failure, span = describe_failure(failed.error, timeout_seconds), failed.span
    except Exception as error:
        failure, span = describe_failure(error, timeout_seconds), None
    raise source_error(url, failure, span)


def is_temporary(error: BaseException) -> bool:
    """Return whether the failure may be temporary, so that a retry may succeed."""
    names = {kind.__name__ for kind in type(error).__mro__}
    is_lost = isinstance(error, ConnectionError | TimeoutError | ShortBody | WrongRange)
    return is_lost or not names.isdisjoint(_TEMPORARY_NAMES) or find_status(error) in TEMPORARY_STATUSES


def was_retried(error: BaseException) -> bool:
    """Return whether botocore has already retried. A retry here would repeat all of its attempts."""
    return bool(_find_response(error).get("ResponseMetadata", {}).get("RetryAttempts"))


def is_final(error: BaseException) -> bool:
    """Return whether the server has refused access or has no such file, so that a retry would fail, too."""
    return isinstance(error, FileNotFoundError | PermissionError) or find_status(error) in (401, 403, 404, 410)


def is_condition_broken(error: BaseException) -> bool:
    """Return whether the server refused because the file is not in the requested state. RFC 9110, 15.5.13."""
    return find_status(error) == 412


def find_status(error: BaseException) -> int | None:
    """Return the HTTP status of an exception of aiohttp, gcsfs, botocore or azure.core, or None."""
    for name in ("status", "code", "status_code"):  # in this order: `code` of aiohttp is deprecated and warns
        status = getattr(error, name, None)
        if isinstance(status, int) and 100 <= status < 600:
            return status
    status = _find_response(error).get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status if isinstance(status, int) else None


def _find_code(error: BaseException) -> str:
    """Return the error code of S3 or Azure, or an empty string."""
    code = _find_response(error).get("Error", {}).get("Code", getattr(error, "error_code", None))
    return str(getattr(code, "value", code)) if isinstance(code, str) else ""


def _find_response(error: BaseException) -> dict[str, Any]:
    """Return botocore's description of the response, even if s3fs has wrapped the error; may be empty."""
    for one in (error, error.__cause__):
        response = getattr(one, "response", None)
        if isinstance(response, dict):
            return response
    return {}


def describe_failure(error: BaseException, timeout_seconds: float) -> Failure:
    """Return the meaning of an exception of fsspec, obstore or the packages below them."""
    if type(error) is FileNotFoundError and error.__cause__ is not None:
        # fsspec's HTTP file system reports any failure of its first request as "not found".
        return describe_failure(error.__cause__, timeout_seconds)
    status, code = find_status(error), _find_code(error)
    if code in ("NoSuchBucket", "ContainerNotFound"):
        return _with_status(NO_BUCKET, status)
    if status == 301 or code == "AuthorizationHeaderMalformed":
        return _with_status(ELSEWHERE, status)
    if isinstance(error, FileNotFoundError) or status in (404, 410):
        return _with_status(GONE, status)
    if isinstance(error, IsADirectoryError):
        return DIRECTORY
    if code in _CODES:
        return _with_status(REFUSED._replace(what=f"{REFUSED.what}: {_CODES[code]}"), status)
    if isinstance(error, PermissionError) or status in (401, 403) or type(error).__name__ in _REFUSING_NAMES:
        return _with_status(REFUSED, status)
    if status == 416:
        return _with_status(SHRUNK, status)
    if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
        return _describe_timeout(timeout_seconds)
    if isinstance(error, ShortBody):
        return Failure(
            f"the response has {error.found} bytes instead of {error.wanted}",
            "The file may have changed while it was read; try again, or compare its size with the original.",
        )
    if isinstance(error, RangesIgnored):
        return ignores_ranges(error.nbytes)
    if isinstance(error, WrongRange):
        return Failure(
            f"the response starts at byte {error.found} instead of {error.wanted}",
            "A proxy may mix up ranges; bypass it, or copy the file.",
        )
    if status is not None:
        return Failure(f"the server answered HTTP {status}", _STATUS_REMEDIES.get(status, _LATER))
    return _describe_local_failure(error)


_LATER = "Try again later, or with fewer requests at a time: network={'concurrency': 8}."
_STATUS_REMEDIES = {
    400: "Check the URL: the server does not understand it. It may be too long.",
    412: "Check the conditions in the storage options, such as If-Match.",  # ours are handled elsewhere
    414: "Check the URL: it is too long for the server.",
}


def _with_status(failure: Failure, status: int | None) -> Failure:
    """Return a failure that names the HTTP status, if a server has sent one."""
    return failure if status is None else failure._replace(what=f"{failure.what} (HTTP {status})")


def _describe_timeout(timeout_seconds: float) -> Failure:
    more = f"network={{'timeout_seconds': {2 * timeout_seconds:g}}}"
    seconds = "1 second" if timeout_seconds == 1 else f"{timeout_seconds:g} seconds"
    return Failure(f"no answer within {seconds}", f"Try again, or allow more time: {more}.", SourceTimeout)


def _describe_local_failure(error: BaseException) -> Failure:
    """Return what `error` means if no server answered."""
    name = type(error).__name__
    if isinstance(error, ImportError):
        what = f"a package for this protocol is missing: {error.name or 'unknown'}"
        return Failure(what, "Install the package, then try again.")
    if isinstance(error, ValueError) and str(error).startswith("Protocol not known"):
        return Failure("fsspec does not know this protocol", "Check the beginning of the URL.", WrongSource)
    if isinstance(error, ValueError) and str(error).startswith("Invalid endpoint"):  # botocore's
        what = "endpoint_url is not the URL of a server"
        return Failure(what, "It starts with http:// or https://, as in endpoint_url=http://host:9000.", WrongSource)
    if isinstance(error, TypeError) and (unknown := _UNKNOWN_OPTION.search(str(error))):
        what = f"the file system has no storage option named {unknown[1]}"
        return Failure(what, "Check its spelling in the documentation of the file system.", WrongSource)
    if isinstance(error, TypeError | ValueError):
        return Failure(
            f"the URL or its storage options are not valid ({name})", "Check both, then try again.", WrongSource
        )
    if name in _UNRESOLVED_NAMES:
        what = "the server's name cannot be resolved"
        return Failure(what, "Check the URL and the network, then try again.", SourceUnreachable)
    bases = {kind.__name__ for kind in type(error).__mro__}
    if not _NO_CREDENTIALS_NAMES.isdisjoint(bases):
        return REFUSED._replace(what=f"{REFUSED.what}: no usable credentials were found ({name})")
    reason = f"{name}, {os.strerror(error.errno)}" if isinstance(error, OSError) and error.errno else name
    if isinstance(error, ConnectionError) or not _UNREACHED_NAMES.isdisjoint(bases):
        what = f"the server cannot be reached, or closed the connection ({reason})"
        return Failure(what, "Check the URL and the network, then try again.", SourceUnreachable)
    return Failure(f"could not be read ({reason})", SourceError.remedy)
