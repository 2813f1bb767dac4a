from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from h5zarr.errors import SourceError
from h5zarr.io.access import Access
from h5zarr.io.network import MIB, NetworkPolicy
from h5zarr.io.obstore import ObjectSource
from h5zarr.io.source import Identity, open_source
from h5zarr.io.span import Span
from tests.io.policies import EXACT, LARGE
from tests.servers import ETAG

obstore = pytest.importorskip("obstore")
from obstore.store import HTTPStore, MemoryStore  # noqa: E402

SPANS = [Span(5 * MIB, 100), Span(10, 20), Span(3 * MIB, 3 * MIB), Span(7, 0), Span(10, 20), Span(8 * MIB - 1, 1)]


def in_memory(body: bytes) -> MemoryStore:
    store = MemoryStore()
    store.put("room/file.h5", body)
    return store


def over_http(server: Any) -> HTTPStore:
    return HTTPStore.from_url(server.url(""), client_options={"allow_http": True}, retry_config={"max_retries": 0})


@pytest.mark.parametrize("policy", [NetworkPolicy(), EXACT], ids=["default", "exact"])
def test_bytes_come_out_of_a_store_as_they_were_put_in(body: bytes, policy: NetworkPolicy) -> None:
    with ObjectSource(in_memory(body), "room/file.h5", url="memory://room/file.h5", network=policy) as source:
        assert source.nbytes == source.identity.nbytes == len(body)
        for spans in (SPANS, SPANS[::-1]):
            expected = [body[span.address : span.end] for span in spans]
            assert [bytes(buffer) for buffer in source.read_many(spans)] == expected
        assert (source.log.rounds, source.log.infos) == (1, 1)


def test_the_requests_are_those_that_fsspec_would_make(serve: Any, body: bytes) -> None:
    asked = []
    for opened in (
        lambda one: open_source(one.url("/file.h5"), Access(network=LARGE)),
        lambda one: through_store(one, LARGE),
    ):
        server = serve(body)
        with opened(server) as source:
            source.read_many([Span(0, 8)])
            source.read_many([Span(n * 200_000, 10) for n in range(40)])
            log = source.log
        assert (log.requests, log.nbytes) == (len(server.counts.gets), server.counts.nbytes)
        asked.append((sorted(server.counts.gets), log.rounds, log.requests, log.nbytes))
    assert asked[0] == asked[1]


def through_store(server: Any, policy: NetworkPolicy) -> ObjectSource:
    return ObjectSource(over_http(server), "file.h5", url=server.url("/file.h5"), network=policy)


def test_requests_in_flight_are_bounded(serve: Any, body: bytes) -> None:
    server = serve(body, latency=0.02)
    with through_store(server, replace(EXACT, concurrency=5)) as source:
        source.read_many([Span(n * 10_000, 100) for n in range(100)])
        assert source.log.rounds == 1
    assert len(server.counts.gets) == 100
    assert server.counts.max_in_flight == 5


def test_the_identity_is_what_the_store_states(serve: Any) -> None:
    with through_store(serve(b"1234"), EXACT) as source:
        assert source.identity == Identity(nbytes=4, etag=ETAG, mtime="2020-01-01T12:00:00Z")


def test_a_missing_file_is_a_source_error_that_keeps_secrets() -> None:
    with pytest.raises(SourceError, match=r"^https://host/missing\.h5: there is no such file") as caught:
        ObjectSource(MemoryStore(), "missing.h5", url="https://user:hunter2@host/missing.h5?token=hunter2")
    assert "hunter2" not in str(caught.value)


def test_a_file_that_vanishes_is_a_source_error() -> None:
    store = in_memory(b"1234")
    with ObjectSource(store, "room/file.h5", url="memory://room/file.h5") as source:
        store.delete("room/file.h5")
        with pytest.raises(SourceError, match=r"bytes 0-3: there is no such file"):
            source.read_many([Span(1, 2)])


def test_a_file_that_becomes_shorter_is_a_source_error() -> None:
    store = in_memory(b"12345678")
    with ObjectSource(store, "room/file.h5", url="memory://room/file.h5") as source:
        store.put("room/file.h5", b"1234")
        with pytest.raises(SourceError, match="the response has 4 bytes instead of 8"):
            source.read_many([Span(1, 2)])


def test_refused_access_is_reported() -> None:
    class Closed:
        def head(self, path: str) -> Any:
            raise obstore.exceptions.PermissionDeniedError("signed with hunter2")

        def get_range(self, path: str, *, start: int, end: int) -> Any: ...

    with pytest.raises(SourceError, match="access was refused") as caught:
        ObjectSource(Closed(), "file.h5", url="s3://bucket/file.h5")
    assert "hunter2" not in str(caught.value)
