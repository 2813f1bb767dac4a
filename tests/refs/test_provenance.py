from __future__ import annotations

from h5zarr.io.source import Identity
from h5zarr.refs.provenance import Provenance, SourceState


def test_secrets_in_urls_are_left_out_and_so_is_what_is_not_known() -> None:
    identity = Identity(nbytes=7, etag='"abc"', mtime="2026-01-02T03:04:05Z")
    provenance = Provenance("1.2", (SourceState("https://me:secret@host/a.nc?token=secret", identity),))
    assert provenance.to_json() == {
        "version": "1.2",
        "sources": [{"url": "https://host/a.nc", "nbytes": 7, "etag": '"abc"', "mtime": "2026-01-02T03:04:05Z"}],
    }
