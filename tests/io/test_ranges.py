from __future__ import annotations

import os
import signal
import threading
import time
import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import pytest

from h5zarr.errors import SourceChanged, SourceError
from h5zarr.io.access import Access
from h5zarr.io.network import MIB, NetworkPolicy
from h5zarr.io.ranges import HeldRanges, RangeReader, open_ranges, read_one
from h5zarr.io.source import Identity, open_source
from h5zarr.io.span import Span
from tests.servers import Faults, is_closed_soon

SPANS = [(5 * MIB, 100), (10, 20), (3 * MIB, 3 * MIB), (7, 0), (10, 20), (8 * MIB - 1, 1), (15, 100)]
PATIENT = NetworkPolicy(timeout_seconds=0.5, attempts=3)


def read(reader: RangeReader, spans: Sequence[tuple[int, int]]) -> list[bytes]:
    """Return the bytes of each span; that each is delivered once is checked."""
    columns = np.array(spans, np.int64).reshape(-1, 2)
    found: list[bytes | None] = [None] * len(spans)

    def deliver(numbers: Sequence[int], buffers: Sequence[memoryview]) -> None:
        for number, buffer in zip(numbers, buffers, strict=True):
            assert found[number] is None
            found[number] = bytes(buffer)

    reader.read(columns[:, 0], columns[:, 1], deliver)
    assert None not in found
    return found  # type: ignore[return-value]


def expected(body: bytes, spans: Sequence[tuple[int, int]]) -> list[bytes]:
    return [body[address : address + nbytes] for address, nbytes in spans]


@pytest.fixture(params=["path", "file", "http", "memory", "zip", "simplecache"])
def any_url(request: pytest.FixtureRequest, body: bytes, tmp_path: Path) -> Iterator[str]:
    path = tmp_path / "file.h5"
    path.write_bytes(body)
    match request.param:
        case "path":
            yield str(path)
        case "file":
            yield f"file://{path}"
        case "http":
            yield str(request.getfixturevalue("serve")(body).url("/file.h5"))
        case "memory":
            fsspec.filesystem("memory").pipe_file("/ranges/file.h5", body)
            yield "memory://ranges/file.h5"
            fsspec.filesystem("memory").store.clear()
        case "zip":
            with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
                archive.writestr("file.h5", body)
            yield f"zip://file.h5::{tmp_path / 'archive.zip'}"
        case _:
            yield f"simplecache::{request.getfixturevalue('serve')(body).url('/file.h5')}"


def test_every_kind_of_url_gives_the_same_bytes(any_url: str, body: bytes) -> None:
    with open_source(any_url) as source:
        identity = source.identity
    reader = open_ranges(any_url, expected=identity)
    assert read(reader, SPANS) == expected(body, SPANS)
    assert read(reader, []) == []
    assert reader.read_whole() == body
    assert reader.nbytes == len(body)
    reader.close()
    assert read_one(reader, Span(3, 4)) == body[3:7]


