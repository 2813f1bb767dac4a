from __future__ import annotations

import os
from pathlib import Path

import pytest

from h5zarr.io.urls import display_url, find_local_path, reference_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host/a.h5?X-Amz-Signature=secret&b=1", "https://host/a.h5"),
        ("https://user:secret@host:80/a.h5", "https://host:80/a.h5"),
        ("ftp://user:p#secret@host/a@b.h5", "ftp://host/a@b.h5"),
        ("zip://a.h5::https://u:secret@host/x.zip?token=secret", "zip://a.h5::https://host/x.zip"),
        ("simplecache::s3://bucket/key@1#2.h5", "simplecache::s3://bucket/key@1#2.h5"),
        ("memory://a.h5", "memory://a.h5"),
        ("https://user:sec/ret@host/a.h5", "https://host/a.h5"),
        ("https://user:sec?ret@host/a.h5", "https://host/a.h5"),
        ("https://host:80/a@b.h5", "https://host:80/a@b.h5"),
        ("abfs://container@account.dfs.core.windows.net/a.h5", "abfs://container@account.dfs.core.windows.net/a.h5"),
        ("abfs://user:secret@host/a.h5", "abfs://host/a.h5"),
        ("s3://arn:aws:s3:eu-west-1:12:accesspoint/a/b@1.h5", "s3://arn:aws:s3:eu-west-1:12:accesspoint/a/b@1.h5"),
        ("memory://me@host.h5", "memory://me@host.h5"),
        ("memory://me:secret@host.h5", "memory://host.h5"),
        ("s3://bucket/a?b.h5", "s3://bucket/a?b.h5"),
        ("s3://bucket/a?b.h5?versionId=7&x=secret", "s3://bucket/a?b.h5?versionId=7"),
        ("s3://bucket/a.h5?X-Amz-Signature=secret", "s3://bucket/a.h5"),
        ("https://host/a#token=secret", "https://host/a"),
        ("/dir/a?b#c@d::e.h5", "/dir/a?b#c@d::e.h5"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert display_url(url) == shown


@pytest.mark.parametrize(
    "query",
    [
        "X-Amz-Credential=a&X-Amz-Signature=b",
        "X%2DAmz%2DSignature=b",
        "AWSAccessKeyId=a&Signature=b&Expires=1",
        "X-Goog-Signature=b",
        "GoogleAccessId=a&Signature=b",
        "sv=2024&sp=r&sig=b",
        "page=1;token=b",
        "apikey=b",
        "api-key=b",
        "jwt=b",
    ],
)
def test_references_never_contain_a_query_with_a_secret(query: str) -> None:
    assert reference_url(f"https://host/a.h5?{query}") == ("https://host/a.h5", True)
    assert reference_url(f"zip://a.h5::https://host/a.zip?{query}") == ("zip://a.h5::https://host/a.zip", True)


@pytest.mark.parametrize(
    "url",
    [
        "https://host/a.h5?version=3&item=monkey",
        "s3://bucket/a.h5?versionId=v7",
        "abfs://container@account.dfs.core.windows.net/a.h5",
    ],
)
def test_references_contain_a_url_without_secrets_unchanged(url: str) -> None:
    assert reference_url(url) == (url, False)


@pytest.mark.parametrize("url", ["s3://bucket/a.h5", "http://host/a", "memory://a", "zip://a::b.zip", "simplecache::a"])
def test_protocols_and_chains_are_not_local(url: str) -> None:
    assert find_local_path(url) is None


@pytest.mark.parametrize("url", ["a.h5", "/tmp/a b#1%20?.h5", "C:\\files\\a.h5", "C://files/a.h5", "a:b.h5"])
def test_paths_are_local_as_they_are_written(url: str) -> None:
    assert find_local_path(url) == url


def test_a_path_that_looks_like_a_chain_is_local_if_it_exists(tmp_path: Path) -> None:
    path = tmp_path / "a::b.h5"
    path.touch()
    assert find_local_path(str(path)) == str(path)


def test_a_file_url_is_read_as_written_and_only_then_decoded(tmp_path: Path) -> None:
    (tmp_path / "a b.h5").touch()
    assert find_local_path(f"file://{tmp_path}/a%20b.h5") == f"{tmp_path}/a b.h5"
    assert find_local_path(f"file://localhost{tmp_path}/a b.h5") == f"{tmp_path}/a b.h5"
    (tmp_path / "a%20b.h5").touch()
    assert find_local_path(f"file://{tmp_path}/a%20b.h5") == f"{tmp_path}/a%20b.h5"


def test_a_tilde_is_the_home_directory() -> None:
    assert find_local_path("~/no-such-file.h5") == os.path.expanduser("~/no-such-file.h5")
