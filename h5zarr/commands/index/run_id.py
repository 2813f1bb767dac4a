"""The id of a run, by which its log lines, report, metrics and lease are found."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any

from h5zarr.errors import ArgumentError
from h5zarr.logs import LOG

# Ids of Airflow, Kubernetes, AWS Batch and systemd fit. No spaces or quotes: an id is one word of a log line.
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~:+-]{0,199}")


def make_run_id(moment: datetime | None = None) -> str:
    """Return a new id. Ids sort by the time at which they were made, to the millisecond."""
    moment = (moment or datetime.now(UTC)).astimezone(UTC)
    return f"{moment:%Y%m%dT%H%M%S}{moment.microsecond // 1000:03d}Z-{secrets.token_hex(4)}"


def check_run_id(run_id: str) -> str:
    """Return an id from outside. Raises ArgumentError if it could not be a word of a log line."""
    if _RUN_ID.fullmatch(run_id) is None:
        raise ArgumentError(
            f"run_id is {run_id[:80]!r}, but must have up to 200 letters, digits and . _ ~ : + -, and start with a "
            "letter or digit"
        )
    return run_id


class RunLogger(logging.LoggerAdapter[logging.Logger]):
    """The logger of one run. Messages start with its id, and records have the attribute `run_id`."""

    def __init__(self, run_id: str) -> None:
        super().__init__(LOG, {"run_id": run_id})
        self._run_id = run_id

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        return f"[{self._run_id}] {msg}", {**kwargs, "extra": {"run_id": self._run_id}}
