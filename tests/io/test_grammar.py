from __future__ import annotations

import pytest

from h5zarr.io.access import Access
from h5zarr.io.protocols import protocol_of
from h5zarr.io.urls import find_named, is_chain, split_chain, split_path, split_query, strip_user


@pytest.mark.parametrize(
    ("url", "links"),
    [
        ("s3://bucket/a.h5", ["s3://bucket/a.h5"]),
        ("simplecache::s3://bucket/a::b.h5", ["simplecache", "s3://bucket/a::b.h5"]),
        ("zip://a.h5::simplecache::https://host/a.zip", ["zip://a.h5", "simplecache", "https://host/a.zip"]),
        ("zip://a.h5::dir/a::b.zip", ["zip://a.h5", "dir/a::b.zip"]),
        ("s3://bucket/a::b.h5", ["s3://bucket/a::b.h5"]),
        ("https://host/a::file:///etc/passwd", ["https://host/a::file:///etc/passwd"]),
        ("memory://a::b", ["memory://a::b"]),
        ("/dir/a::b.h5", ["/dir/a::b.h5"]),
        ("./a::b.h5", ["./a::b.h5"]),
        ("a::s3://bucket/b.h5", ["a::s3://bucket/b.h5"]),
        ("file:///dir/a::b.h5", ["file:///dir/a::b.h5"]),
    ],
)
def test_two_colons_join_links_only_where_one_can_be_inside_the_other(url: str, links: list[str]) -> None:
    assert split_chain(url) == links
    assert is_chain(url) == (len(links) > 1)


@pytest.mark.parametrize(
    ("url", "query"),
    [
        ("https://host/a?x=1&y=?", "?x=1&y=?"),
        ("s3://bucket/a?b.h5", ""),
        ("s3://bucket/a?b.h5?versionId=7", "?versionId=7"),
        ("s3a://bucket/a#b?versionId=7", "?versionId=7"),
        ("gs://bucket/a?b.h5?generation=7", "?generation=7"),
        ("abfs://bucket/a?versionid=7", "?versionid=7"),
        ("memory://a?versionId=7", ""),
        ("zip://a?b.h5", ""),
        ("/dir/a?b.h5", ""),
        ("unheard://host/a?b", "?b"),
    ],
)
def test_what_follows_a_question_mark_is_a_query_only_to_some(url: str, query: str) -> None:
    assert split_query(url) == (url.removesuffix(query) if query else url, query)


@pytest.mark.parametrize(
    ("url", "stripped"),
    [
        ("https://me:secret@host/a@b.h5", "https://host/a@b.h5"),
        ("sftp://me@host/a.h5", "sftp://host/a.h5"),
        ("unheard://me@host/a.h5", "unheard://host/a.h5"),
        ("abfs://container@account.dfs.core.windows.net/a.h5", "abfs://container@account.dfs.core.windows.net/a.h5"),
        ("github://owner:repository@branch/a.h5", "github://owner:repository@branch/a.h5"),
        ("zip://me@host.h5", "zip://me@host.h5"),
        ("memory://me@host.h5", "memory://me@host.h5"),
        ("/dir/me@host.h5", "/dir/me@host.h5"),
    ],
)
def test_what_precedes_an_at_sign_is_a_user_only_to_some(url: str, stripped: str) -> None:
    assert strip_user(url) == stripped


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://host/a/b.h5", ("https://host", "/a/b.h5")),
        ("s3://bucket/a/b.h5", ("s3://bucket", "/a/b.h5")),
        ("s3://bucket", ("s3://bucket", "")),
        ("zip://a/b.h5", ("zip://", "a/b.h5")),
        ("memory:///a.h5", ("memory://", "/a.h5")),
    ],
)
def test_archives_have_no_host(url: str, parts: tuple[str, str]) -> None:
    assert split_path(url) == parts


def test_the_file_is_named_by_the_first_link_that_is_not_a_cache() -> None:
    assert find_named(["simplecache", "s3://bucket/a"]) == 1
    assert find_named(["zip://a", "simplecache", "https://host/a.zip"]) == 0
    assert find_named(["a.h5"]) == 0


def test_protocols_are_lower_case_and_paths_are_files() -> None:
    assert [protocol_of(url) for url in ("S3://bucket/a", "/a/b", "C://a", "a::b")] == ["s3", "file", "file", "file"]


def test_credentials_are_declined_for_the_last_link() -> None:
    access = Access(anon=True)
    assert access.options_for("s3://bucket/a::b.h5") == {"anon": True}
    assert access.options_for("zip://a.h5::gs://bucket/a.zip") == {"gs": {"token": "anon"}}
    assert access.options_for("zip://a.h5::/a::s3.zip") == {}
