"""Reading from the cloud without credentials: each file system has its own word for it."""

from __future__ import annotations

from typing import Any

from h5zarr.io.grammar import protocol_of, split_chain

_OPTIONS: dict[str, dict[str, Any]] = {
    "s3": {"anon": True},
    "s3a": {"anon": True},
    "gs": {"token": "anon"},
    "gcs": {"token": "anon"},
    "abfs": {"anon": True},
    "abfss": {"anon": True},
    "az": {"anon": True},
    "adl": {"anon": True},
}


def anonymous_options(url: str) -> dict[str, Any]:
    """Return the storage options for reading `url` without credentials; none where it needs none."""
    return dict(_OPTIONS.get(protocol_of(split_chain(url)[-1]), {}))
