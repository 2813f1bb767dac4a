"""Requests to file systems, and the facts about a file that a response contains besides its bytes.

fsspec returns only the bytes. HTTP, S3, Google and Azure also send the size of the file and its ETag or version. So
h5zarr needs no extra request for them, and notices if a file is replaced between two requests.

Once a state is known, requests carry it as a condition. A server that honours conditions never sends bytes of another
state. Others may ignore them, so every response is also compared with the known state.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, TypeAlias

from h5zarr.io.failure import RangesIgnored, WrongRange
from h5zarr.io.source import Identity
from h5zarr.io.span import Span

# RFC 9110, 8.8.3. Weak ETags never match (13.1.1). ETags in references are untrusted.
_STRONG_ETAG = re.compile(r'"[!#-~]*"')
_GENERATION = re.compile(r"[0-9]{1,20}")
_HEADER = "If-Match"
# The version of every S3 object that was written without bucket versioning. It does not identify a state.
_NO_VERSION = "null"
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")

_MOST_UNASKED_NBYTES = 128 << 20  # largest whole file to accept from a server that ignores ranges


class Response(NamedTuple):
    """The response to a request for a range.

    `stated` has the facts about the file, under the names that file systems use in `info`. It may be empty.

    `wait_seconds` is the time until the response began; None if only the total time is known. The last `rest_nbytes` of
    the body took `rest_seconds`; 0 if unknown. The first bytes arrive with the headers, so their time is unknown.

    `is_range_ignored` says that the server sent the whole file, and does not claim that it could send a range.
    """

    body: bytes
    stated: Mapping[str, Any]
    wait_seconds: float | None = None
    rest_seconds: float = 0.0
    rest_nbytes: int = 0
    is_range_ignored: bool = False


def states_identity(filesystem: Any) -> bool:
    """Return whether the responses of an asynchronous file system identify the state of the file."""
    return _calls_of(filesystem) is not None


Begun: TypeAlias = Callable[[], None]
"""Called when a response begins to arrive."""


def _ignore() -> None:
    pass


async def request_range(
    filesystem: Any, path: str, span: Span, only_if: Mapping[str, Any], begun: Begun = _ignore
) -> Response:
    """Return the response of an asynchronous fsspec file system. The body may be shorter or longer than the span.

    `only_if` are the options of a condition that was made for this file system. `begun` is called at once if the file
    system does not say when a response begins.
    """
    if (calls := _calls_of(filesystem)) is not None:
        return await calls.request(filesystem, path, span, only_if, begun)
    begun()
    return Response(bytes(await filesystem._cat_file(path, start=span.address, end=span.end)), {})


async def _request_http(filesystem: Any, url: str, span: Span, only_if: Mapping[str, Any], begun: Begun) -> Response:
    session = await filesystem.set_session()
    options = dict(filesystem.kwargs)
    headers = {**options.pop("headers", {}), "Range": _range(span), **only_if}
    started = time.perf_counter()
    async with session.get(filesystem.encode_url(url), headers=headers, **options) as http_response:
        begun()
        return await _receive(http_response, span, started)


async def _request_gcs(filesystem: Any, path: str, span: Span, only_if: Mapping[str, Any], begun: Begun) -> Response:
    """Request as gcsfs does, but without its own retries and its request for the type of the bucket."""
    await filesystem._set_session()
    headers = filesystem._get_headers({"Range": _range(span), "Accept-Encoding": "identity"})
    started = time.perf_counter()
    request = filesystem.session.get(filesystem.url(path), headers=headers, params=filesystem._get_params(only_if))
    async with request as http_response:
        begun()
        received = await _receive(http_response, span, started)
        generation = http_response.headers.get("x-goog-generation")
        return (
            received if generation is None else received._replace(stated={**received.stated, "generation": generation})
        )


async def _receive(http_response: Any, span: Span, started: float) -> Response:
    """Return the content of an aiohttp response that has begun to arrive. The request was sent at `started`."""
    http_response.raise_for_status()
    if http_response.status == 200 and (http_response.content_length or 0) > max(span.nbytes, _MOST_UNASKED_NBYTES):
        raise RangesIgnored(http_response.content_length or 0)
    # Some versions of aiohttp do not count the bytes that have arrived. Then the pace of the rest stays unknown.
    began, early_nbytes = time.perf_counter(), getattr(http_response.content, "total_bytes", span.nbytes)
    body = await http_response.read()
    ended = time.perf_counter()
    headers = http_response.headers
    stated = {name: headers[name] for name in ("ETag", "Last-Modified") if name in headers}
    size = _total(headers.get("Content-Range"), span)
    if http_response.status == 200 and span.address > 0 and len(body) <= span.nbytes:
        raise WrongRange(0, span.address)  # the whole file, which happens to be as long as the requested range
    if size is None and http_response.status == 200 and http_response.content_length == len(body):
        size = len(body)
    pace = began - started, ended - began, max(0, len(body) - early_nbytes)
    # Some servers that know ranges send the whole file for a range that covers it.
    knows_ranges = http_response.status == 206 or headers.get("Accept-Ranges", "").lower() == "bytes"
    is_ignored = len(body) > span.nbytes or not knows_ranges
    return Response(body, stated if size is None else {**stated, "size": size}, *pace, is_ignored)


async def _request_s3(filesystem: Any, path: str, span: Span, only_if: Mapping[str, Any], begun: Begun) -> Response:
    bucket, key, version = filesystem.split_path(path)
    options = {**filesystem.req_kw, "Range": _range(span), **only_if, **({"VersionId": version} if version else {})}
    started = time.perf_counter()
    found = await filesystem._call_s3("get_object", Bucket=bucket, Key=key, **options)
    begun()
    began = time.perf_counter()
    try:
        body = await found["Body"].read()
    finally:
        found["Body"].close()
    stated = {name: found[name] for name in ("ETag", "LastModified", "VersionId") if found.get(name) is not None}
    size = _total(found.get("ContentRange"), span)
    return Response(bytes(body), stated if size is None else {**stated, "size": size}, began - started)


async def _request_azure(filesystem: Any, path: str, span: Span, only_if: Mapping[str, Any], begun: Begun) -> Response:
    container, blob, version = filesystem.split_path(path)
    options = {**getattr(filesystem, "_timeout_kwargs", {}), **only_if, **({"version_id": version} if version else {})}
    async with filesystem.service_client.get_blob_client(container=container, blob=blob) as client:
        # The library's own retries are off, because they wait 15 seconds or more. `fetch.retry` retries.
        started = time.perf_counter()
        stream = await client.download_blob(offset=span.address, length=span.nbytes, retry_total=0, **options)
        begun()
        began = time.perf_counter()
        body = await stream.readall()
    found = stream.properties
    size = _total(found.content_range, span)
    stated = {name: found[name] for name in ("etag", "last_modified", "version_id") if found.get(name) is not None}
    return Response(bytes(body), stated if size is None else {**stated, "size": size}, began - started)


def _range(span: Span) -> str:
    return f"bytes={span.address}-{span.end - 1}"


def _total(content_range: str | None, span: Span) -> int | None:
    """Return the size of the file from a Content-Range header, or None if it is not there. RFC 9110, 14.4."""
    found = _CONTENT_RANGE.fullmatch(content_range or "")
    if found is None:
        return None
    if int(found[1]) != span.address:
        raise WrongRange(int(found[1]), span.address)
    return None if found[2] == "*" else int(found[2])


class Condition(NamedTuple):
    """A condition for requests, once a state of the file is known.

    `options` has the header, argument or parameter, under the name that the file system uses. It is empty if there is
    no condition. `broken` says what has changed if the server refuses the request.
    """

    options: Mapping[str, Any]
    broken: str


UNCONDITIONAL = Condition({}, "")


def find_condition(filesystem: Any, path: str, identity: Identity | None) -> Condition:
    """Return the condition for reading a file only in the state `identity`; None accepts any state."""
    if identity is None or (calls := _calls_of(filesystem)) is None:
        return UNCONDITIONAL
    return calls.condition(filesystem, path, identity)


def _condition_http(filesystem: Any, path: str, identity: Identity) -> Condition:
    """Return the If-Match header, unless the storage options already have one."""
    given = (filesystem.kwargs.get("headers"), filesystem.client_kwargs.get("headers"))
    if any(str(name).lower() == _HEADER.lower() for headers in given for name in dict(headers or {})):
        return UNCONDITIONAL
    return _match_etag(identity, lambda etag: {_HEADER: etag})


def _condition_s3(filesystem: Any, path: str, identity: Identity) -> Condition:
    """Return the ETag, even if the object has versions: reading on from an old one would hide that it was replaced."""
    if "IfMatch" in filesystem.s3_additional_kwargs:
        return UNCONDITIONAL
    return _match_etag(identity, lambda etag: {"IfMatch": etag})


def _condition_gcs(filesystem: Any, path: str, identity: Identity) -> Condition:
    """Return the generation, which Google's JSON API documents as the condition for the content of an object.

    The server compares it with the current generation. A URL that selects a generation needs no condition: it may be an
    old one, and never changes.
    """
    generation = identity.version or ""
    if filesystem.split_path(path)[2] or not _GENERATION.fullmatch(generation):
        return UNCONDITIONAL
    return Condition({"ifGenerationMatch": generation}, f"its version is no longer {generation}")


def _condition_azure(filesystem: Any, path: str, identity: Identity) -> Condition:
    """Return the ETag, unless the URL selects a version, which never changes."""
    if filesystem.split_path(path)[2]:
        return UNCONDITIONAL
    from azure.core import MatchConditions  # installed, because its file system is in use

    return _match_etag(identity, lambda etag: {"etag": etag, "match_condition": MatchConditions.IfNotModified})


def _match_etag(identity: Identity, options: Callable[[str], Mapping[str, Any]]) -> Condition:
    etag = identity.etag or ""
    return Condition(options(etag), f"its ETag is no longer {etag}") if _STRONG_ETAG.fullmatch(etag) else UNCONDITIONAL


class FileSystemCalls(NamedTuple):
    """How to request a range with its headers from an asynchronous fsspec file system, and only in a given state."""

    request: Callable[[Any, str, Span, Mapping[str, Any], Begun], Awaitable[Response]]
    condition: Callable[[Any, str, Identity], Condition]


# Keys are class names, since the packages may not be installed.
_CALLS = {
    "HTTPFileSystem": FileSystemCalls(_request_http, _condition_http),
    "S3FileSystem": FileSystemCalls(_request_s3, _condition_s3),
    "GCSFileSystem": FileSystemCalls(_request_gcs, _condition_gcs),
    "AzureBlobFileSystem": FileSystemCalls(_request_azure, _condition_azure),
}


def _calls_of(filesystem: Any) -> FileSystemCalls | None:
    """Return the calls for a file system; None if only the methods of fsspec can be used."""
    return next((_CALLS[kind.__name__] for kind in type(filesystem).__mro__ if kind.__name__ in _CALLS), None)


def interpret_identity(stated: Mapping[str, Any]) -> Identity:
    """Return the identity from facts about a file. Each file system has its own names for them."""

    def find(*names: str) -> Any:
        return next((stated[name] for name in names if stated.get(name) is not None), None)

    etag = find("ETag", "etag", "e_tag")
    version = find("VersionId", "version_id", "generation", "version")
    mtime = find("LastModified", "last_modified", "Last-Modified", "mtime", "updated", "modified", "created")
    return Identity(
        nbytes=int(stated["size"]),
        etag=None if etag is None else str(etag),
        mtime=_format_moment(mtime),
        version=None if version in (None, _NO_VERSION) else str(version),
    )


def _format_moment(moment: Any) -> str | None:
    """Return a datetime, seconds since 1970, or a date as text in ISO 8601 and UTC; None if it cannot be read."""
    try:
        if isinstance(moment, int | float):
            moment = datetime.fromtimestamp(moment, UTC)
        elif isinstance(moment, str):
            moment = datetime.fromisoformat(moment) if moment[:4].isdigit() else parsedate_to_datetime(moment)
    except (ValueError, OverflowError, OSError):
        return None
    if not isinstance(moment, datetime):
        return None
    # The file systems that return a datetime without a time zone mean UTC.
    aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return aware.isoformat().replace("+00:00", "Z")
