"""Secrets are planted wherever people put them, and looked for in all that h5zarr says and writes: they are nowhere."""

from __future__ import annotations

import json
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import xarray
import zarr

import h5zarr
from h5zarr.cli import main
from h5zarr.cli.progress import Progress
from h5zarr.errors import H5ZarrError
from h5zarr.io import fetch
from h5zarr.io.fetch_policy import FetchPolicy
from h5zarr.io.policy import ReadPolicy
from h5zarr.io.source import open_source
from h5zarr.translating import Options
from tests.made_files import make_ocean
from tests.servers import ETAG, Counts, Faults, RangeServer

pytestmark = pytest.mark.filterwarnings(
    "ignore:datetime.datetime.utcnow:DeprecationWarning", "ignore:unclosed:ResourceWarning"
)
SECRET = "hunter2Hunter2"
BASE64 = "aHVudGVyMkh1bnRlcjI="  # the same, as it stands in a key of Azure
SHORT = FetchPolicy(timeout_seconds=0.3, attempts=1)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a secret is: the URL and the storage options have it, for a server at `{host}`, or the environment."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    package: str = "aiohttp"


ENDPOINT = {"endpoint_url": "http://{host}", "config_kwargs": {"retries": {"max_attempts": 0}}}
PLACES = {
    "user": Place(url=f"http://me:{SECRET}@{{host}}/bucket/ocean.h5"),
    "amazon": Place(
        url=f"http://{{host}}/bucket/ocean.h5?X-Amz-Credential={SECRET}%2F20260101&X-Amz-Signature={SECRET}"
    ),
    "sas": Place(url=f"http://{{host}}/bucket/ocean.h5?sv=2024-11-04&se=2030&sp=r&sig={SECRET}%3D"),
    "google": Place(url=f"http://{{host}}/bucket/ocean.h5?X-Goog-Expires=60&X-Goog-Signature={SECRET}"),
    "header": Place(url="http://{host}/bucket/ocean.h5", options={"headers": {"Authorization": f"Bearer {SECRET}"}}),
    "s3": Place(
        url="s3://bucket/ocean.h5",
        options={**ENDPOINT, "key": f"AKIA{SECRET}", "secret": SECRET, "token": SECRET},
        package="s3fs",
    ),
    "s3 environment": Place(
        url="s3://bucket/ocean.h5",
        options=ENDPOINT,
        environment={"AWS_ACCESS_KEY_ID": f"AKIA{SECRET}", "AWS_SECRET_ACCESS_KEY": SECRET},
        package="s3fs",
    ),
    "gs": Place(
        url="gs://bucket/ocean.h5",
        options={"endpoint_url": "http://{host}", "token": "anon", "session_kwargs": {"headers": {"X-Key": SECRET}}},
        package="gcsfs",
    ),
    "az": Place(
        url="az://bucket/ocean.h5",
        options={"connection_string": f"AccountName=acc;AccountKey={BASE64};BlobEndpoint=http://{{host}}/acc;"},
        package="adlfs",
    ),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return make_ocean(tmp_path_factory.mktemp("secrets") / "ocean.h5").read_bytes()


@pytest.fixture(scope="module")
def started() -> Iterator[RangeServer]:
    with RangeServer({}) as server:
        yield server


@pytest.fixture
def server(started: RangeServer, good: bytes, monkeypatch: pytest.MonkeyPatch) -> RangeServer:
    """The server, as if it had just been started, with a good file."""
    monkeypatch.setattr(fetch, "_FIRST_PAUSE_SECONDS", 0.001)
    started.faults, started.counts, started.etag = Faults(), Counts(), ETAG
    serve(started, good)
    return started


def serve(server: RangeServer, body: bytes) -> None:
    paths = ("/bucket/ocean.h5", "/acc/bucket/ocean.h5", "/download/storage/v1/b/bucket/o/ocean.h5")
    server.files = dict.fromkeys(paths, body)


@dataclass(frozen=True)
class Planted:
    """A place with a real server in it, and all that was said and written so far."""

    url: str
    options: dict[str, Any]
    folder: Path
    said: list[str] = field(default_factory=list)

    def attempt(self, act: Callable[[], Any]) -> None:
        """Do something that may fail, and keep what it says."""
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                act()
            except Exception as error:
                self.said.extend(words_of(error))
        self.said.extend(str(one.message) for one in warned)

    def run(self, *arguments: str) -> None:
        """Run a command with the storage options."""
        texts = [f"{name}={json.dumps(value)}" for name, value in self.options.items()]
        main([*arguments, *(word for text in texts for word in ("--storage-option", text))])

    def texts(self) -> list[str]:
        """Return all that was said, and every file that was written."""
        return self.said + [path.read_text() for path in self.folder.iterdir() if path.is_file()]


def words_of(error: BaseException) -> Iterator[str]:
    """Yield all that an error, and those that it carries along, say to whoever looks."""
    seen: list[BaseException | None] = [None]
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one in seen or one is None:
            continue
        seen.append(one)
        yield from (str(one), repr(one), repr(one.args), repr(vars(one)))
        yield "".join(traceback.format_exception(one))
        waiting += [one.__cause__, one.__context__]


@pytest.fixture(params=PLACES)
def planted(
    request: pytest.FixtureRequest, server: RangeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Planted:
    place = PLACES[request.param]
    pytest.importorskip(place.package)
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    if place.package == "s3fs":
        import s3fs

        s3fs.S3FileSystem.clear_instance_cache()
    host = f"127.0.0.1:{server.port}"
    folder = tmp_path / "written"
    folder.mkdir()
    options = json.loads(json.dumps(dict(place.options)).replace("{host}", host))
    return Planted(place.url.replace("{host}", host), options, folder)


def use_everything(planted: Planted) -> None:
    """Use the file by every way that there is, and keep what is said."""
    out, report = str(planted.folder / "refs.json"), str(planted.folder / "report.json")
    planted.run("translate", planted.url, out, "--report", report)
    planted.run("translate", planted.url, f"{out}.strict", "--strict", "--report", f"{report}.strict")
    planted.run("inspect", planted.url)
    planted.run("inspect", planted.url, "--json")
    chosen = {"storage_options": planted.options, "policy": SHORT}
    planted.attempt(lambda: look_at(h5zarr.translate(planted.url, storage_options=planted.options), planted.said))
    planted.attempt(lambda: look_at(h5zarr.scan(planted.url, planted.options), planted.said))
    planted.attempt(lambda: look_at(open_source(planted.url, planted.options), planted.said))
    planted.attempt(lambda: read_store(h5zarr.open_store(planted.url, **chosen), planted.said))
    planted.attempt(lambda: read_dataset(planted.url, chosen, planted.said))
    if Path(out).exists():
        planted.attempt(lambda: read_store(h5zarr.open_store(out, **chosen), planted.said))
        planted.attempt(lambda: read_dataset(out, chosen, planted.said))


def look_at(thing: Any, said: list[str]) -> None:
    said.extend((repr(thing), str(thing)))


def read_store(store: Any, said: list[str]) -> None:
    opened = store._opened
    for thing in (store, opened, opened.sources, *opened.sources._readers.values()):
        look_at(thing, said)
    try:
        said.extend(str(opened.sources.reader(number).url) for number in range(len(opened.sources.urls)))
        zarr.open_group(store, mode="r")["grid/temp"][...]
    finally:
        store.close()


def read_dataset(place: str, chosen: dict[str, Any], said: list[str]) -> None:
    with xarray.open_dataset(place, engine="h5zarr", group="grid", **chosen) as opened:
        look_at(opened, said)
        assert opened.encoding["source"]
        said.append(repr(opened.encoding) + repr(opened.temp.encoding) + repr(opened.temp.variable._data))
        opened.load()


def nowhere(planted: Planted, captured: Any, records: list[logging.LogRecord]) -> None:
    """Fail where a secret is in anything that was said or written."""
    formatted = [logging.Formatter().format(one) for one in records if one.name.partition(".")[0] == "h5zarr"]
    for text in [*planted.texts(), captured.out, captured.err, *formatted]:
        assert SECRET not in text
        assert BASE64.rstrip("=") not in text


CASES: dict[str, Callable[[RangeServer, bytes], None]] = {
    "success": lambda server, good: None,
    "refused": lambda server, good: setattr(server, "faults", Faults(every=403)),
    "missing": lambda server, good: setattr(server, "faults", Faults(every=404)),
    "failing": lambda server, good: setattr(server, "faults", Faults(every=500)),
    "truncated": lambda server, good: serve(server, good[: len(good) // 3]),
    "no HDF5": lambda server, good: serve(server, b"this is some text, and no file of ours. " * 100),
}


@pytest.mark.parametrize("case", CASES)
def test_secrets_are_nowhere(
    case: str,
    planted: Planted,
    server: RangeServer,
    good: bytes,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="h5zarr")
    CASES[case](server, good)
    use_everything(planted)
    assert len(planted.said) > 4
    assert (planted.folder / "refs.json").exists() == (case in ("success", "truncated"))
    assert server.counts.urls
    nowhere(planted, capfd.readouterr(), caplog.records)


def test_secrets_are_nowhere_when_a_file_changes_or_time_runs_out(
    planted: Planted, server: RangeServer, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="h5zarr")
    out = str(planted.folder / "refs.json")
    planted.run("translate", planted.url, out)
    chosen = {"storage_options": planted.options, "policy": SHORT}
    server.etag = '"new"'
    planted.attempt(lambda: read_store(h5zarr.open_store(out, **chosen), planted.said))
    planted.attempt(lambda: read_dataset(out, chosen, planted.said))
    assert sum("the file has changed" in text for text in planted.said) >= 2
    server.etag, server.faults, server.counts.gets = ETAG, Faults(hang=frozenset(range(1, 9))), []
    planted.attempt(lambda: read_store(h5zarr.open_store(out, **chosen), planted.said))
    patience = ReadPolicy(timeout_seconds=0.3, attempts=1)
    planted.attempt(lambda: open_source(planted.url, planted.options, patience))
    assert sum("no answer within 0.3 seconds" in text for text in planted.said) >= 2
    server.faults = Faults(vanish_after=0)
    planted.attempt(lambda: read_store(h5zarr.open_store(out, **chosen), planted.said))
    nowhere(planted, capfd.readouterr(), caplog.records)


@pytest.mark.parametrize("name", ["user", "amazon", "sas", "google", "header"])
def test_the_secret_is_what_the_server_gets(name: str, server: RangeServer) -> None:
    place = PLACES[name]
    h5zarr.translate(place.url.replace("{host}", f"127.0.0.1:{server.port}"), storage_options=place.options)
    sent = server.counts.urls[0] + repr(server.counts.headers[0])
    assert SECRET in sent or "bWU6aHVudGVyMkh1bnRlcjI" in sent


@pytest.mark.parametrize(
    "options",
    [
        {"nonsense": SECRET},
        {"key": {"secret": SECRET}},
        {"client_kwargs": SECRET},
        {"config_kwargs": {SECRET: 1}},
        {"endpoint_url": f"not a url {SECRET}"},
        {"profile": SECRET},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_that_are_wrong_are_not_quoted(options: dict[str, Any]) -> None:
    pytest.importorskip("s3fs")
    for act in (open_source, lambda url, chosen: h5zarr.open_store(url, storage_options=chosen)):
        with pytest.raises(H5ZarrError) as caught:
            act("s3://bucket/ocean.json", options)
        assert not any(SECRET in text for text in words_of(caught.value))


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("gs://bucket/ocean.h5", {"token": f"/no/such/{SECRET}"}),
        ("az://bucket/ocean.h5", {"connection_string": f"AccountKey={SECRET}"}),
        ("az://bucket/ocean.h5", {"account_name": "acc", "account_key": SECRET, "account_host": "127.0.0.1:1"}),
        ("az://bucket/ocean.h5", {"account_name": "acc", "sas_token": f"sig={SECRET}", "account_host": "127.0.0.1:1"}),
    ],
)
def test_credentials_that_are_wrong_are_not_quoted(
    url: str, options: dict[str, Any], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gcsfs" if url.startswith("gs") else "adlfs")
    monkeypatch.setattr(fetch, "_FIRST_PAUSE_SECONDS", 0.001)
    with pytest.raises(H5ZarrError) as caught:
        open_source(url, options)
    assert not any(SECRET in text for text in words_of(caught.value))
    assert SECRET not in "".join(capfd.readouterr())


def test_output_and_target_do_not_give_secrets_away(
    tmp_path: Path, good: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "ocean.h5"
    source.write_bytes(good)
    far = f"http://me:{SECRET}@127.0.0.1:1/refs.json?sig={SECRET}"
    main(["translate", str(source), far, "--output-option", f"token={SECRET}"])
    main(["translate", str(source), far, "--report", far])
    main(["translate", str(source), str(tmp_path / "refs.json"), "--target-url", far, "--report", far])
    captured = capsys.readouterr()
    references = (tmp_path / "refs.json").read_text()
    assert "http://127.0.0.1:1/refs.json" in references
    shown = repr(Options(target_url=far)) + Progress(far, is_shown=False).line()
    assert SECRET not in captured.out + captured.err + references + shown


@pytest.mark.filterwarnings("ignore::h5zarr.errors.ProblemWarning", "ignore:Numcodecs codecs are not in the Zarr")
def test_references_of_others_that_have_secrets_in_them_do_not_show_them(
    server: RangeServer, good: bytes, tmp_path: Path
) -> None:
    source = tmp_path / "ocean.h5"
    source.write_bytes(good)
    h5zarr.translate(source, tmp_path / "refs.json")
    signed = f"{server.url('/bucket/ocean.h5')}?X-Amz-Signature={SECRET}"
    changed = tmp_path / "signed.json"
    changed.write_text((tmp_path / "refs.json").read_text().replace(str(source), signed))
    said: list[str] = []
    read_store(h5zarr.open_store(changed), said)
    read_dataset(str(changed), {"decode_cf": False}, said)
    assert SECRET in server.counts.urls[0]
    assert not any(SECRET in text for text in said)
