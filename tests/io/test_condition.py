"""Requests are for one state of a file: the first is answered of whatever is there, others of that or not at all."""

from __future__ import annotations

import traceback
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from h5zarr.errors import SourceChanged, SourceError
from h5zarr.io.access import Access
from h5zarr.io.network import NetworkPolicy
from h5zarr.io.ranges import RangeReader, open_ranges, read_one
from h5zarr.io.responses import UNCONDITIONAL, find_condition
from h5zarr.io.source import Identity, open_source
from h5zarr.io.span import Span
from tests.io.policies import EXACT
from tests.servers import ETAG, Faults, RangeServer

BEGUN = replace(EXACT, first_read_nbytes=512)
SPANS = [Span(n * 200_000, 10) for n in range(1, 21)]


def conditions(server: RangeServer) -> list[str | None]:
    """Return the condition of every request, in the order of arrival; None where there is none."""
    return [headers.get("if-match") for headers in server.counts.headers]


def read(reader: RangeReader) -> None:
    columns = np.array(SPANS, np.int64)
    reader.read(columns[:, 0], columns[:, 1], lambda numbers, buffers: None)


def test_a_scan_reads_the_state_of_the_first_response(serve: Any, body: bytes) -> None:
    server = serve(body)
    with open_source(server.url("/file.h5"), Access(network=BEGUN)) as source:
        source.read_many(SPANS[:2])
        source.read_many(SPANS[2:4])
        assert (source.log.rounds, source.log.requests) == (3, 5)
    assert conditions(server) == [None] + 4 * [ETAG]


def test_a_state_that_was_asked_for_is_that_of_all_ranges(serve: Any, body: bytes) -> None:
    server = serve(body)
    with open_source(server.url("/file.h5"), Access(network=EXACT)) as source:
        source.read_many(SPANS[:1])
    assert server.counts.heads == 1
    assert conditions(server) == [None, ETAG]


def test_chunks_are_of_the_state_that_is_expected(serve: Any, body: bytes) -> None:
    server = serve(body)
    expected = Identity(nbytes=len(body), etag=ETAG)
    read(open_ranges(server.url("/file.h5"), Access(network=NetworkPolicy(latency_seconds=0)), expected=expected))
    assert conditions(server) == 20 * [ETAG]


@pytest.mark.parametrize(
    "expected", [None, Identity(nbytes=8 << 20), Identity(nbytes=8 << 20, mtime="2020-01-01T12:00:00Z")]
)
def test_without_an_etag_there_is_no_condition(serve: Any, body: bytes, expected: Identity | None) -> None:
    server = serve(body)
    read_one(open_ranges(server.url("/file.h5"), expected=expected), SPANS[0])
    assert conditions(server) == [None]


@pytest.mark.parametrize(
    "etag", ['W/"abc"', "abc", '"abc', '"', '"a b"', '"a"b"', '"a\r\nX-Injected: 1"', '"a\n"', '"caf\xe9"', ""]
)
def test_only_strong_etags_make_a_condition(serve: Any, body: bytes, etag: str) -> None:
    server = serve(body)
    reader = open_ranges(server.url("/file.h5"), expected=Identity(nbytes=len(body), etag=etag))
    with pytest.raises(SourceChanged, match="its ETag is "):
        read_one(reader, SPANS[0])
    assert conditions(server) == [None]


def test_weak_etags_are_compared(serve: Any, body: bytes) -> None:
    server = serve(body)
    server.etag = 'W/"1"'
    with open_source(server.url("/file.h5"), Access(network=BEGUN)) as source:
        assert bytes(source.read_many(SPANS[:1])[0]) == body[200_000:200_010]
        server.etag = 'W/"2"'
        with pytest.raises(SourceChanged, match='its ETag is W/"2" instead of W/"1"'):
            source.read_many(SPANS[1:2])
    assert conditions(server) == [None] * 3


