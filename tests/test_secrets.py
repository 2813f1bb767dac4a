"""Secrets are planted wherever people put them, and looked for in all that h5zarr says and writes: they are nowhere."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import h5zarr
from h5zarr.cli import main
from h5zarr.cli.progress import Progress
from h5zarr.commands.translate.options import Options
from h5zarr.errors import H5ZarrError
from h5zarr.io import fetch
from h5zarr.io.access import Access
from h5zarr.io.network import NetworkPolicy
from h5zarr.io.source import open_source
from tests.made_files import make_ocean
from tests.planted import PLACES, SECRET, Planted, look_at, nowhere, read_dataset, read_store, words_of
from tests.servers import ETAG, Counts, Faults, RangeServer

pytestmark = pytest.mark.filterwarnings(
    "ignore:datetime.datetime.utcnow:DeprecationWarning", "ignore:unclosed:ResourceWarning"
)
SHORT = {"timeout_seconds": 0.3, "attempts": 1}


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


@pytest.fixture(params=PLACES)
def planted(
    request: pytest.FixtureRequest, server: RangeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Planted:
    place = PLACES[request.param]
    pytest.importorskip(place.package)
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    if place.environment:
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
    chosen = {"storage_options": planted.options, "network": SHORT}
    planted.attempt(lambda: look_at(h5zarr.translate(planted.url, storage_options=planted.options), planted.said))
    planted.attempt(lambda: look_at(h5zarr.scan(planted.url, planted.options), planted.said))
    planted.attempt(lambda: look_at(open_source(planted.url, Access(storage_options=planted.options)), planted.said))
    planted.attempt(lambda: read_store(h5zarr.open_store(planted.url, **chosen), planted.said))
    planted.attempt(lambda: read_dataset(planted.url, chosen, planted.said))
    if Path(out).exists():
        planted.attempt(lambda: read_store(h5zarr.open_store(out, **chosen), planted.said))
        planted.attempt(lambda: read_dataset(out, chosen, planted.said))


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
    chosen = {"storage_options": planted.options, "network": SHORT}
    server.etag = '"new"'
    planted.attempt(lambda: read_store(h5zarr.open_store(out, **chosen), planted.said))
    planted.attempt(lambda: read_dataset(out, chosen, planted.said))
    assert sum("the file has changed" in text for text in planted.said) >= 2
    server.etag = ETAG
    server.set_faults(Faults(hang=frozenset(range(1, 9))))
    planted.attempt(lambda: read_store(h5zarr.open_store(out, **chosen), planted.said))
    patience = NetworkPolicy(timeout_seconds=0.3, attempts=1)
    planted.attempt(lambda: open_source(planted.url, Access(storage_options=planted.options, network=patience)))
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
    for act in (
        lambda url, chosen: h5zarr.scan(url, storage_options=chosen),
        lambda url, chosen: h5zarr.open_store(url, storage_options=chosen),
    ):
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
        open_source(url, Access(storage_options=options))
    assert not any(SECRET in text for text in words_of(caught.value))
    assert SECRET not in "".join(capfd.readouterr())


def test_output_and_target_do_not_give_secrets_away(
    tmp_path: Path, good: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "ocean.h5"
    source.write_bytes(good)
    far = f"http://me:{SECRET}@127.0.0.1:1/refs.json?sig={SECRET}"
    main(["translate", str(source), far, "--output-options", f"token={SECRET}"])
    main(["translate", str(source), far, "--report", far])
    for more in ([], ["--report", far]):
        main(["translate", str(source), str(tmp_path / "refs.json"), "--target-url", far, *more])
    captured = capsys.readouterr()
    references = (tmp_path / "refs.json").read_text()
    assert "http://127.0.0.1:1/refs.json" in references
    shown = repr(Options(target_url=far)) + Progress(far, is_shown=False).line()
    assert SECRET not in captured.out + captured.err + references + shown


@pytest.mark.filterwarnings("ignore::h5zarr.errors.ProblemWarning", "ignore:Numcodecs codecs are not in the Zarr")
def test_references_of_others_that_have_secrets_in_them_do_not_show_them(server: RangeServer, tmp_path: Path) -> None:
    source = server.url("/bucket/ocean.h5")
    h5zarr.translate(source, tmp_path / "refs.json")
    server.counts.urls.clear()
    signed = f"{source}?X-Amz-Signature={SECRET}"
    changed = tmp_path / "signed.json"
    changed.write_text((tmp_path / "refs.json").read_text().replace(source, signed))
    said: list[str] = []
    read_store(h5zarr.open_store(changed), said)
    read_dataset(str(changed), {"decode_cf": False}, said)
    assert SECRET in server.counts.urls[0]
    assert not any(SECRET in text for text in said)
