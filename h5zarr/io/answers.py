"""Requests to file systems, and what an answer states about the file besides its bytes.

fsspec passes on only the bytes. HTTP, S3, Google and Azure state the size of the file and its ETag or version in the
same answer. So h5zarr need not ask for them, and notices a file that is replaced between two requests.

Once a state is known, requests carry it as a condition. A server that honours conditions never sends bytes of another
state. Others may ignore them, so every answer is also compared with what is known.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from h5zarr.io.failure import RangesIgnored, WrongRange
from h5zarr.io.source import Identity
from h5zarr.io.span import Span

# RFC 9110, 8.8.3. A weak one never matches (13.1.1), and what is recorded in references may be anything.
_STRONG_ETAG = re.compile(r'"[!#-~]*"')
_GENERATION = re.compile(r"[0-9]{1,20}")
_HEADER = "If-Match"
# The version of all S3 objects that were written while a bucket kept no versions: each replaces the last.
_NO_VERSION = "null"
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")

_MOST_UNASKED_NBYTES = 128 << 20  # of a server that sends the whole file instead of a range, this much is taken


class Answer(NamedTuple):
    """`stated` is what is said of the file, by the names that file systems use in `info`; empty where nothing is.

    `wait_seconds` is how long the answer took to begin, None where only the whole is known. In `rest_seconds` came the
    last `rest_nbytes` of its body, 0 where that is not known: some is there by the time that its beginning is seen.
    """

    body: bytes
    stated: Mapping[str, Any]
    wait_seconds: float | None = None
    rest_seconds: float = 0.0
    rest_nbytes: int = 0


def states_identity(filesystem: Any) -> bool:
    """Return whether the answers of an asynchronous file system say what file they are of."""
    return _calls_of(filesystem) is not None


async def ask_range(filesystem: Any, path: str, span: Span, only_if: Mapping[str, Any]) -> Answer:
    """Return the answer of an asynchronous file system of fsspec. The body may be shorter or longer than the span.

    `only_if` are the options of a condition, which were made for this file system.
    """
    if (calls := _calls_of(filesystem)) is not None:
        return await calls.ask(filesystem, path, span, only_if)
    return Answer(bytes(await filesystem._cat_file(path, start=span.address, end=span.end)), {})


async def _ask_http(filesystem: Any, url: str, span: Span, only_if: Mapping[str, Any]) -> Answer:
    session = await filesystem.set_session()
    options = dict(filesystem.kwargs)
    headers = {**options.pop("headers", {}), "Range": _range(span), **only_if}
    asked = time.perf_counter()
    async with session.get(filesystem.encode_url(url), headers=headers, **options) as response:
        return await _take_response(response, span, asked)


async def _ask_gcs(filesystem: Any, path: str, span: Span, only_if: Mapping[str, Any]) -> Answer:
    """Ask as gcsfs does, but for its own further attempts, and for its question of what kind the bucket is."""
    await filesystem._set_session()
    headers = filesystem._get_headers({"Range": _range(span), "Accept-Encoding": "identity"})
    asked = time.perf_counter()
    request = filesystem.session.get(filesystem.url(path), headers=headers, params=filesystem._get_params(only_if))
    async with request as response:
        answer = await _take_response(response, span, asked)
        generation = response.headers.get("x-goog-generation")
        return answer if generation is None else answer._replace(stated={**answer.stated, "generation": generation})


async def _take_response(response: Any, span: Span, asked: float) -> Answer:
    """Return the answer in a response of aiohttp, which has begun to come; `asked` is when it was asked for."""
    if response.status == 404:
        raise FileNotFoundError
    response.raise_for_status()
    if response.status == 200 and (response.content_length or 0) > max(span.nbytes, _MOST_UNASKED_NBYTES):
        raise RangesIgnored(response.content_length or 0)
    # Where a version of aiohttp does not say how much has come, nothing is said of the rest.
    began, early_nbytes = time.perf_counter(), getattr(response.content, "total_bytes", span.nbytes)
    body = await response.read()
    ended = time.perf_counter()
    told = response.headers
    stated = {name: told[name] for name in ("ETag", "Last-Modified") if name in told}
    size = _total(told.get("Content-Range"), span)
    if response.status == 200 and span.address > 0 and len(body) <= span.nbytes:
        raise WrongRange(0, span.address)  # the whole file, which happens to be as long as what was asked for
    if size is None and response.status == 200 and response.content_length == len(body):
        size = len(body)
    pace = began - asked, ended - began, max(0, len(body) - early_nbytes)
    return Answer(body, stated if size is None else {**stated, "size": size}, *pace)


async def _ask_s3(filesystem: Any, path: str, span: Span, only_if: Mapping[str, Any]) -> Answer:
    bucket, key, version = filesystem.split_path(path)
    options = {**filesystem.req_kw, "Range": _range(span), **only_if, **({"VersionId": version} if version else {})}
    asked = time.perf_counter()
    answer = await filesystem._call_s3("get_object", Bucket=bucket, Key=key, **options)
    began = time.perf_counter()
    try:
        body = await answer["Body"].read()
    finally:
        answer["Body"].close()
    stated = {name: answer[name] for name in ("ETag", "LastModified", "VersionId") if answer.get(name) is not None}
    size = _total(answer.get("ContentRange"), span)
    return Answer(bytes(body), stated if size is None else {**stated, "size": size}, began - asked)


async def _ask_azure(filesystem: Any, path: str, span: Span, only_if: Mapping[str, Any]) -> Answer:
    container, blob, version = filesystem.split_path(path)
    options = {**getattr(filesystem, "_timeout_kwargs", {}), **only_if, **({"version_id": version} if version else {})}
    async with filesystem.service_client.get_blob_client(container=container, blob=blob) as client:
        # Without further attempts, which the library would make after 15 seconds or more: they are made here.
        asked = time.perf_counter()
        stream = await client.download_blob(offset=span.address, length=span.nbytes, retry_total=0, **options)
        began = time.perf_counter()
        body = await stream.readall()
    told = stream.properties
    size = _total(told.content_range, span)
    stated = {name: told[name] for name in ("etag", "last_modified", "version_id") if told.get(name) is not None}
    return Answer(bytes(body), stated if size is None else {**stated, "size": size}, began - asked)


def _range(span: Span) -> str:
    return f"bytes={span.address}-{span.end - 1}"


def _total(content_range: str | None, span: Span) -> int | None:
    """Return the size of the file that an answer states; None where it does not. RFC 9110, 14.4."""
    found = _CONTENT_RANGE.fullmatch(content_range or "")
    if found is None:
        return None
    if int(found[1]) != span.address:
        raise WrongRange(int(found[1]), span.address)
    return None if found[2] == "*" else int(found[2])


class Condition(NamedTuple):
    """What requests carry, once a state of the file is known.

    `options` are the header, argument or parameter, by the names that the file system uses; empty where nothing is
    asked. `broken` is what it means that a server refuses to answer.
    """

    options: Mapping[str, Any]
    broken: str


UNCONDITIONAL = Condition({}, "")


def find_condition(filesystem: Any, path: str, identity: Identity | None) -> Condition:
    """Return how to ask for the bytes of a file in the state `identity` alone; None is any."""
    if identity is None or (calls := _calls_of(filesystem)) is None:
        return UNCONDITIONAL
    return calls.state(filesystem, path, identity)


def _state_http(filesystem: Any, path: str, identity: Identity) -> Condition:
    """Return the header, unless there is one in the storage options: who gave it wants that one."""
    given = (filesystem.kwargs.get("headers"), filesystem.client_kwargs.get("headers"))
    if any(str(name).lower() == _HEADER.lower() for headers in given for name in dict(headers or {})):
        return UNCONDITIONAL
    return _match_etag(identity, lambda etag: {_HEADER: etag})


def _state_s3(filesystem: Any, path: str, identity: Identity) -> Condition:
    """Return the ETag, also where the object has versions: to go on with the old one would hide that there is a new."""
    if "IfMatch" in filesystem.s3_additional_kwargs:
        return UNCONDITIONAL
    return _match_etag(identity, lambda etag: {"IfMatch": etag})


def _state_gcs(filesystem: Any, path: str, identity: Identity) -> Condition:
    """Return the generation, which is the condition that Google's JSON API documents for the content of objects.

    It is compared with the current one; a generation that the URL chooses need not be that, and never changes.
    """
    generation = identity.version or ""
    if filesystem.split_path(path)[2] or not _GENERATION.fullmatch(generation):
        return UNCONDITIONAL
    return Condition({"ifGenerationMatch": generation}, f"its version is no longer {generation}")


def _state_azure(filesystem: Any, path: str, identity: Identity) -> Condition:
    """Return the ETag, unless the URL chooses a version, which never changes."""
    if filesystem.split_path(path)[2]:
        return UNCONDITIONAL
    from azure.core import MatchConditions  # here, where its file system is in use

    return _match_etag(identity, lambda etag: {"etag": etag, "match_condition": MatchConditions.IfNotModified})


def _match_etag(identity: Identity, options: Callable[[str], Mapping[str, Any]]) -> Condition:
    etag = identity.etag or ""
    return Condition(options(etag), f"its ETag is no longer {etag}") if _STRONG_ETAG.fullmatch(etag) else UNCONDITIONAL


class FileSystemCalls(NamedTuple):
    """How to ask an asynchronous file system of fsspec for a range with its headers, and for one state of a file."""

    ask: Callable[[Any, str, Span, Mapping[str, Any]], Awaitable[Answer]]
    state: Callable[[Any, str, Identity], Condition]


# By the name of the class, since its package may not be installed.
_CALLS = {
    "HTTPFileSystem": FileSystemCalls(_ask_http, _state_http),
    "S3FileSystem": FileSystemCalls(_ask_s3, _state_s3),
    "GCSFileSystem": FileSystemCalls(_ask_gcs, _state_gcs),
    "AzureBlobFileSystem": FileSystemCalls(_ask_azure, _state_azure),
}


def _calls_of(filesystem: Any) -> FileSystemCalls | None:
    """Return the calls for a file system; None if only fsspec's own are known."""
    return next((_CALLS[kind.__name__] for kind in type(filesystem).__mro__ if kind.__name__ in _CALLS), None)


def interpret_identity(stated: Mapping[str, Any]) -> Identity:
    """Return the identity in what a file system states, under the names that the various ones use."""

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
    """Return a moment, as a datetime, seconds since 1970 or text, in ISO 8601 and UTC; None if it cannot be read."""
    try:
        if isinstance(moment, int | float):
            moment = datetime.fromtimestamp(moment, UTC)
        elif isinstance(moment, str):
            moment = datetime.fromisoformat(moment) if moment[:4].isdigit() else parsedate_to_datetime(moment)
    except (ValueError, OverflowError, OSError):
        return None
    if not isinstance(moment, datetime):
        return None
    # A datetime without a zone is in UTC: so are those of the file systems that give one.
    aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return aware.isoformat().replace("+00:00", "Z")
