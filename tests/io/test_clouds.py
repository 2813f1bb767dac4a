"""Objects of S3, Google and Azure through their own packages: what is asked, how often, and what is noticed."""

from __future__ import annotations

import json
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
import xarray

from h5zarr.commands.translate.translate import translate
from h5zarr.errors import SourceChanged, SourceError, SourceGone
from h5zarr.io import fetch
from h5zarr.io.access import Access
from h5zarr.io.network import NetworkPolicy
from h5zarr.io.ranges import open_ranges, read_one
from h5zarr.io.source import Identity, open_source
from h5zarr.io.span import Span
from tests.io.policies import EXACT
from tests.made_files import make_plain
from tests.servers import ETAG, Counts, Faults, RangeServer

pytestmark = pytest.mark.filterwarnings(
    "ignore:datetime.datetime.utcnow:DeprecationWarning", "ignore:unclosed:ResourceWarning"
)
SMALL = replace(EXACT, first_read_nbytes=512)
MTIME = "2020-01-01T12:00:00Z"


class Cloud(NamedTuple):
    """A kind of object store: the package that reads it, the URL of an object, and its path on the server."""

    package: str
    url: str
    path: str
    version: str | None = None

    def options(self, server: RangeServer) -> dict[str, Any]:
        """Return the storage options with which `server` is taken for it."""
        pytest.importorskip(self.package)
        endpoint = server.url("")
        if self.package == "s3fs":
            return {"endpoint_url": endpoint, "key": "k", "secret": "s", "config_kwargs": {"retries": NEVER_AGAIN}}
        if self.package == "gcsfs":
            return {"endpoint_url": endpoint, "token": "anon"}
        return {"connection_string": f"AccountName=acc;AccountKey=c2VjcmV0;BlobEndpoint={endpoint}/acc;"}


NEVER_AGAIN = {"max_attempts": 0}
GOOGLE = Cloud("gcsfs", "gs://bucket/d/plain.h5", "/download/storage/v1/b/bucket/o/d/plain.h5", "17")
AMAZON = Cloud("s3fs", "s3://bucket/d/plain.h5", "/bucket/d/plain.h5")
AZURE = Cloud("adlfs", "az://bucket/d/plain.h5", "/acc/bucket/d/plain.h5")
CLOUDS = [AMAZON, GOOGLE, AZURE, AZURE._replace(url="abfs://bucket@acc.dfs.core.windows.net/d/plain.h5")]
every_cloud = pytest.mark.parametrize("cloud", CLOUDS, ids=["s3", "gs", "az", "abfs"])


