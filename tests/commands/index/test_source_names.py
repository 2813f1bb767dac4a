"""What sources are called, whichever way is taken to find that out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from h5zarr.commands.catalog.source_names import _is_plain, source_name
from h5zarr.io.urls import reference_url


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/2026/11/ocean_v2-final.nc",
        "gs://bucket.name/a=b/c,d+e~f.h5",
        "s3://bucket//twice/ocean.nc/",
        "http://127.0.0.1:8000/ocean.nc",
        "https://data.example.org/2026/ocean.nc",
        "/data/2026/ocean.nc",
        "/data/a b/100%25 {x}::y#z.nc",
    ],
)
def test_plain_names_are_those_that_references_have(url: str) -> None:
    assert _is_plain(url)
    assert source_name(url) == url == reference_url(url)[0]


@pytest.mark.parametrize(
    "url",
    [
        "s3://key:secret@bucket/ocean.nc",
        "s3://bucket/ocean.nc?versionId=3",
        "https://user:secret@data.example.org/ocean.nc",
        "https://data.example.org/ocean.nc?token=secret",
        "https://data.example.org/a/../ocean.nc",
        "https://data.example.org/a%20b.nc",
        "https://data.example.org",
        "S3://bucket/ocean.nc",
        "simplecache::s3://bucket/ocean.nc",
        "file:///data/ocean.nc",
        "ocean.nc",
        "/data/../ocean.nc",
        "/data//ocean.nc",
    ],
)
def test_others_are_looked_at_closely(url: str) -> None:
    assert not _is_plain(url)
    assert source_name(url) == reference_url(url)[0]
    assert "secret" not in source_name(url)


def test_a_path_that_looks_like_a_url_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:" / "bucket").mkdir(parents=True)
    (tmp_path / "s3:" / "bucket" / "ocean.nc").touch()
    assert source_name("s3://bucket/ocean.nc") == os.path.join(tmp_path, "s3:", "bucket", "ocean.nc")
