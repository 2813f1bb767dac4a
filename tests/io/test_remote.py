from __future__ import annotations

import traceback
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h5zarr.errors import SourceChanged, SourceError
from h5zarr.io.access import Access
from h5zarr.io.failure import describe_failure, source_error
from h5zarr.io.network import MIB, NetworkPolicy
from h5zarr.io.remote import RemoteSource, interpret_identity
from h5zarr.io.source import Identity, open_source
from h5zarr.io.span import Span
from tests.io.policies import EXACT, LARGE
from tests.servers import ETAG, Faults

SPANS = [Span(5 * MIB, 100), Span(10, 20), Span(3 * MIB, 3 * MIB), Span(7, 0), Span(10, 20), Span(8 * MIB - 1, 1)]


def expected(body: bytes, spans: list[Span]) -> list[bytes]:
    return [body[span.address : span.end] for span in spans]


def read(source: Any, spans: list[Span]) -> list[bytes]:
    return [bytes(buffer) for buffer in source.read_many(spans)]


@pytest.fixture
def memory_url(body: bytes) -> Iterator[str]:
    fsspec.filesystem("memory").pipe_file("/room/file.h5", body)
    yield "memory://room/file.h5"
    fsspec.filesystem("memory").store.clear()


@pytest.fixture(params=["http", "memory", "zip", "simplecache", "local chain"])
def any_url(request: pytest.FixtureRequest, body: bytes, tmp_path: Path) -> str:
    """The same file, in every way that fsspec may give it."""
    path = tmp_path / "file.h5"
    match request.param:
        case "http":
            return str(request.getfixturevalue("serve")(body).url("/file.h5"))
        case "memory":
            return str(request.getfixturevalue("memory_url"))
        case "zip":
            with zipfile.ZipFile(tmp_path / "archive.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("inner/file.h5", body)
            return f"zip://inner/file.h5::{tmp_path / 'archive.zip'}"
        case "simplecache":
            return f"simplecache::{request.getfixturevalue('serve')(body).url('/file.h5')}"
    path.write_bytes(body)
    return f"simplecache::file://{path}"


@pytest.mark.parametrize("policy", [NetworkPolicy(), EXACT], ids=["default", "exact"])
def test_every_kind_of_url_gives_the_same_bytes(any_url: str, body: bytes, policy: NetworkPolicy) -> None:
    with open_source(any_url, Access(network=policy)) as source:
        assert isinstance(source, RemoteSource)
        assert source.nbytes == source.identity.nbytes == len(body)
        assert read(source, SPANS) == expected(body, SPANS)
        assert source.log.rounds + source.log.infos == 2
        before = replace(source.log)
        assert read(source, SPANS[::-1]) == expected(body, SPANS[::-1])
        assert source.log == before


def test_a_missing_file_is_a_source_error_everywhere(serve: Any, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("file.h5", b"x")
    for url in (
        serve(b"x").url("/missing.h5"),
        "memory://room/missing.h5",
        f"zip://missing.h5::{tmp_path / 'archive.zip'}",
        f"zip://missing.h5::{tmp_path / 'missing.zip'}",
        f"simplecache::file://{tmp_path}/missing.h5",
    ):
        with pytest.raises(SourceError, match="no such file") as caught:
            open_source(url)
        assert url in str(caught.value)


def test_a_directory_is_not_a_source(memory_url: str) -> None:
    with pytest.raises(SourceError, match="memory://room: this is a directory"):
        open_source("memory://room")


@pytest.mark.parametrize("url", ["nosuchprotocol://a/b", "nosuch::/a/b", "a::b::c"])
def test_an_unknown_protocol_is_a_source_error(url: str) -> None:
    with pytest.raises(SourceError, match=r"fsspec does not know this protocol|no such file"):
        open_source(url)


def test_a_server_that_is_not_there_is_a_source_error() -> None:
    with pytest.raises(SourceError, match=r"^http://127\.0\.0\.1:1/file\.h5: the server cannot be reached"):
        open_source("http://127.0.0.1:1/file.h5?token=secret")


def test_a_small_file_is_read_whole_in_one_request(serve: Any, body: bytes) -> None:
    server = serve(body[:MIB])
    with open_source(server.url("/file.h5")) as source:
        assert read(source, [Span(MIB - 4, 4)]) == [body[MIB - 4 : MIB]]
        assert read(source, [Span(0, 8), Span(5000, 9)]) == [body[:8], body[5000:5009]]
        assert str(source.log) == "1 round, 1 request, 1.0 MB"
    assert server.counts.gets == [(0, MIB - 1)]
    assert server.counts.heads == 0  # the answer tells the size


def test_of_a_file_that_came_whole_nothing_is_planned(serve: Any, body: bytes) -> None:
    with open_source(serve(body[:MIB]).url("/file.h5")) as small, open_source(serve(body).url("/file.h5")) as large:
        assert small.planner is None
        assert large.planner is large
        assert read(small, [Span(5, 0), Span(MIB, 0), Span(7, 3)]) == [b"", b"", body[7:10]]
        for outside in (Span(MIB - 1, 2), Span(-1, 2), Span(2**70, 1), Span(3, -1)):
            with pytest.raises(SourceError, match=r"file\.h5"):
                small.read_many([Span(0, 4), outside])
    with pytest.raises(SourceError, match="closed"):
        small.read_many([Span(0, 4)])


def test_opening_brings_the_beginning_of_a_large_file(serve: Any, body: bytes) -> None:
    server = serve(body)
    with open_source(server.url("/file.h5"), Access(network=LARGE)) as source:
        assert (source.log.rounds, source.log.infos) == (1, 0)
        source.read_many([])
        source.read_many([Span(100, 0)])
        source.read_many([Span(0, 8)])
        source.read_many([Span(900_000, 100)])
        assert (source.log.rounds, source.log.nbytes) == (1, MIB)
    assert server.counts.gets == [(0, MIB - 1)]


def test_the_log_agrees_with_the_server(serve: Any, body: bytes) -> None:
    server = serve(body)
    with open_source(server.url("/file.h5"), Access(network=LARGE)) as source:
        source.read_many([Span(n * 100_000, 10) for n in range(80)])
        source.read_many([Span(n * 100_000 + 50_000, 10) for n in range(80)])
        assert (source.log.rounds, source.log.infos) == (3, 0)
        assert source.log.requests == len(server.counts.gets)
        assert source.log.nbytes == server.counts.nbytes


def test_the_identity_is_what_the_server_states(serve: Any) -> None:
    with open_source(serve(b"1234").url("/file.h5")) as source:
        assert source.identity == Identity(nbytes=4, etag=ETAG, mtime="2020-01-01T12:00:00Z")


@pytest.mark.parametrize(
    ("stated", "identity"),
    [
        (
            {"size": 3, "ETag": '"e"', "LastModified": datetime(2020, 1, 2, tzinfo=UTC), "VersionId": "v"},
            Identity(nbytes=3, etag='"e"', mtime="2020-01-02T00:00:00Z", version="v"),
        ),
        ({"size": 3, "mtime": 1.5}, Identity(nbytes=3, mtime="1970-01-01T00:00:01.500000Z")),
        (
            {"size": 3, "updated": "2020-01-02T03:04:05.678+01:00"},
            Identity(nbytes=3, mtime="2020-01-02T02:04:05.678000Z"),
        ),
        ({"size": 3, "Last-Modified": "yesterday", "generation": 17}, Identity(nbytes=3, version="17")),
        ({"size": 3, "mtime": (1980, 1, 1)}, Identity(nbytes=3)),
    ],
)
def test_identities_are_found_under_the_names_of_various_stores(stated: dict[str, Any], identity: Identity) -> None:
    assert interpret_identity(stated) == identity


def test_requests_in_flight_are_bounded(serve: Any, body: bytes) -> None:
    server = serve(body, latency=0.02)
    with open_source(server.url("/file.h5"), Access(network=replace(EXACT, concurrency=5))) as source:
        spans = [Span(n * 10_000, 100) for n in range(100)]
        assert read(source, spans) == expected(body, spans)
        assert source.log.rounds == 1
    assert len(server.counts.gets) == 100
    assert server.counts.max_in_flight == 5


def test_ten_thousand_spans_are_one_round_within_the_overhead(serve: Any, body: bytes) -> None:
    server = serve(body)
    order = np.random.default_rng(3).permutation(10_000).tolist()
    spans = [Span(n * 800, 200) for n in order]
    slow = replace(LARGE, latency_seconds=0.001, bytes_per_second=1e6, first_read_nbytes=0, ahead_share=0.3)
    with open_source(server.url("/file.h5"), Access(network=replace(slow, request_seconds=0.0001))) as source:
        assert read(source, spans) == expected(body, spans)
        assert source.log.rounds == 1
        assert source.log.nbytes == server.counts.nbytes <= 1.3 * 200 * 10_000


def test_the_cache_is_bounded_though_a_round_is_not(memory_url: str, body: bytes) -> None:
    policy = replace(EXACT, cache_nbytes=MIB, request_nbytes=MIB // 4)
    with RemoteSource(memory_url, Access(network=policy)) as source:
        (whole,) = source.read_many([Span(0, 8 * MIB)])
        assert bytes(whole) == body
        assert source._cache.nbytes <= MIB
        for start in range(0, 8 * MIB, 100_000):
            span = Span(start, min(100_000, 8 * MIB - start))
            assert read(source, [span]) == expected(body, [span])
            assert source._cache.nbytes <= MIB


def test_a_passing_fault_is_survived_and_counted(serve: Any, body: bytes) -> None:
    faults = Faults(statuses={2: 503, 3: 429}, cut=frozenset({5}), short=frozenset({6}), hang=frozenset({7}))
    server = serve(body, faults=faults)
    with open_source(server.url("/file.h5"), Access(network=replace(EXACT, timeout_seconds=1))) as source:
        spans = [Span(n * 100_000, 100) for n in range(10)]
        assert read(source, spans) == expected(body, spans)
        assert (source.log.rounds, source.log.requests) == (1, 15)


@pytest.mark.parametrize(
    ("faults", "what"),
    [
        (Faults(statuses=dict.fromkeys(range(2, 20), 503)), "the server answered HTTP 503"),
        (Faults(statuses={2: 403}), "access was refused"),
        (Faults(statuses={2: 418}), "the server answered HTTP 418"),
        (Faults(short=frozenset(range(2, 20))), "the response has 50 bytes instead of 100"),
        (Faults(cut=frozenset(range(2, 20))), "could not be read"),
        (Faults(vanish_after=1), "there is no such file"),
        (Faults(hang=frozenset({2, 3})), "no answer within 0.3 seconds"),
    ],
)
def test_a_fault_in_mid_scan_names_url_and_range_and_remedy(serve: Any, body: bytes, faults: Faults, what: str) -> None:
    server = serve(body, faults=faults)
    policy = replace(EXACT, timeout_seconds=0.3, attempts=2)
    with open_source(server.url("/file.h5") + "?token=secret", Access(network=policy)) as source:
        source.read_many([Span(0, 8)])
        with pytest.raises(SourceError) as caught:
            source.read_many([Span(1000, 100)])
        assert str(caught.value).startswith(f"{server.url('/file.h5')}: bytes 1000-1099: {what}")
        assert caught.value.remedy
        assert caught.value.remedy in caught.value.__notes__
        assert caught.value.__context__ is None or caught.value.__suppress_context__
        server.faults = Faults()
        assert read(source, [Span(1000, 100)]) == [body[1000:1100]]


def test_a_file_that_is_replaced_in_mid_scan_is_not_mixed(serve: Any, body: bytes) -> None:
    server = serve(body)
    with open_source(server.url("/file.h5"), Access(network=EXACT)) as source:
        source.read_many([Span(0, 8)])
        server.etag = '"new"'
        with pytest.raises(SourceChanged, match=r"has changed since it was opened: its ETag is no longer") as caught:
            source.read_many([Span(1000, 100)])
        assert "again" in caught.value.remedy


def test_a_server_name_that_cannot_be_resolved_is_reported() -> None:
    with pytest.raises(SourceError, match=r"^http://nowhere\.invalid/file\.h5: the server's name cannot be resolved"):
        open_source("http://nowhere.invalid/file.h5")


def test_a_file_that_vanishes_from_memory_is_a_source_error(memory_url: str) -> None:
    with open_source(memory_url, Access(network=EXACT)) as source:
        source.read_many([Span(0, 8)])
        fsspec.filesystem("memory").store.clear()
        with pytest.raises(SourceError, match=r"memory://room/file\.h5: bytes 100-107: there is no such file"):
            source.read_many([Span(100, 8)])


def test_a_file_that_has_become_shorter_is_a_source_error(memory_url: str, body: bytes) -> None:
    with open_source(memory_url, Access(network=EXACT)) as source:
        fsspec.filesystem("memory").pipe_file("/room/file.h5", body[:100])
        with pytest.raises(SourceError, match="bytes 96-103: the response has 4 bytes instead of 8"):
            source.read_many([Span(96, 8)])


def test_the_whole_file_instead_of_a_range_is_cut_right(serve: Any, body: bytes) -> None:
    server = serve(body, faults=Faults(ignore_range=True))
    with open_source(server.url("/file.h5"), Access(network=LARGE)) as source:
        assert read(source, [Span(1000, 100)]) == [body[1000:1100]]
        assert read(source, SPANS) == expected(body, SPANS)
        assert source.log.rounds == 1
        assert source.log.nbytes == len(body)


def test_the_whole_of_a_large_file_instead_of_a_range_is_refused(serve: Any, body: bytes) -> None:
    server = serve(body, faults=Faults(ignore_range=True))
    policy = NetworkPolicy(cache_nbytes=MIB)
    with (
        open_source(server.url("/file.h5"), Access(network=policy)) as source,
        pytest.raises(SourceError, match="ignores byte"),
    ):
        source.read_many([Span(1000, 100)])


def test_a_server_that_hides_the_size_is_reported(serve: Any, body: bytes) -> None:
    server = serve(body, faults=Faults(hide_size=True))
    with pytest.raises(SourceError, match="does not state the size"):
        open_source(server.url("/file.h5"))


@pytest.mark.parametrize(
    "span", [Span(8 * MIB, 1), Span(-1, 1), Span(5, -1), Span(2**62, 2**62), Span(2**70, 1), Span(0, 2**70)]
)
def test_reading_outside_the_file_asks_nobody(memory_url: str, span: Span) -> None:
    with open_source(memory_url) as source:
        with pytest.raises(SourceError, match=rf"memory://room/file\.h5: bytes {span.address}-\d*.*past the end"):
            source.read_many([Span(0, 1), span])
        assert source.log.rounds == 0


def test_secrets_are_neither_shown_nor_chained(serve: Any, body: bytes) -> None:
    server = serve(body, faults=Faults(vanish_after=1))
    url = server.url("/file.h5").replace("http://", "http://user:hush@") + "?signature=hush"
    with open_source(url, Access(storage_options={"headers": {"X-Key": "hush"}}, network=EXACT)) as source:
        source.read_many([Span(0, 8)])
        assert "hush" not in source.url + repr(source)
        with pytest.raises(SourceError) as caught:
            source.read_many([Span(1000, 1)])
    assert "hush" not in "".join(traceback.format_exception(caught.value))


def test_wrong_storage_options_are_a_source_error() -> None:
    with pytest.raises(SourceError, match="storage options") as caught:
        open_source("http://127.0.0.1:1/a", Access(storage_options={"headers": "secret"}))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "named"),
    [("s3://bucket/a", "AWS_ENDPOINT_URL"), ("gs://bucket/a", "endpoint_url"), ("az://box/a", "account_name")],
)
def test_an_unreachable_store_names_the_setting_with_its_server(url: str, named: str) -> None:
    failure = describe_failure(ConnectionRefusedError(), 1)
    assert named in source_error(url, failure).remedy
    assert source_error("http://host/a", failure).remedy == "Check the URL and the network, then try again."


def test_a_closed_source_is_not_read(memory_url: str) -> None:
    with open_source(memory_url) as source:
        (buffer,) = source.read_many([Span(0, 4)])
    assert len(buffer) == 4
    with pytest.raises(SourceError, match="closed"):
        source.read_many([Span(0, 4)])


def test_an_empty_file_is_fine(serve: Any) -> None:
    with open_source(serve(b"").url("/file.h5")) as source:
        assert source.nbytes == 0
        assert read(source, [Span(0, 0)]) == [b""]
        assert (source.log.requests, source.log.infos) == (1, 1)  # there is no first byte to ask for


@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 200)), min_size=1, max_size=20), min_size=1, max_size=6
    ),
    st.sampled_from([1, 64, 512]),
    st.sampled_from([0, 500, 2000]),
    st.integers(1, 900),
)
def test_rounds_in_any_order_return_exactly_what_was_asked(
    rounds: list[list[tuple[int, int]]], block_nbytes: int, cache_nbytes: int, split_nbytes: int
) -> None:
    body = np.random.default_rng(5).bytes(3200)
    fsspec.filesystem("memory").pipe_file("/any.h5", body)
    policy = NetworkPolicy(
        block_nbytes=block_nbytes,
        cache_nbytes=cache_nbytes,
        request_nbytes=split_nbytes,
        latency_seconds=1e-6,
        bytes_per_second=100e6,
        request_seconds=0,
        whole_seconds=0,
        first_read_nbytes=64,
    )
    with RemoteSource("memory://any.h5", Access(network=policy)) as source:
        for number, pairs in enumerate(rounds, start=1):
            spans = [Span(*pair) for pair in pairs]
            assert read(source, spans) == expected(body, spans)
            assert source.log.rounds <= number
            assert source._cache.nbytes <= cache_nbytes


def test_a_server_that_only_fails_is_not_asked_in_another_way(serve: Any, body: bytes) -> None:
    server = serve(body, faults=Faults(statuses=dict.fromkeys(range(1, 20), 503)))
    with pytest.raises(SourceError, match="the server answered HTTP 503"):
        open_source(server.url("/file.h5"))
    assert (len(server.counts.gets), server.counts.heads) == (3, 0)
