"""Answers: the bytes of a range, and what the server says of the file along with them.

fsspec hands on the bytes alone. Over HTTP, and from S3, Google and Azure, the same answer tells the size of the file
and its ETag or version: so nobody need be asked for them, and a file that is replaced between two requests is noticed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from h5zarr.io.condition import find_for
from h5zarr.io.failure import RangesIgnored, WrongRange
from h5zarr.io.span import Span

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
    return find_for(filesystem, _ASKERS) is not None


async def ask_range(filesystem: Any, path: str, span: Span, only_if: Mapping[str, Any]) -> Answer:
    """Return the answer of an asynchronous file system of fsspec. The body may be shorter or longer than the span.

    `only_if` are the options of a condition, which were made for this file system.
    """
    if (ask := find_for(filesystem, _ASKERS)) is not None:
        return await ask(filesystem, path, span, only_if)
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


Asker: TypeAlias = Callable[[Any, str, Span, Mapping[str, Any]], Awaitable[Answer]]
_ASKERS: dict[str, Asker] = {
    "HTTPFileSystem": _ask_http,
    "S3FileSystem": _ask_s3,
    "GCSFileSystem": _ask_gcs,
    "AzureBlobFileSystem": _ask_azure,
}


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
