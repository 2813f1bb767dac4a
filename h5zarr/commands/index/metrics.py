"""The metrics of a run: gauges, and the text format of Prometheus."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from h5zarr.commands.catalog.rows import Status, writable

if TYPE_CHECKING:
    from h5zarr.commands.index.index_report import IndexReport

_PREFIX = "h5zarr_index_"
_LAST_SUCCESS = f"{_PREFIX}last_success_timestamp_seconds"
_NEWEST = f"{_PREFIX}newest_source_timestamp_seconds"


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of a gauge, and the labels that distinguish it from the others."""

    value: float
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Gauge:
    """A metric with at least one value. `about` is a sentence without its full stop."""

    name: str
    about: str
    samples: tuple[Sample, ...]


def report_gauges(report: IndexReport, index: str = "") -> list[Gauge]:
    """Return the metrics of a run, all with the label `index` unless it is empty. A job that could not run has no
    counts.
    """
    labels = _labels(index)

    def by(label: str, counts: Mapping[str, int]) -> tuple[Sample, ...]:
        return tuple(Sample(count, labels | {label: name}) for name, count in counts.items())

    gauges = []
    if report.has_run:
        states = {status.key: report.states[status] for status in Status}
        about = "Listed and vanished sources by state, after the last run"
        gauges.append(Gauge(f"{_PREFIX}sources", about, by("state", states)))
        about = "What the last run did, in numbers of sources"
        gauges.append(Gauge(f"{_PREFIX}run_sources", about, by("result", report.counts())))
    ended = report.began.timestamp() + report.seconds
    for name, about, value in (
        ("requests", "Requests made by the last run", report.requests),
        ("read_bytes", "Bytes read by the last run", report.bytes_read),
        ("chunks", "Chunks of the sources indexed by the last run", report.chunks),
        ("duration_seconds", "Duration of the last run", round(report.seconds, 3)),
        ("has_run", "0 if the job could not run at all", int(report.has_run)),
        ("success", "1 if every listed source has up-to-date references", int(report.is_good)),
        ("end_timestamp_seconds", "End time of the last run", round(ended, 3)),
    ):
        gauges.append(Gauge(f"{_PREFIX}{name}", about, (Sample(value, labels),)))
    gauges += _times(report, ended, labels)
    gauges += _cubes(report, labels)
    about = "The id of the last run, as a label; always 1"
    gauges.append(Gauge(f"{_PREFIX}run_info", about, (Sample(1, labels | {"run_id": report.run_id}),)))
    return [*gauges, _skipped(labels, 0)]


def _times(report: IndexReport, ended: float, labels: dict[str, str]) -> Iterator[Gauge]:
    """Yield how fresh the index is. What is unknown is absent: zero would be the year 1970."""
    if report.last_success is not None:
        about = "End time of the last successful run"
        moment = round(report.last_success.timestamp(), 3)
        yield Gauge(_LAST_SUCCESS, about, (Sample(moment, labels),))
    if report.newest_source is not None:
        moment = round(report.newest_source.timestamp(), 3)
        about = "Modification time of the newest source that has up-to-date references"
        yield Gauge(_NEWEST, about, (Sample(moment, labels),))
        about = "Age of that source at the end of the last run"
        age = round(max(0.0, ended - moment), 3)
        yield Gauge(f"{_PREFIX}newest_source_age_seconds", about, (Sample(age, labels),))


def _cubes(report: IndexReport, labels: dict[str, str]) -> Iterator[Gauge]:
    """Yield the state of each cube, with the label `cube`."""
    if not report.cubes:
        return
    up = tuple(Sample(int(one.done is not None), labels | {"cube": one.out}) for one in report.cubes)
    yield Gauge("h5zarr_cube_up_to_date", "1 if the cube could be brought up to date", up)
    known = [(one.done, labels | {"cube": one.out}) for one in report.cubes if one.done is not None]
    files = tuple(Sample(done.file_count, own) for done, own in known)
    misfits = tuple(Sample(len(done.misfits) + len(done.known_misfits), own) for done, own in known)
    changed = tuple(Sample(len(done.added) + len(done.replaced) + len(done.removed), own) for done, own in known)
    if known:
        yield Gauge("h5zarr_cube_files", "Files in the cube", files)
        yield Gauge("h5zarr_cube_misfits", "Files that are left out because they do not fit", misfits)
        yield Gauge("h5zarr_cube_changed_files", "Files that the last run added, replaced or removed", changed)


def lasting_lines(text: str) -> str:
    """Return the metrics in `text` that remain true if a later job could not run: times of sources and successes."""
    lasting = re.compile(rf"(# \w+ )?({_LAST_SUCCESS}|{_NEWEST})\b")
    return "".join(f"{line}\n" for line in text.splitlines() if lasting.match(line))


def skipped_gauge(index: str = "") -> Gauge:
    """Return the only metric of a run that did nothing because another run was active."""
    return _skipped(_labels(index), 1)


def _skipped(labels: dict[str, str], value: int) -> Gauge:
    about = "1 if a later run did nothing because another run was active"
    return Gauge(f"{_PREFIX}skipped", about, (Sample(value, labels),))


def _labels(index: str) -> dict[str, str]:
    return {"index": index} if index else {}


def metrics_text(gauges: Iterable[Gauge]) -> str:
    """Return metrics in Prometheus's text format, version 0.0.4."""
    return "".join(f"{line}\n" for gauge in gauges for line in _lines(gauge))


def replace_metrics(text: str, gauges: Iterable[Gauge]) -> str:
    """Return the metrics in `text` with other values for some gauges. All others stay as they are."""
    gauges = list(gauges)
    names = "|".join(gauge.name for gauge in gauges)
    kept = [line for line in text.splitlines() if not re.match(rf"(# \w+ )?({names})\b", line)]
    return "".join(f"{line}\n" for line in kept) + metrics_text(gauges)


def _lines(gauge: Gauge) -> Iterator[str]:
    yield f"# HELP {gauge.name} {gauge.about}."
    yield f"# TYPE {gauge.name} gauge"
    for sample in gauge.samples:
        pairs = ",".join(f'{label}="{_escape(text)}"' for label, text in sample.labels.items())
        yield f"{gauge.name}{{{pairs}}} {sample.value}" if pairs else f"{gauge.name} {sample.value}"


def _escape(text: str) -> str:
    return writable(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