def test_a_local_file_is_read_straight_to_where_it_belongs(body: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file.h5"
    path.write_bytes(body)
    out = bytearray(1000)
    assert open_ranges(str(path)).read_into(Span(77, 1000), memoryview(out))
    assert out == body[77:1077]
    with pytest.raises(SourceError, match="bytes 8388600-8389599: the file ends"):
        open_ranges(str(path)).read_into(Span(len(body) - 8, 1000), memoryview(out))


def test_what_is_held_needs_no_file(body: bytes) -> None:
    reader = HeldRanges("somewhere", memoryview(body))
    assert read(reader, SPANS) == expected(body, SPANS)
    with pytest.raises(SourceError, match="past the end"):
        read(reader, [(8 * MIB, 1)])


def test_those_who_ask_alike_share_a_reader_and_its_connections(serve: Any, body: bytes) -> None:
    url = serve(body).url("/file.h5")
    reader = open_ranges(url)
    assert open_ranges(url, Access()) is reader
    assert open_ranges(url, Access(storage_options={"headers": {"a": "b"}})) is not reader
    assert open_ranges(url, expected=Identity(nbytes=1)) is not reader


def test_chunks_that_lie_together_come_with_few_requests(serve: Any, body: bytes) -> None:
    server = serve(body)
    spans = [(n * 16384, 16384) for n in range(512)]
    assert read(open_ranges(server.url("/file.h5")), spans) == expected(body, spans)
    assert server.counts.gets == [(0, 4 * MIB - 1), (4 * MIB, 8 * MIB - 1)]
    assert server.counts.heads == 0


def test_a_large_chunk_comes_in_pieces_at_the_same_time(serve: Any, body: bytes) -> None:
    server = serve(body, latency=0.05)
    policy = NetworkPolicy(latency_seconds=0.01, bytes_per_second=100e6)
    assert read_one(open_ranges(server.url("/file.h5"), Access(network=policy)), Span(0, 8 * MIB)) == body
    assert sorted(server.counts.gets) == [(n * MIB, n * MIB + MIB - 1) for n in range(8)]
    assert server.counts.max_in_flight == 8


def test_requests_in_flight_are_bounded(serve: Any, body: bytes) -> None:
    server = serve(body, latency=0.02)
    spans = [(n * 160_000, 10) for n in range(50)]
    reader = open_ranges(server.url("/file.h5"), Access(network=NetworkPolicy(concurrency=7, latency_seconds=0)))
    assert read(reader, spans) == expected(body, spans)
    assert (len(server.counts.gets), server.counts.max_in_flight) == (50, 7)


def test_many_threads_may_read_at_once(serve: Any, body: bytes) -> None:
    reader = open_ranges(serve(body).url("/file.h5"))
    spans = [[(n * 1000 + m * 300_000, 50) for m in range(20)] for n in range(16)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda some: read(reader, some), spans)) == [expected(body, some) for some in spans]


