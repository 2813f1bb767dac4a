from __future__ import annotations

import json

import pytest

from h5zarr.containers.provenance import Provenance, SourceState
from h5zarr.errors import MalformedFile
from h5zarr.io.source import Identity


def test_secrets_in_urls_are_left_out_and_so_is_what_is_not_known() -> None:
    identity = Identity(nbytes=7, etag='"abc"', mtime="2026-01-02T03:04:05Z")
    provenance = Provenance("1.2", (SourceState("https://me:secret@host/a.nc?token=secret", identity),))
    assert provenance.to_json() == {
        "version": "1.2",
        "sources": [{"url": "https://host/a.nc", "nbytes": 7, "etag": '"abc"', "mtime": "2026-01-02T03:04:05Z"}],
    }


def test_what_is_written_reads_back_and_what_a_later_version_adds_is_left_out() -> None:
    sources = (
        SourceState("s3://bucket/a.nc", Identity(nbytes=7, etag='"abc"', version="v")),
        SourceState("/data/b.nc", Identity(nbytes=0, mtime="2026-01-02T03:04:05Z")),
    )
    written = json.loads(json.dumps(Provenance("1.2", sources).to_json()))
    assert Provenance.from_json(written) == Provenance("1.2", sources)
    written["sources"][0]["color"] = written["color"] = "blue"
    assert Provenance.from_json(written) == Provenance("1.2", sources)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {"version": "1"},
        {"version": 1, "sources": []},
        {"version": "1", "sources": {}},
        {"version": "1", "sources": [5]},
        {"version": "1", "sources": [{"url": "a"}]},
        {"version": "1", "sources": [{"url": "a", "nbytes": "7"}]},
        {"version": "1", "sources": [{"url": "a", "nbytes": 7, "etag": 5}]},
    ],
)
def test_another_form_is_malformed(value: object) -> None:
    with pytest.raises(MalformedFile, match="not have h5zarr"):
        Provenance.from_json(value)
