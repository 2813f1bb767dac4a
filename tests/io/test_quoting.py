from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h5zarr.io.urls import UnclearURL, find_one_path, is_rewritten, quote_name, reference_url, settle_link, settle_url

yarl = pytest.importorskip("yarl")
ASCII = [chr(code) for code in range(32, 127)]


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://host/a b.h5", "https://host/a%20b.h5"),
        ("https://host/a%20b.h5", "https://host/a%20b.h5"),
        ("https://host/a%20b c.h5", "https://host/a%20b%20c.h5"),
        ("https://host/50%.h5", "https://host/50%25.h5"),
        ("https://host/50%2.h5", "https://host/50%252.h5"),
        ("https://host/é.h5?é=1 2", "https://host/%C3%A9.h5?%C3%A9=1%202"),
        ("https://host/{{x}}.h5", "https://host/%7B%7Bx%7D%7D.h5"),
        ("https://host/a\tb\n.h5", "https://host/a%09b%0A.h5"),
        ("https://host/\udcff.h5", "https://host/%FF.h5"),
        ("https://host/a/./b/../c.h5", "https://host/a/c.h5"),
        ("https://host/a/%2e%2e/c..h5", "https://host/a/%2e%2e/c..h5"),
        ("https://host/../../a//b.h5", "https://host/a//b.h5"),
        ("https://host/a/..", "https://host/"),
        ("https://host", "https://host/"),
        ("HTTPS://host/A b", "https://host/A%20b"),
        ("S3://Bucket/A b", "s3://Bucket/A b"),
        ("https://host/a?", "https://host/a"),
        ("https://host?x=1", "https://host/?x=1"),
        ("https://me:p%40ss@host:80/a.h5", "https://me:p%40ss@host:80/a.h5"),
        ("https://bücher.example:80/a.h5", "https://xn--bcher-kva.example:80/a.h5"),
        ("http://[::1]:80/[a].h5", "http://[::1]:80/%5Ba%5D.h5"),
        ("s3://bucket/a b%20#?.h5", "s3://bucket/a b%20#?.h5"),
        ("zip://a b.h5::https://host/c d.zip", "zip://a b.h5::https://host/c%20d.zip"),
        ("simplecache::https://host/{x}", "simplecache::https://host/%7Bx%7D"),
    ],
)
def test_only_what_goes_to_a_web_server_is_escaped(url: str, sent: str) -> None:
    assert settle_url(url) == sent
    assert settle_url(sent) == sent


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_any_name_survives_a_url(name: str) -> None:
    assert unquote(quote_name(name, "https://host/")) == name
    url = f"https://host/{quote_name(name.replace('/', ''), 'https://host/')}x"
    assert settle_link(url) == url
    assert quote_name(name, "s3://bucket/") == name


@given(st.text(st.characters(codec="utf-8", exclude_characters="#"), max_size=20))
def test_settled_urls_are_sent_unchanged(rest: str) -> None:
    settled = settle_link(f"https://host/x{rest}")
    assert settled.isascii()
    assert settle_link(settled) == settled
    assert str(yarl.URL(settled, encoded=True)) == settled


@pytest.mark.parametrize("character", ASCII)
def test_each_escape_in_a_query_that_fsspec_decodes_causes_a_warning(character: str) -> None:
    url = f"https://host/a?x=%{ord(character):02X}"
    is_same = str(yarl.URL(url)) == url
    assert is_rewritten(url) == (not is_same and quote(character, safe="") != character)


def test_parameters_in_a_path_cause_a_warning() -> None:
    assert [character for character in ASCII if is_rewritten(f"https://host/a%{ord(character):02x}")] == [";"]
    assert not is_rewritten("s3://bucket/a%3Bb")


@pytest.mark.parametrize("url", ["https://host/a#b", "https://host/a?x#", "zip://a::https://host/a#b.zip"])
def test_a_fragment_is_not_sent_and_so_refused(url: str) -> None:
    for settle in (settle_url, reference_url):
        with pytest.raises(UnclearURL, match="#"):
            settle(url)


def test_a_host_that_cannot_be_is_refused() -> None:
    with pytest.raises(UnclearURL, match="the host name is not valid"):
        settle_url(f"https://{'ü' * 80}/a.h5")


@pytest.mark.parametrize(
    "url", ["zip://a::b.h5::/x.zip", "zip://a.h5::/data/a::b.zip", "zip://a::s3://bucket/a::b.zip"]
)
def test_a_name_with_two_colons_in_a_chain_is_refused(url: str) -> None:
    with pytest.raises(UnclearURL, match="::"):
        settle_url(url)


def test_the_local_end_of_a_chain_is_an_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b.zip").touch()
    for end in ("a b.zip", f"file://{tmp_path}/a%20b.zip", f"{tmp_path}/a b.zip"):
        assert settle_url(f"zip://x::{end}") == f"zip://x::{tmp_path}/a b.zip"
        assert reference_url(f"zip://x@y?z::{end}") == (f"zip://x@y?z::{tmp_path}/a b.zip", False)


def test_a_file_url_that_names_two_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a b.h5").touch()
    url = f"file://{tmp_path}/a%20b.h5"
    assert find_one_path(url) == str(tmp_path / "a b.h5")
    (tmp_path / "a%20b.h5").touch()
    with pytest.raises(UnclearURL, match="another one"):
        find_one_path(url)
    (tmp_path / "a b.h5").unlink()
    assert find_one_path(url) == str(tmp_path / "a%20b.h5")
    os.symlink("a%20b.h5", tmp_path / "a b.h5")
    assert find_one_path(url) == str(tmp_path / "a%20b.h5")


@pytest.mark.parametrize(
    ("url", "written", "is_hidden"),
    [
        ("https://host/a b.h5?version=2&x=%23", "https://host/a%20b.h5?version=2&x=%23", False),
        ("https://me@host/a.h5", "https://host/a.h5", True),
        ("https://host/a.h5?x=1&sig=2", "https://host/a.h5", True),
        ("simplecache::filecache::s3://bucket/a.h5", "s3://bucket/a.h5", False),
        ("s3://bucket/tokens?secret.h5", "s3://bucket/tokens?secret.h5", False),
        ("s3://bucket/a?b.h5?versionId=x", "s3://bucket/a?b.h5?versionId=x", False),
        ("s3://bucket/a.h5?X-Amz-Signature=x", "s3://bucket/a.h5", True),
        ("abfs://container@account.dfs.core.windows.net/a", "abfs://container@account.dfs.core.windows.net/a", False),
        ("zip://me@host.h5::https://me@host/a.zip?key=1", "zip://me@host.h5::https://host/a.zip", True),
    ],
)
def test_references_hold_all_of_a_url_but_secrets(url: str, written: str, is_hidden: bool) -> None:
    assert reference_url(url) == (written, is_hidden)


def test_a_file_whose_name_looks_like_a_cached_one_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("simplecache::a.h5", "a.h5"):
        (tmp_path / name).touch()
    assert reference_url("simplecache::a.h5") == (str(tmp_path / "simplecache::a.h5"), False)