def test_connections_are_closed(serve: Any, body: bytes) -> None:
    server = serve(body)
    reader = open_ranges(server.url("/file.h5"))
    read(reader, SPANS)
    session = reader._opened.filesystem._session  # type: ignore[attr-defined]
    assert not session.closed
    reader.close()
    assert is_closed_soon(session)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_process_that_was_forked_reads_on_its_own(serve: Any, body: bytes) -> None:
    reader = open_ranges(serve(body).url("/file.h5"))
    read(reader, SPANS)
    child = os.fork()
    if child == 0:
        os._exit(0 if read(reader, SPANS) == expected(body, SPANS) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert read(reader, SPANS) == expected(body, SPANS)


# --- faults


def test_passing_faults_are_survived(serve: Any, body: bytes) -> None:
    faults = Faults(statuses={1: 503, 2: 429, 3: 500}, cut=frozenset({4}), short=frozenset({5}), hang=frozenset({6}))
    server = serve(body, faults=faults)
    spans = [(n * 200_000, 1000) for n in range(12)]
    reader = open_ranges(server.url("/file.h5"), Access(network=PATIENT))
    assert read(reader, spans) == expected(body, spans)
    assert len(server.counts.gets) == 12 + 6


@pytest.mark.parametrize(
    ("faults", "what", "requests"),
    [
        (Faults(statuses=dict.fromkeys(range(1, 20), 503)), "the server answered HTTP 503", 3),
        (Faults(statuses={1: 403}), "access was refused", 1),
        (Faults(short=frozenset(range(1, 20))), "the response has 50 bytes instead of 100", 3),
        (Faults(cut=frozenset(range(1, 20))), "could not be read", 3),
        (Faults(hang=frozenset(range(1, 20))), "no answer within 0.5 seconds", 3),
        (Faults(vanish_after=0), "there is no such file", 1),
        (Faults(ignore_range=True), "the response has 8388608 bytes instead of 100", 1),
    ],
)
def test_a_fault_that_stays_names_url_and_range(
    serve: Any, body: bytes, faults: Faults, what: str, requests: int
) -> None:
    server = serve(body, faults=faults)
    reader = open_ranges(server.url("/file.h5") + "?token=secret", Access(network=PATIENT))
    with pytest.raises(SourceError) as caught:
        read(reader, [(1000, 100)])
    assert str(caught.value).startswith(f"{server.url('/file.h5')}: bytes 1000-1099: {what}")
    assert caught.value.remedy in caught.value.__notes__
    assert "secret" not in str(caught.value)
    assert len(server.counts.gets) == requests
    server.faults = Faults()
    assert read(reader, [(1000, 100)]) == [body[1000:1100]]


def test_the_whole_file_instead_of_a_range_is_cut_right(serve: Any, body: bytes) -> None:
    server = serve(body, faults=Faults(ignore_range=True))
    reader = open_ranges(server.url("/file.h5"), expected=Identity(nbytes=len(body)))
    assert read(reader, [(1000, 100)]) == [body[1000:1100]]


def test_what_lies_behind_the_end_is_not_taken_from_the_beginning(serve: Any, body: bytes) -> None:
    server = serve(body, faults=Faults(ignore_range=True))
    reader = open_ranges(server.url("/file.h5"), expected=Identity(nbytes=len(body)))
    with pytest.raises(SourceError, match="past the end"):
        read(reader, [(1000, len(body))])  # the whole file has as many bytes as are wanted
    assert not server.counts.gets


def test_no_memory_is_taken_for_bytes_that_no_file_has(serve: Any, body: bytes) -> None:
    reader = open_ranges(serve(body).url("/file.h5"))
    with pytest.raises(SourceError, match="past the end"):
        read(reader, [(0, 1 << 60)])


def test_no_more_is_fetched_after_an_interrupt(serve: Any, body: bytes) -> None:
    server = serve(body, latency=0.05)
    policy = NetworkPolicy(latency_seconds=0, concurrency=1)
    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        read(open_ranges(server.url("/file.h5"), Access(network=policy)), [(n * 10_000, 10) for n in range(800)])
    time.sleep(0.2)
    asked = len(server.counts.gets)
    time.sleep(0.3)
    assert len(server.counts.gets) == asked < 100


def test_the_pieces_of_a_large_chunk_end_with_the_first_that_fails(serve: Any, body: bytes) -> None:
    server = serve(body, latency=0.02, faults=Faults(statuses={1: 403}))
    policy = NetworkPolicy(latency_seconds=0.001, concurrency=1)
    with pytest.raises(SourceError, match="access was refused"):
        read_one(open_ranges(server.url("/file.h5"), Access(network=policy)), Span(0, 8 * MIB))
    time.sleep(0.3)
    assert len(server.counts.gets) <= 2


def test_one_failure_ends_the_others(serve: Any, body: bytes) -> None:
    faults = Faults(statuses={3: 403}, hang=frozenset(range(4, 100)))
    reader = open_ranges(
        serve(body, faults=faults).url("/file.h5"), Access(network=replace(PATIENT, timeout_seconds=60))
    )
    with pytest.raises(SourceError, match="access was refused"):
        read(reader, [(n * 200_000, 10) for n in range(30)])


@pytest.mark.parametrize("url", ["http", "path"])
def test_exceptions_of_deliver_are_passed_on(serve: Any, body: bytes, tmp_path: Path, url: str) -> None:
    path = tmp_path / "file.h5"
    path.write_bytes(body)
    reader = open_ranges(str(path) if url == "path" else serve(body).url("/file.h5"))
    spans = np.array([(n * MIB, MIB) for n in range(8)], np.int64)

    def fail(numbers: Sequence[int], buffers: Sequence[memoryview]) -> None:
        raise ZeroDivisionError("in the decoder")

    with pytest.raises(ZeroDivisionError, match="in the decoder"):
        reader.read(spans[:, 0], spans[:, 1], fail)
    assert read(reader, SPANS) == expected(body, SPANS)


# --- a source that has changed


def test_a_changed_source_is_noticed_at_the_first_read_and_not_asked_again(serve: Any, body: bytes) -> None:
    server = serve(body)
    with open_source(server.url("/file.h5")) as source:
        identity = source.identity
    server.counts.heads = 0
    reader = open_ranges(server.url("/file.h5"), expected=identity)
    for _ in range(3):
        assert read(reader, SPANS) == expected(body, SPANS)
    assert server.counts.heads == 0  # every answer says what it is of
    server.faults = Faults(hide_total=True)
    another = open_ranges(server.url("/file.h5"), Access(storage_options={"headers": {"z": "y"}}), expected=identity)
    for _ in range(3):
        assert read(another, SPANS) == expected(body, SPANS)
    assert server.counts.heads == 1  # and where it does not, it is asked once
    server.faults = Faults()
    server.etag = '"another"'
    fresh = open_ranges(server.url("/file.h5"), Access(storage_options={"headers": {"x": "y"}}), expected=identity)
    for _ in range(2):
        with pytest.raises(SourceChanged, match=r'has changed .* its ETag is no longer "abc123"'):
            read(fresh, SPANS)
    server.faults = Faults(ignore_condition=True)
    with pytest.raises(SourceChanged, match=r'has changed .* its ETag is "another"'):
        read(fresh, SPANS)
    assert read(open_ranges(server.url("/file.h5"), expected=None), SPANS) == expected(body, SPANS)


@pytest.mark.parametrize("ignore_condition", [False, True])
def test_a_source_that_is_replaced_between_two_requests_is_a_changed_one(
    serve: Any, body: bytes, ignore_condition: bool
) -> None:
    server = serve(body)
    with open_source(server.url("/file.h5")) as source:
        identity = source.identity
    spans = [(n * 200_000, 10) for n in range(20)]
    server.set_faults(Faults(etags={7: '"new"'}, ignore_condition=ignore_condition))
    with pytest.raises(SourceChanged, match=r'its ETag is (no longer "abc123"|"new")'):
        read(open_ranges(server.url("/file.h5"), expected=identity), spans)


def test_an_answer_of_another_range_is_not_taken(serve: Any, body: bytes) -> None:
    server = serve(body, faults=Faults(shifted=frozenset({1, 2})))
    reader = open_ranges(server.url("/file.h5"), Access(network=PATIENT))
    assert read(reader, [(1000, 100)]) == [body[1000:1100]]
    server.faults = Faults(shifted=frozenset(range(1, 99)))
    with pytest.raises(SourceError, match="the response starts at byte 1001 instead of 1000"):
        read(reader, [(1000, 100)])


def test_a_source_that_has_become_shorter_is_a_changed_one(serve: Any, body: bytes) -> None:
    server = serve(body)
    with open_source(server.url("/file.h5")) as source:
        identity = source.identity
    server.files["/file.h5"] = body[:1000]
    with pytest.raises(SourceChanged, match="it has 1000 bytes instead of 8388608") as caught:
        read(open_ranges(server.url("/file.h5"), expected=identity), SPANS)
    assert "verify=False" in caught.value.remedy


def test_a_local_file_that_was_written_again_is_a_changed_one(body: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file.h5"
    path.write_bytes(body)
    with open_source(str(path)) as source:
        identity = source.identity
    path.write_bytes(body)
    os.utime(path, ns=(1, 1))
    with pytest.raises(SourceChanged, match="modification time"):
        read(open_ranges(str(path), expected=identity), SPANS)
    assert read(open_ranges(str(path), expected=Identity(nbytes=len(body))), SPANS) == expected(body, SPANS)


def test_opening_a_replaced_local_file_reads_the_new_one(body: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file.h5"
    path.write_bytes(body)
    before = open_ranges(str(path))
    assert read(before, SPANS) == expected(body, SPANS)
    another = bytes(reversed(body))
    (tmp_path / "new.h5").write_bytes(another)
    os.replace(tmp_path / "new.h5", path)
    assert read(open_ranges(str(path)), SPANS) == expected(another, SPANS)
    assert read(before, SPANS) == expected(body, SPANS)


def test_no_reader_leaves_a_thread_of_its_own(serve: Any, body: bytes) -> None:
    before = {thread.name for thread in threading.enumerate()}
    reader = open_ranges(serve(body).url("/file.h5"))
    read(reader, SPANS)
    new = {thread.name for thread in threading.enumerate()} - before
    assert all(name.startswith(("h5zarr", "fsspecIO", "range-server")) for name in new)


def test_a_whole_file_that_is_as_long_as_the_range_is_not_taken_for_it(serve: Any, body: bytes) -> None:
    server = serve(body[:100], faults=Faults(ignore_range=True))
    with pytest.raises(SourceError, match="the response starts at byte 0 instead of 50"):
        read(open_ranges(server.url("/file.h5"), Access(network=PATIENT)), [(50, 100)])