@pytest.fixture(scope="module")
def body(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return make_plain(tmp_path_factory.mktemp("clouds") / "plain.h5").read_bytes()


@pytest.fixture(scope="module")
def started(body: bytes) -> Iterator[RangeServer]:
    with RangeServer({cloud.path: body for cloud in CLOUDS}) as server:
        yield server


@pytest.fixture
def server(started: RangeServer, monkeypatch: pytest.MonkeyPatch) -> RangeServer:
    """The server, as if it had just been started."""
    monkeypatch.setattr(fetch, "_FIRST_PAUSE_SECONDS", 0.001)
    started.faults, started.counts = Faults(), Counts()
    started.etag, started.headers = ETAG, {"x-goog-generation": "17"}
    return started


@every_cloud
def test_one_request_opens_an_object_and_tells_what_it_is(cloud: Cloud, server: RangeServer, body: bytes) -> None:
    with open_source(cloud.url, Access(storage_options=cloud.options(server))) as source:
        assert source.identity == Identity(nbytes=len(body), etag=ETAG, mtime=MTIME, version=cloud.version)
        assert [bytes(one) for one in source.read_many([Span(100, 50), Span(9000, 3)])] == [
            body[100:150],
            body[9000:9003],
        ]
    assert len(server.counts.urls) == 1


@every_cloud
def test_as_many_requests_are_in_flight_as_the_policy_says(cloud: Cloud, server: RangeServer, body: bytes) -> None:
    server.latency = 0.1
    try:
        with open_source(
            cloud.url, Access(storage_options=cloud.options(server), network=replace(SMALL, concurrency=40))
        ) as source:
            spans = [Span(number * 100 + 1000, 10) for number in range(40)]
            assert [bytes(one) for one in source.read_many(spans)] == [body[span.address : span.end] for span in spans]
    finally:
        server.latency = 0
    assert server.counts.max_in_flight > 20


@every_cloud
def test_an_object_that_is_replaced_in_mid_scan_is_noticed(cloud: Cloud, server: RangeServer) -> None:
    with open_source(cloud.url, Access(storage_options=cloud.options(server), network=SMALL)) as source:
        source.read_many([Span(0, 8)])
        server.etag, server.headers = '"new"', {"x-goog-generation": "18"}
        with pytest.raises(SourceChanged, match=r"since it was opened: its (ETag|version) is"):
            source.read_many([Span(9000, 8)])


def condition(cloud: Cloud, server: RangeServer, number: int) -> str | None:
    """Return the state that a request asks for; None where that is any."""
    if cloud.package == "gcsfs":
        assert "if-match" not in server.counts.headers[number]
        return dict(parse_qsl(urlsplit(server.counts.urls[number]).query)).get("ifGenerationMatch")
    return server.counts.headers[number].get("if-match")


@every_cloud
def test_later_requests_carry_the_state_of_the_first_response(cloud: Cloud, server: RangeServer) -> None:
    with open_source(cloud.url, Access(storage_options=cloud.options(server), network=SMALL)) as source:
        source.read_many([Span(9000, 8)])
        source.read_many([Span(7000, 8)])
    assert [condition(cloud, server, number) for number in range(3)] == [None] + 2 * [cloud.version or ETAG]
    reader = open_ranges(cloud.url, Access(storage_options=cloud.options(server)), expected=source.identity)
    assert len(read_one(reader, Span(9000, 8))) == 8
    assert condition(cloud, server, 3) == (cloud.version or ETAG)
    assert len(server.counts.urls) == 4


@every_cloud
def test_an_object_that_was_replaced_is_refused_once_and_not_sent(cloud: Cloud, server: RangeServer) -> None:
    with open_source(cloud.url, Access(storage_options=cloud.options(server), network=SMALL)) as source:
        server.etag, server.headers = '"new"', {"x-goog-generation": "18"}
        with pytest.raises(SourceChanged, match=r"since it was opened: its (ETag|version) is no longer") as caught:
            source.read_many([Span(9000, 8)])
        assert caught.value.__context__ is None
        assert (source.log.requests, source.log.nbytes) == (2, 512)
    reader = open_ranges(cloud.url, Access(storage_options=cloud.options(server)), expected=source.identity)
    with pytest.raises(SourceChanged, match=r"since it was translated: its (ETag|version) is no longer"):
        read_one(reader, Span(9000, 8))
    assert len(server.counts.urls) == 3


@every_cloud
def test_an_object_store_that_takes_no_notice_is_noticed_by_its_answers(cloud: Cloud, server: RangeServer) -> None:
    server.faults = Faults(ignore_condition=True)
    with open_source(cloud.url, Access(storage_options=cloud.options(server), network=SMALL)) as source:
        server.etag, server.headers = '"new"', {"x-goog-generation": "18"}
        with pytest.raises(SourceChanged, match=r"since it was opened: its (ETag|version) is (18|\"new\")"):
            source.read_many([Span(9000, 8)])


@every_cloud
def test_a_weak_etag_makes_no_condition(cloud: Cloud, server: RangeServer) -> None:
    server.etag, server.headers = 'W/"1"', {}
    with open_source(cloud.url, Access(storage_options=cloud.options(server), network=SMALL)) as source:
        source.read_many([Span(9000, 8)])
    assert [condition(cloud, server, number) for number in range(2)] == [None, None]


@pytest.mark.parametrize(
    ("cloud", "query", "asked"),
    [(AMAZON, "?versionId=v7", ETAG), (GOOGLE, "?generation=17", None), (AZURE, "?versionid=v7", None)],
)
def test_of_a_version_that_the_url_chooses(cloud: Cloud, query: str, asked: str | None, server: RangeServer) -> None:
    """Only S3 has one that can be replaced: "null", of a bucket that keeps no versions any more."""
    with open_source(cloud.url + query, Access(storage_options=cloud.options(server), network=SMALL)) as source:
        source.read_many([Span(9000, 8)])
    assert [condition(cloud, server, number) for number in range(2)] == [None, asked]
    assert all("=17" in url or "=v7" in url for url in server.counts.urls)


def test_a_null_version_does_not_hide_another_etag(server: RangeServer) -> None:
    """All objects of S3 that came while a bucket kept no versions have the version "null", one after the other."""
    server.faults, server.headers = Faults(ignore_condition=True), {"x-amz-version-id": "null"}
    with open_source(AMAZON.url, Access(storage_options=AMAZON.options(server), network=SMALL)) as source:
        server.etag = '"new"'
        with pytest.raises(SourceChanged, match='its ETag is "new"'):
            source.read_many([Span(9000, 8)])


def test_a_condition_of_the_user_for_objects_stays_theirs(server: RangeServer) -> None:
    options = {**AMAZON.options(server), "s3_additional_kwargs": {"IfMatch": "*"}}
    with open_source(AMAZON.url, Access(storage_options=options, network=SMALL)) as source:
        source.read_many([Span(9000, 8)])
    assert [condition(AMAZON, server, number) for number in range(2)] == ["*", "*"]


@every_cloud
def test_references_and_values_are_read_as_from_a_local_file(cloud: Cloud, server: RangeServer, tmp_path: Path) -> None:
    options = cloud.options(server)
    translate(cloud.url, tmp_path / "refs.json", storage_options=options)
    assert json.loads((tmp_path / "refs.json").read_text())["refs"]["x/c/0"][0] == cloud.url
    for place in (tmp_path / "refs.json", cloud.url):
        with xarray.open_dataset(place, engine="h5zarr", storage_options=options) as opened:
            assert np.array_equal(opened.x.values, np.arange(4000))
    assert len(server.counts.urls) == 3  # a translation, a chunk, and a scan that keeps what it read
    server.etag, server.headers = '"new"', {"x-goog-generation": "18"}
    opened = xarray.open_dataset(tmp_path / "refs.json", engine="h5zarr", storage_options=options)
    with opened, pytest.raises(SourceChanged, match="since it was translated"):
        opened.x.load()


@every_cloud
@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_is_final_and_says_what_to_check(cloud: Cloud, status: int, server: RangeServer) -> None:
    options = cloud.options(server)
    server.faults = Faults(every=status)
    with pytest.raises(SourceError, match="access was refused") as caught:
        open_source(cloud.url, Access(storage_options=options))
    assert len(server.counts.urls) == 1
    assert {"s3fs": "requester_pays", "gcsfs": "anon=True", "adlfs": "sas_token"}[cloud.package] in str(
        caught.value.remedy
    )


@every_cloud
def test_a_missing_object_is_final_and_says_what_to_check(cloud: Cloud, server: RangeServer) -> None:
    with pytest.raises(SourceGone, match="there is no such file") as caught:
        open_source(cloud.url + "x", Access(storage_options=cloud.options(server)))
    assert len(server.counts.urls) == 1
    assert "endpoint_url" in caught.value.remedy


@every_cloud
def test_a_server_that_fails_is_asked_again(cloud: Cloud, server: RangeServer, body: bytes) -> None:
    options = cloud.options(server)
    server.faults = Faults(statuses={1: 503, 2: 500}, short=frozenset({4}), cut=frozenset({5}))
    with open_source(cloud.url, Access(storage_options=options, network=SMALL)) as source:
        assert len(server.counts.gets) == 3
        assert bytes(source.read_many([Span(9000, 100)])[0]) == body[9000:9100]
    assert len(server.counts.gets) == 6
    server.faults = Faults(every=503)
    server.counts.urls.clear()
    with pytest.raises(SourceError, match="the server answered HTTP 503"):
        open_source(cloud.url, Access(storage_options=options))
    assert len(server.counts.urls) == 3


def test_what_botocore_has_repeated_is_not_repeated_once_more(server: RangeServer) -> None:
    options = {**AMAZON.options(server), "config_kwargs": {"retries": {"max_attempts": 1}}}
    server.faults = Faults(every=500)
    with pytest.raises(SourceError, match="HTTP 500"):
        open_source(AMAZON.url, Access(storage_options=options))
    assert len(server.counts.urls) == 2


def test_a_server_that_does_not_answer_is_given_up(server: RangeServer) -> None:
    for cloud in (AMAZON, GOOGLE, AZURE):
        options = cloud.options(server)
        open_source(
            cloud.url, Access(storage_options=options)
        ).close()  # what is needed once takes longer than the time that is given below
        server.set_faults(Faults(hang=frozenset({1, 2})))
        with pytest.raises(SourceError, match=r"no answer within 0\.2 seconds"):
            open_source(
                cloud.url, Access(storage_options=options, network=NetworkPolicy(timeout_seconds=0.2, attempts=2))
            )
        assert len(server.counts.gets) == 2


def test_requests_state_who_pays(server: RangeServer) -> None:
    with open_source(
        AMAZON.url, Access(storage_options={**AMAZON.options(server), "requester_pays": True}, network=SMALL)
    ) as source:
        source.read_many([Span(9000, 8)])
    assert [one.get("x-amz-request-payer") for one in server.counts.headers] == ["requester"] * 2
    with open_source(
        GOOGLE.url, Access(storage_options={**GOOGLE.options(server), "requester_pays": "mine"})
    ) as source:
        assert "userProject=mine" in server.counts.urls[-1]


def test_a_key_for_encrypted_objects_is_sent_along(server: RangeServer) -> None:
    encryption = {"SSECustomerKey": "0" * 32, "SSECustomerAlgorithm": "AES256"}
    with open_source(
        AMAZON.url, Access(storage_options={**AMAZON.options(server), "s3_additional_kwargs": encryption})
    ):
        assert server.counts.headers[-1]["x-amz-server-side-encryption-customer-algorithm"] == "AES256"


def test_a_version_of_an_object_is_what_is_asked_for(server: RangeServer, tmp_path: Path) -> None:
    options = AMAZON.options(server)
    translate(f"{AMAZON.url}?versionId=v7", tmp_path / "refs.json", storage_options=options)
    server.etag = '"new"'
    opened = xarray.open_dataset(tmp_path / "refs.json", engine="h5zarr", storage_options=options)
    with opened, pytest.raises(SourceChanged, match="its ETag"):
        opened.x.load()
    assert server.counts.urls == [f"{AMAZON.path}?versionId=v7"] * 2


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def test_google_is_read_through_an_emulator(body: bytes, tmp_path: Path) -> None:
    pytest.importorskip("gcsfs")
    emulator = pytest.importorskip("gcp_storage_emulator.server")
    port = free_port()
    started = emulator.create_server("127.0.0.1", port, in_memory=True, default_bucket="bucket")
    started.start()
    try:
        place = f"http://127.0.0.1:{port}"
        upload = f"{place}/upload/storage/v1/b/bucket/o?uploadType=media&name=d/plain.h5"
        headers = {"Content-Type": "application/octet-stream"}
        urllib.request.urlopen(urllib.request.Request(upload, data=body, headers=headers)).close()
        options = {"endpoint_url": place, "token": "anon"}
        done = translate(GOOGLE.url, tmp_path / "refs.json", storage_options=options)
        assert (done.log.requests, done.log.infos) == (1, 0)
        with xarray.open_dataset(tmp_path / "refs.json", engine="h5zarr", storage_options=options) as opened:
            assert np.array_equal(opened.x.values, np.arange(4000))
    finally:
        with suppress(OSError):
            started.stop()
