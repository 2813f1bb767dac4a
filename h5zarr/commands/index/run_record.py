"""The record of the last run, beside the catalog: `OUT/_h5zarr/last_run`, as JSON.

Its name has no suffix, so that patterns for references such as `OUT/**/*.json` do not match it.

A job in a container remembers nothing, so the index itself keeps the time of the last successful run.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from h5zarr.commands.catalog.place import STATE, Place
from h5zarr.commands.index.index_report import IndexReport

RUN = f"{STATE}/last_run"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """How the last run ended, and which run was the last successful one. Times are in UTC."""

    run_id: str
    ended: str
    time: datetime
    last_success: datetime | None = None
    last_success_run_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the record for machines."""
        return {
            name: value.isoformat() if isinstance(value, datetime) else value for name, value in asdict(self).items()
        }


def read_record(place: Place) -> RunRecord | None:
    """Return the record of the last run; None if there is none or it cannot be understood."""
    content = place.read(RUN)
    try:
        stated = json.loads(content or b"null")
        success = stated.get("last_success")
        return RunRecord(
            run_id=str(stated["run_id"]),
            ended=str(stated["ended"]),
            time=_moment(stated["time"]),
            last_success=None if success is None else _moment(success),
            last_success_run_id=stated.get("last_success_run_id"),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _moment(text: str) -> datetime:
    """Return a time. One without a time zone cannot be compared with others: it counts as UTC."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def record_run(place: Place, report: IndexReport) -> None:
    """Replace the record by that of a run that has ended, and note in its report when the last successful run was."""
    time = report.began + timedelta(seconds=report.seconds)
    former = None if report.is_success else read_record(place)
    success: datetime | None = None
    run_id: str | None = None
    if report.is_success:
        success, run_id = time, report.run_id
    elif former is not None:
        success, run_id = former.last_success, former.last_success_run_id
    report.last_success = success
    record = RunRecord(
        run_id=report.run_id, ended=report.ended, time=time, last_success=success, last_success_run_id=run_id
    )
    place.write(RUN, json.dumps(record.to_json(), indent=2).encode() + b"\n")
