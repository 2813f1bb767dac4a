"""Metrics are pushed to a gateway at the end of a run. A push that fails changes nothing else."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from base64 import b64decode, urlsafe_b64decode
from pathlib import Path
from urllib.error import URLError

import pytest

from h5zarr.cli import main
from h5zarr.commands.catalog.place import Place
from h5zarr.commands.index.lease import Lease
from h5zarr.commands.index.metrics import Gauge, Sample, skipped_gauge
from h5zarr.commands.index.pushing import PushFailed, Receiver, _describe, push_to_gateway, refused, within
from tests.collectors import MetricsServer
from tests.commands.index.jobs import unmarked
from tests.test_cli_index import parse_metrics, without_index

SECRET = "hunter2"
pytestmark = pytest.mark.usefixtures("threads_for_command")


def group_of(path: str) -> str:
    """Return the label `index` in the path of a push."""
    job, encoded = path.removeprefix("/metrics/job/").split("/index@base64/")
    assert job == "h5zarr_index"
    return urlsafe_b64decode(encoded).decode()


def test_the_same_metrics_are_pushed_that_are_written(data: Path) -> None:
    out, metrics = data.parent / "refs", data.parent / "run.prom"
    with MetricsServer() as server:
        words = ["--metrics", str(metrics), "--push-metrics", f"http://{server.address}/"]
        assert main(["index", str(data), str(out), *words]) == 0
    (push,) = server.received
    assert (push.method, group_of(push.path)) == ("PUT", str(out))
    assert push.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "authorization" not in push.headers
    assert push.content == metrics.read_bytes()


def test_the_group_is_the_label_of_the_job(data: Path) -> None:
    with MetricsServer(202) as server:
        url = f"http://{server.address}/below/this"
        words = ["index", str(data), str(data.parent / "refs"), "--push-metrics", url, "--job", "Ozean/ä"]
        assert main(words) == 0
    (push,) = server.received
    assert group_of(push.path.removeprefix("/below/this")) == "Ozean/ä"


@pytest.mark.usefixtures("quick_lease")
def test_a_job_that_could_not_run_keeps_the_counts_of_the_last_run(data: Path) -> None:
    with MetricsServer() as server:
        words = [str(data.parent / "refs"), "--push-metrics", f"http://{server.address}", "--job", "ocean"]
        assert main(["index", str(data / "*.zip"), *words]) == 2
        with Lease(Place(data.parent / "refs")):
            assert main(["index", str(data), *words]) == 0
    failed, skipped = server.received
    assert (failed.method, skipped.method) == ("POST", "POST")  # other metrics of the group stay
    assert without_index(parse_metrics(failed.content.decode()))["h5zarr_index_has_run"] == 0
    assert parse_metrics(skipped.content.decode()) == {'h5zarr_index_skipped{index="ocean"}': 1}


def test_a_dry_run_pushes_nothing(data: Path) -> None:
    with MetricsServer() as server:
        words = ["--dry-run", "--push-metrics", f"http://{server.address}"]
        assert main(["index", str(data), str(data.parent / "refs"), *words]) == 0
    assert server.received == []


def test_a_password_is_sent_and_never_shown(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    report = data.parent / "run.json"
    for status in (200, 401):
        with MetricsServer(status) as server:
            url = f"http://me%40home:{SECRET}%2F@{server.address}"
            words = ["index", str(data), str(data.parent / "refs"), "--report", str(report), "--push-metrics", url]
            assert main(words) == 0
        (push,) = server.received
        assert b64decode(push.headers["authorization"].removeprefix("Basic ")).decode() == f"me@home:{SECRET}/"
        said = "".join(capfd.readouterr())
        assert SECRET not in said + report.read_text() + push.path
        assert ("--push-metrics failed" in said) == (status == 401)
    assert f"--push-metrics failed: http://{server.address}: the server answered with status 401\n" in said
    assert "Check the user name and the password in the URL" in said
    assert SECRET not in repr(Receiver.parse(f"https://me:{SECRET}@host"))


@pytest.mark.parametrize(
    "url",
    [
        "host:9091",
        "ftp://host",
        "http://",
        "",
        f"http://me:{SECRET}/x@host",
        f"http://me/{SECRET}@host",
        f"http://me:{SECRET}?x@host",
    ],
)
def test_a_url_that_is_none_is_refused_without_showing_it(
    url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", str(tmp_path), str(tmp_path / "refs"), "--push-metrics", url]) == 2
    said = capfd.readouterr().err
    assert "argument --push-metrics: expected a URL such as http://pushgateway:9091" in said
    assert SECRET not in said


def test_urls_keep_their_port_and_lose_their_query() -> None:
    assert Receiver.parse("https://host/path/?token=x#y").url == "https://host/path"
    assert Receiver.parse("http://me@[::1]:9091").url == "http://[::1]:9091"


@pytest.mark.parametrize("as_json", [False, True])
def test_a_push_that_fails_is_a_warning_and_leaves_the_exit_code(
    as_json: bool, data: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with MetricsServer() as server:
        address = server.address  # nobody listens there any more
    words = ["--push-metrics", f"http://{address}", *(["--log-format", "json"] if as_json else [])]
    assert main(["index", str(data), str(data.parent / "refs"), *words]) == 0
    (data / "broken.nc").write_bytes(b"<html>")
    assert main(["index", str(data), str(data.parent / "refs"), *words, "--quiet"]) == 1
    lines = capfd.readouterr().err.splitlines()
    message = f"--push-metrics failed: http://{address}: Connection refused"
    remedy = "Check its address, and that it is running and reachable from here."
    if as_json:
        warnings = [json.loads(line) for line in lines if '"warning"' in line]
        assert [(one["message"], one["remedy"]) for one in warnings] == [(message, remedy)] * 2
    else:
        assert unmarked("\n".join(lines)).count(f"h5zarr: {message}\n  {remedy}") == 2


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (403, "Check the user name"),
        (404, "is that of the right server"),
        (307, "Redirects are not followed"),
        (503, ""),
    ],
)
def test_answers_other_than_success_are_failures(status: int, remedy: str) -> None:
    with MetricsServer() as other, MetricsServer(status, location=f"http://{other.address}/") as server:
        with pytest.raises(PushFailed, match=f"the server answered with status {status}") as caught:
            push_to_gateway(
                Receiver.parse(f"http://{server.address}"), [skipped_gauge()], "x", keep_others=True, seconds=10
            )
        assert remedy in caught.value.remedy
        assert other.received == []


def test_a_server_that_does_not_answer_is_given_up_in_time(
    data: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("h5zarr.cli.index_results._PATIENCE", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert main(["index", str(data), str(data.parent / "refs"), "--push-metrics", url]) == 0
    said = capfd.readouterr().err
    assert f"--push-metrics failed: {url}: no answer" in said


def test_a_deadline_holds_for_everything_that_a_push_does() -> None:
    is_over = threading.Event()
    with pytest.raises(PushFailed, match="http://host: no answer within 1 second"):
        within(0.6, "http://host", lambda: is_over.wait() and None)
    is_over.set()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (URLError(TimeoutError()), "no answer in time"),
        (URLError(socket.gaierror(-2, SECRET)), "the host is unknown"),
        (URLError(ssl.SSLCertVerificationError(1, SECRET)), "the certificate or the protocol was not accepted"),
        (URLError(SECRET), "str"),
    ],
    ids=["slow", "unknown", "insecure", "other"],
)
def test_failures_are_described_without_text_of_others(error: Exception, message: str) -> None:
    assert message in _describe(error)
    assert SECRET not in _describe(error)


def test_a_server_error_needs_no_remedy() -> None:
    assert refused("http://host", 500).remedy == ""


def test_a_gateway_without_an_index_gets_an_empty_label() -> None:
    with MetricsServer() as server:
        receiver = Receiver.parse(f"http://{server.address}")
        push_to_gateway(receiver, [Gauge("x", "y", (Sample(1, {}),))], "", keep_others=False, seconds=10)
    assert server.received[0].path.endswith("/index@base64/=")