def test_a_file_that_is_replaced_between_two_rounds_is_refused_once(serve: Any, body: bytes) -> None:
    server = serve(body)
    with open_source(server.url("/file.h5") + "?key=hush", Access(network=BEGUN)) as source:
        server.etag = '"new"'
        nbytes = server.counts.nbytes
        with pytest.raises(SourceChanged, match=r'since it was opened: its ETag is no longer "abc123"\n') as caught:
            source.read_many(SPANS[:1])
        assert (source.log.rounds, source.log.requests) == (2, 2)
    assert str(caught.value).startswith(f"{server.url('/file.h5')}: the file has changed")
    assert caught.value.remedy == "Try again when nothing writes to it."
    assert caught.value.__context__ is None
    assert "hush" not in "".join(traceback.format_exception(caught.value))
    assert len(server.counts.gets) == 2
    assert server.counts.nbytes == nbytes


def test_chunks_of_a_file_that_was_replaced_are_refused_at_once(serve: Any, body: bytes) -> None:
    server = serve(body)
    reader = open_ranges(server.url("/file.h5"), expected=Identity(nbytes=len(body), etag='"old"'))
    with pytest.raises(SourceChanged, match=r'since it was translated: its ETag is no longer "old"\n') as caught:
        read_one(reader, SPANS[0])
    assert "verify=False" in caught.value.remedy
    assert (len(server.counts.gets), server.counts.heads, server.counts.nbytes) == (1, 0, 0)
    read_one(open_ranges(server.url("/file.h5")), SPANS[0])


def test_a_server_that_takes_no_notice_is_noticed_by_its_answers(serve: Any, body: bytes) -> None:
    server = serve(body, faults=Faults(ignore_condition=True))
    with open_source(server.url("/file.h5"), Access(network=BEGUN)) as source:
        server.etag = '"new"'
        with pytest.raises(SourceChanged, match='since it was opened: its ETag is "new" instead of "abc123"'):
            source.read_many(SPANS[:1])
    assert conditions(server) == [None, ETAG]


def test_a_passing_fault_does_not_lose_the_condition(serve: Any, body: bytes) -> None:
    server = serve(body, faults=Faults(statuses={2: 503}, short=frozenset({3})))
    with open_source(server.url("/file.h5"), Access(network=BEGUN)) as source:
        source.read_many(SPANS[:1])
    assert conditions(server) == [None] + 3 * [ETAG]


def test_the_status_of_a_server_without_conditions_is_reported(serve: Any, body: bytes) -> None:
    server = serve(body, faults=Faults(statuses=dict.fromkeys(range(2, 9), 501)))
    with (
        open_source(server.url("/file.h5"), Access(network=BEGUN)) as source,
        pytest.raises(SourceError, match="the server answered HTTP 501") as caught,
    ):
        source.read_many(SPANS[:1])
    assert not isinstance(caught.value, SourceChanged)
    assert len(server.counts.gets) == 2


@pytest.mark.parametrize("name", ["If-Match", "if-match"])
@pytest.mark.parametrize("is_default", [False, True], ids=["of requests", "of the session"])
def test_a_condition_of_the_user_stays_theirs(serve: Any, body: bytes, name: str, is_default: bool) -> None:
    server = serve(body)
    given: dict[str, Any] = {"headers": {name: "*"}}
    options = {"client_kwargs": given} if is_default else given
    with open_source(server.url("/file.h5"), Access(storage_options=options, network=BEGUN)) as source:
        source.read_many(SPANS[:1])
        identity = source.identity
    read_one(open_ranges(server.url("/file.h5"), Access(storage_options=options), expected=identity), SPANS[0])
    assert conditions(server) == ["*"] * 3
    server.etag = '"new"'
    with pytest.raises(SourceChanged, match='its ETag is "new"'):
        read_one(open_ranges(server.url("/file.h5"), Access(storage_options=options), expected=identity), SPANS[0])


def test_a_failed_condition_of_the_user_does_not_mean_that_the_file_changed(serve: Any, body: bytes) -> None:
    server = serve(body)
    with pytest.raises(SourceError, match="the server answered HTTP 412") as caught:
        read_one(
            open_ranges(server.url("/file.h5"), Access(storage_options={"headers": {"If-Match": '"theirs"'}})), SPANS[0]
        )
    assert not isinstance(caught.value, SourceChanged)
    assert "If-Match" in caught.value.remedy
    assert len(server.counts.gets) == 1


def test_other_file_systems_have_no_conditions() -> None:
    assert find_condition(object(), "path", Identity(nbytes=1, etag=ETAG)) is UNCONDITIONAL
