"""Metrics of a run: gauges and their text."""

from __future__ import annotations

from h5zarr.commands.index.index_report import IndexReport
from h5zarr.commands.index.metrics import Gauge, Sample, metrics_text, replace_metrics, report_gauges, skipped_gauge


def test_gauges_become_text_with_escaped_labels() -> None:
    gauge = Gauge("h5zarr_index_x", "An example", (Sample(1, {"index": 'a "b"\n\\'}), Sample(2.5, {})))
    assert metrics_text([gauge]) == (
        "# HELP h5zarr_index_x An example.\n# TYPE h5zarr_index_x gauge\n"
        'h5zarr_index_x{index="a \\"b\\"\\n\\\\"} 1\nh5zarr_index_x 2.5\n'
    )


def test_a_replaced_gauge_leaves_the_others_alone() -> None:
    before = metrics_text(report_gauges(IndexReport(), "ocean"))
    after = replace_metrics(before, [skipped_gauge("ocean")])
    assert 'h5zarr_index_skipped{index="ocean"} 1\n' in after
    assert sorted(before.replace('skipped{index="ocean"} 0', "").splitlines()) == sorted(
        after.replace('skipped{index="ocean"} 1', "").splitlines()
    )


def test_a_name_that_starts_like_a_replaced_one_stays() -> None:
    longer = metrics_text([Gauge("h5zarr_index_skipped_before", "Another one", (Sample(3, {}),))])
    assert replace_metrics(longer, [skipped_gauge()]).startswith(longer)


def test_a_job_that_could_not_run_has_no_counts() -> None:
    names = {gauge.name for gauge in report_gauges(IndexReport().could_not_run("no access", ""))}
    assert {"h5zarr_index_has_run", "h5zarr_index_success"} <= names
    assert not {"h5zarr_index_sources", "h5zarr_index_run_sources"} & names
