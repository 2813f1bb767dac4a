"""Send the metrics of a run to an OpenTelemetry collector, with OTLP over HTTP. Needs the extra `otel`."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any

from h5zarr import __version__
from h5zarr.commands.index.metrics import Gauge
from h5zarr.commands.index.pushing import PushFailed, Receiver, within
from h5zarr.packages import missing

_PATH = "/v1/metrics"
_MODULES = ("opentelemetry.sdk.metrics", "opentelemetry.exporter.otlp.proto.http.metric_exporter")


def require_otel() -> None:
    """Raise PackageMissing if the packages for OpenTelemetry are not installed."""
    try:
        is_there = all(find_spec(module) is not None for module in _MODULES)
    except ImportError:
        is_there = False  # not even the package above it
    if not is_there:
        raise missing("opentelemetry-exporter-otlp-proto-http", "otel=", extra="otel")


def push_to_collector(receiver: Receiver, gauges: Iterable[Gauge], *, seconds: float) -> None:
    """Send metrics to a collector. Raises PushFailed.

    Parameters
    ----------
    receiver
        The collector; /v1/metrics is appended unless its URL ends with that.
    gauges
        The metrics. Their labels become attributes.
    seconds
        How long everything may take, including repeated requests.
    """
    endpoint = receiver.url if receiver.url.endswith(_PATH) else f"{receiver.url}{_PATH}"
    # Without these, the exporter takes headers from OTEL_EXPORTER_OTLP_HEADERS.
    headers = None if receiver.authorization is None else {"authorization": receiver.authorization}
    within(seconds, receiver.url, partial(_export, receiver.url, endpoint, headers, list(gauges), seconds))


def _export(shown: str, endpoint: str, headers: dict[str, str] | None, gauges: list[Gauge], seconds: float) -> None:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics.export import MetricExportResult

    with _silent():
        exporter = OTLPMetricExporter(endpoint=endpoint, headers=headers, timeout=seconds)
        try:
            is_sent = exporter.export(_measured(gauges)) is MetricExportResult.SUCCESS
        except Exception as error:  # of the packages below it, whose text may have the headers
            raise PushFailed(f"{shown}: the metrics could not be sent ({type(error).__name__})") from None
        finally:
            exporter.shutdown()
    if not is_sent:
        remedy = "Check that it is a collector that receives OTLP over HTTP, and OTEL_EXPORTER_OTLP_HEADERS."
        raise PushFailed(f"{shown}: the collector did not take the metrics", remedy=remedy)


def _measured(gauges: list[Gauge]) -> Any:
    """Return the metrics as the SDK describes them. Nothing is registered globally, and no thread is started."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.resources import Resource

    about = {"service.version": __version__}
    if "OTEL_SERVICE_NAME" not in os.environ and "service.name=" not in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        about["service.name"] = "h5zarr"
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], resource=Resource.create(about), shutdown_on_exit=False)
    meter = provider.get_meter("h5zarr", __version__)
    for gauge in gauges:
        instrument = meter.create_gauge(gauge.name, description=gauge.about)
        for sample in gauge.samples:
            instrument.set(sample.value, dict(sample.labels))
    measured = reader.get_metrics_data()
    provider.shutdown()
    return measured


@contextmanager
def _silent() -> Iterator[None]:
    """Keep the packages of OpenTelemetry from logging: what failed is reported once, without URLs and headers."""
    log, handler = logging.getLogger("opentelemetry"), logging.NullHandler()
    former = log.propagate
    log.addHandler(handler)
    log.propagate = False
    try:
        yield
    finally:
        log.propagate = former
        log.removeHandler(handler)
