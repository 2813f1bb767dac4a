"""Prints, at the end of a run, how the scanned files fared against h5py."""

from __future__ import annotations

from collections import Counter
from typing import Any

COUNTS = ("datasets", "agreeing", "attributes", "values_checked", "chunks_checked")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    scores: dict[str, Counter[str]] = {}
    for status in ("passed", "failed"):
        for report in terminalreporter.stats.get(status, []):
            properties = getattr(report, "user_properties", [])
            if report.when != "call" or "test_oracle.py" not in report.nodeid or not properties:
                continue
            score = scores.setdefault(report.nodeid.partition("::")[2].partition("[")[0], Counter())
            score["files"] += 1
            score[f"files {status}"] += 1
            for name, value in properties:
                if name in COUNTS:
                    score[name] += value
                else:
                    score[name] += 1
    if scores:
        terminalreporter.section("agreement with h5py")
    for name, score in sorted(scores.items()):
        terminalreporter.write_line(f"{name}: {', '.join(f'{count:,} {what}' for what, count in score.items())}")
