"""Metrics are sent to an OpenTelemetry collector."""

from __future__ import annotations

import logging
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from h5zarr.cli import main
from h5zarr.commands.index.metrics import skipped_gauge
from h5zarr.commands.index.otel import push_to_collector
from h5zarr.commands.index.pushing import PushFailed, Receiver
from tests.collectors import MetricsServer, Received
from tests.commands.index.jobs import unmarked

pytest.importorskip("opentelemetry.sdk")
service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
pytest.importorskip("opentelemetry.exporter.otlp.proto.http.metric_exporter")
pytestmark = pytest.mark.usefixtures("threads_for_command")


def decode(push: Received) -> tuple[dict[str, str], dict[str, dict[tuple[tuple[str, str], ...], float]]]:
    """Return the attributes of the resource, and the points of each gauge by their attributes."""
    request = service.ExportMetricsServiceRequest.FromString(push.content)
    (resource,) = request.resource_metrics
    (scope,) = resource.scope_metrics

    def pairs(attributes: Any) -> tuple[tuple[str, str], ...]:
        return tuple((one.key, one.value.string_value) for one in attributes)

    points = {
        metric.name: {
            pairs(point.attributes): point.as_int if point.HasField("as_int") else point.as_double
            for point in metric.gauge.data_points
        }
        for metric in scope.metrics
    }
    return dict(pairs(resource.resource.attributes)), points


def test_a_collector_gets_the_metrics_of_a_run(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    with MetricsServer() as server:
        words = ["--otel", f"http://{server.address}", "--job", "ocean", "--run-id", "night-1"]
        assert main(["index", str(data), str(data.parent / "refs"), *words]) == 0
    (push,) = server.received
    assert (push.method, push.path) == ("POST", "/v1/metrics")
    resource, points = decode(push)
    assert resource["service.name"] == "h5zarr"
    assert points["h5zarr_index_sources"][("index", "ocean"), ("state", "indexed")] == 3
    assert points["h5zarr_index_success"] == {(("index", "ocean"),): 1}
    assert points["h5zarr_index_run_info"] == {(("index", "ocean"), ("run_id", "night-1")): 1}
    assert points["h5zarr_index_last_success_timestamp_seconds"][(("index", "ocean"),)] > 1.7e9


def test_names_and_headers_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "archive")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=hunter2")
    with MetricsServer() as server:
        push_to_collector(Receiver.parse(f"http://{server.address}/v1/metrics"), [skipped_gauge()], seconds=10)
    (push,) = server.received
    assert (push.path, push.headers["x-key"]) == ("/v1/metrics", "hunter2")
    assert decode(push)[0]["service.name"] == "archive"


def test_a_collector_that_refuses_is_one_warning_without_secrets(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with MetricsServer(400) as server:
        url = f"http://me:hunter2@{server.address}"
        assert main(["index", str(data), str(data.parent / "refs"), "--quiet", "--otel", url]) == 0
    assert b64decode(server.received[0].headers["authorization"].removeprefix("Basic ")) == b"me:hunter2"
    said = unmarked(capfd.readouterr().err)
    assert said.splitlines() == [
        f"h5zarr: --otel failed: http://{server.address}: the collector did not take the metrics",
        "  Check that it is a collector that receives OTLP over HTTP, and OTEL_EXPORTER_OTLP_HEADERS.",
    ]
    assert logging.getLogger("opentelemetry").propagate


def test_a_collector_that_is_not_there_is_given_up_in_time(capfd: pytest.CaptureFixture[str]) -> None:
    with MetricsServer() as server:
        address = server.address
    with pytest.raises(PushFailed, match=r"did not take the metrics|no answer within"):
        push_to_collector(Receiver.parse(f"http://{address}"), [skipped_gauge()], seconds=2)
    assert capfd.readouterr().err == ""


def test_errors_of_the_packages_are_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **choices: object) -> None:
        raise RuntimeError("hunter2")

    monkeypatch.setattr("h5zarr.commands.index.otel._measured", fail)
    with pytest.raises(PushFailed, match=r"the metrics could not be sent \(RuntimeError\)") as caught:
        push_to_collector(Receiver.parse("http://127.0.0.1:1"), [], seconds=10)
    assert caught.value.__cause__ is None
