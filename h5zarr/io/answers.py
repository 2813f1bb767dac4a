"""Answers: the bytes of a range, and what the server says of the file along with them.

fsspec hands on the bytes alone. Over HTTP and S3 the same answer tells the size of the file and its ETag: so nobody
need be asked for them, and a file that is replaced between two requests is noticed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from h5zarr.io.failure import RangesIgnored, WrongRange
from h5zarr.io.span import Span

_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")

_MOST_UNASKED_NBYTES = 128 << 20  # of a server that sends the whole file instead of a range, this much is taken


class Answer(NamedTuple):
    """`stated` is what is said of the file, by the names that file systems use in `info`; empty where nothing is.

    `wait_seconds` is how long the answer took to begin, None where only the whole is known; then its body came.
    """

    body: bytes
    stated: Mapping[str, Any]
    wait_seconds: float | None = None
    body_seconds: float = 0.0


def states_identity(filesystem: Any) -> bool:
    """Return whether the answers of an asynchronous file system say what file they are of."""
    return _is(filesystem, "HTTPFileSystem") or _is(filesystem, "S3FileSystem")


async def ask_range(filesystem: Any, path: str, span: Span) -> Answer:
    """Return the answer of an asynchronous file system of fsspec. The body may be shorter or longer than the span."""
    if _is(filesystem, "HTTPFileSystem"):
        return await _ask_http(filesystem, path, span)
    if _is(filesystem, "S3FileSystem"):
        return await _ask_s3(filesystem, path, span)
    return Answer(bytes(await filesystem._cat_file(path, start=span.address, end=span.end)), {})


def _is(filesystem: Any, name: str) -> bool:
    """Return whether this is a file system of a package that need not be installed."""
    return any(kind.__name__ == name for kind in type(filesystem).__mro__)


async def _ask_http(filesystem: Any, url: str, span: Span) -> Answer:
    session = await filesystem.set_session()
    options = dict(filesystem.kwargs)
    headers = {**options.pop("headers", {}), "Range": _range(span)}
    asked = time.perf_counter()
    async with session.get(filesystem.encode_url(url), headers=headers, **options) as response:
        filesystem._raise_not_found_for_status(response, url)
        if response.status == 200 and (response.content_length or 0) > max(span.nbytes, _MOST_UNASKED_NBYTES):
            raise RangesIgnored(response.content_length or 0)
        began = time.perf_counter()
        body = await response.read()
        ended = time.perf_counter()
        told = response.headers
        stated = {name: told[name] for name in ("ETag", "Last-Modified") if name in told}
        size = _total(told.get("Content-Range"), span)
        if response.status == 200 and span.address > 0 and len(body) <= span.nbytes:
            raise WrongRange(0, span.address)  # the whole file, which happens to be as long as what was asked for
        if size is None and response.status == 200 and response.content_length == len(body):
            size = len(body)
        return Answer(body, stated if size is None else {**stated, "size": size}, began - asked, ended - began)


async def _ask_s3(filesystem: Any, path: str, span: Span) -> Answer:
    bucket, key, version = filesystem.split_path(path)
    options = {**filesystem.req_kw, "Range": _range(span), **({"VersionId": version} if version else {})}
    asked = time.perf_counter()
    answer = await filesystem._call_s3("get_object", Bucket=bucket, Key=key, **options)
    began = time.perf_counter()
    try:
        body = await answer["Body"].read()
    finally:
        answer["Body"].close()
    ended = time.perf_counter()
    stated = {name: answer[name] for name in ("ETag", "LastModified", "VersionId") if answer.get(name) is not None}
    size = _total(answer.get("ContentRange"), span)
    return Answer(bytes(body), stated if size is None else {**stated, "size": size}, began - asked, ended - began)


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
