"""A server that hangs while it is listed or written to costs the promised time, not that of the client library."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fsspec.asyn import AsyncFileSystem

import h5zarr
from h5zarr.cli import main
from h5zarr.errors import OutputTimeout, SourceTimeout
from h5zarr.io.filesystems import shared_filesystem
from h5zarr.io.patience import call_patiently, finish_within, patience
from tests.collections_of_files import SAMPLES
from tests.commands.index.jobs import unmarked
from tests.s3 import KEYS
from tests.servers import SilentServer

OCEAN = str(SAMPLES / "ocean.nc")
SHORT = {"timeout_seconds": 0.5}
LATER = "  Try again, or allow more time: --network timeout_seconds=1."
_ENDLESS = 30  # seconds; botocore waits a minute for each of its attempts


@pytest.fixture
def silent() -> Iterator[SilentServer]:
    with SilentServer() as server:
        yield server


def options_for(server: SilentServer) -> dict[str, Any]:
    return {"endpoint_url": server.endpoint, **KEYS}


def words(name: str, server: SilentServer) -> list[str]:
    """Return the options of a command that has S3 on this server."""
    given = [f"{key}={value}" for key, value in options_for(server).items()]
    return [*(word for one in given for word in (name, one)), "--network", "timeout_seconds=0.5"]


READING = {
    "index": ["index", "s3://bucket/*.nc", "OUT"],
    "index a directory": ["index", "s3://bucket/year/", "OUT"],
    "check": ["check", "s3://bucket/*.nc"],
    "status": ["status", "s3://bucket/refs"],
    "convert": ["convert", "icechunk+s3://bucket/refs", "OUT.json"],
}


@pytest.mark.parametrize("command", READING)
def test_listing_a_server_that_hangs_takes_the_promised_time(
    command: str, silent: SilentServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [word.replace("OUT", str(tmp_path / "out")) for word in READING[command]]
    region = ["--storage-options", "region=any"] if "icechunk" in given[1] else []
    began = time.monotonic()
    assert main([*given, *words("--storage-options", silent), *region]) == 2
    assert time.monotonic() - began < _ENDLESS
    assert silent.connection_count
    said = unmarked(capsys.readouterr().err).replace("/_h5zarr/lease.json:", ":")  # what `status` reads first
    assert said == f"h5zarr: {given[1]}: no answer within 0.5 seconds\n{LATER}\n"


WRITING = {
    "JSON": ["translate", OCEAN, "s3://bucket/ocean.json"],
    "JSON, overwriting": ["translate", OCEAN, "s3://bucket/ocean.json", "--overwrite"],
    "Parquet": ["translate", OCEAN, "s3://bucket/ocean.parquet"],
    "Icechunk": ["translate", OCEAN, "icechunk+s3://bucket/ocean", "--output-options", "region=any"],
    "Icechunk, overwriting": [
        *("translate", OCEAN, "icechunk+s3://bucket/ocean"),
        *("--output-options", "region=any", "--overwrite"),
    ],
    "convert": ["convert", "REFS.json", "s3://bucket/ocean.json"],
    "index": ["index", OCEAN, "s3://bucket/refs", "--workers", "1"],
}


@pytest.mark.parametrize("command", WRITING)
def test_writing_to_a_server_that_hangs_takes_the_promised_time(
    command: str, silent: SilentServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    h5zarr.translate(OCEAN, tmp_path / "refs.json")
    given = [word.replace("REFS", str(tmp_path / "refs")) for word in WRITING[command]]
    began = time.monotonic()
    assert main([*given, *words("--output-options", silent)]) == 2
    assert time.monotonic() - began < _ENDLESS
    assert silent.connection_count
    assert unmarked(capsys.readouterr().err) == f"h5zarr: {given[2]}: no answer within 0.5 seconds\n{LATER}\n"


@pytest.mark.parametrize("name", ["ocean.json", "ocean.parquet"])
def test_an_output_that_is_not_answered_for_is_a_timeout_error(name: str, silent: SilentServer) -> None:
    with pytest.raises(OutputTimeout, match=r"no answer within 0\.5 seconds") as caught:
        h5zarr.translate(OCEAN, f"s3://bucket/{name}", output_options=options_for(silent), network=SHORT)
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.remedy == "Try again, or allow more time: network={'timeout_seconds': 1}."


def test_a_bucket_that_is_not_listed_is_a_timeout_error(silent: SilentServer, tmp_path: Path) -> None:
    with pytest.raises(SourceTimeout, match=r"s3://bucket/\*\.nc: no answer within 0\.5 seconds"):
        h5zarr.index("s3://bucket/*.nc", tmp_path / "out", storage_options=options_for(silent), network=SHORT)


class Pages:
    """An S3 server that lists a bucket in pages of one object, each of them after a pause; it hangs after `hang_after`.

    PUT requests are never answered.
    """

    def __init__(self, count: int, pause: float, hang_after: int) -> None:
        self.count, self.pause, self.hang_after = count, pause, hang_after
        self.asked = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Pages:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _start(self) -> None:
        application = web.Application()
        application.router.add_get("/{path:.*}", self._list)
        application.router.add_put("/{path:.*}", self._hang)
        application.on_shutdown.append(self._stop)
        self._stopping = asyncio.Event()
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.endpoint = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _stop(self, application: web.Application) -> None:
        self._stopping.set()

    async def _hang(self, request: web.Request) -> web.Response:
        self.asked += 1
        await self._stopping.wait()
        return web.Response(status=503)

    async def _list(self, request: web.Request) -> web.Response:
        self.asked += 1
        number = int(request.query.get("continuation-token", 0))
        if number >= self.hang_after:
            await self._stopping.wait()
        await asyncio.sleep(self.pause)
        is_last = number + 1 == self.count
        more = "" if is_last else f"<NextContinuationToken>{number + 1}</NextContinuationToken>"
        return web.Response(
            content_type="application/xml",
            text=f"<ListBucketResult><IsTruncated>{str(not is_last).lower()}</IsTruncated>{more}"
            f"<Contents><Key>year/{number}.nc</Key><Size>9</Size><ETag>x</ETag>"
            "<LastModified>2020-01-01T00:00:00Z</LastModified></Contents></ListBucketResult>",
        )


def list_pages(server: Pages, seconds: float) -> list[str]:
    filesystem, path = shared_filesystem("s3://bucket/year", {"endpoint_url": server.endpoint, **KEYS})
    found: list[str] = call_patiently(filesystem, "find", path, seconds=seconds)
    return found


def test_a_long_listing_may_take_longer_than_one_response() -> None:
    with Pages(count=6, pause=0.5, hang_after=99) as server:
        began = time.monotonic()
        assert len(list_pages(server, seconds=2.5)) == 6
        assert time.monotonic() - began > 2.5


def test_a_listing_that_stops_in_the_middle_is_given_up() -> None:
    with Pages(count=6, pause=0, hang_after=99) as server:
        list_pages(server, seconds=60)  # the first client takes a while to start
        shared_filesystem("s3://bucket/year", {"endpoint_url": server.endpoint, **KEYS})[0].invalidate_cache()
        server.hang_after, server.asked = 3, 0
        with pytest.raises(TimeoutError):
            list_pages(server, seconds=1)
        assert server.asked == 4


def test_an_upload_that_is_not_answered_is_given_up() -> None:
    with Pages(count=1, pause=0, hang_after=99) as server:
        given = {"endpoint_url": server.endpoint, **KEYS}
        with pytest.raises(OutputTimeout, match=r"s3://bucket/a\.json: no answer within 1 second\n"):
            h5zarr.translate(
                OCEAN, "s3://bucket/a.json", output_options=given, network={"timeout_seconds": 1}, overwrite=True
            )
        assert server.asked > 1


class Waiting(AsyncFileSystem):  # type: ignore[misc]
    """A file system whose listing takes several waits, of which the last may never end."""

    cachable = False

    async def _find(self, path: str, *, waits: int, is_endless: bool = False, **_: Any) -> list[str]:
        for _ in range(waits):
            await asyncio.sleep(0.4)
        if is_endless:
            await asyncio.Event().wait()
        return [path]

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        raise FileNotFoundError(path)


def test_any_file_system_may_take_long_as_long_as_it_goes_on() -> None:
    assert call_patiently(Waiting(), "find", "a", waits=6, seconds=2) == ["a"]
    with pytest.raises(TimeoutError):
        call_patiently(Waiting(), "find", "a", waits=1, is_endless=True, seconds=1)
    with pytest.raises(FileNotFoundError):
        call_patiently(Waiting(), "info", "a", seconds=1)


def test_uploads_have_a_second_more_for_each_megabyte() -> None:
    assert patience(60) == patience(60, 999_999) == 60
    assert patience(60, 2_500_000) == 62


def test_a_call_that_cannot_be_interrupted_is_left_behind() -> None:
    ended = threading.Event()
    with pytest.raises(TimeoutError):
        finish_within(ended.wait, seconds=0.1)
    ended.set()
    assert finish_within(lambda: 7, seconds=30) == 7
    with pytest.raises(KeyError):
        finish_within(lambda: {}["x"], seconds=30)
