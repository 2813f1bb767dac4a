"""What references, and files, may name: a table of who may read what."""

from __future__ import annotations

from pathlib import Path

import pytest

from h5zarr.io.allowed import NotAllowed, check_referred, is_below, is_beside

FAR = "https://host/refs.json"
NEAR = "/data/refs.json"


@pytest.mark.parametrize(
    ("url", "place", "expected"),
    [
        ("/data/a.nc", "/data", True),
        ("/data/a.nc", "/data/", True),
        ("/data/sub/../a.nc", "/data", True),
        ("/data/../etc/passwd", "/data", False),
        ("/database/a.nc", "/data", False),
        ("file:///data/a.nc", "/data", True),
        ("/data/a.nc", "file:///data", True),
        ("/etc/passwd", "/", True),
        ("s3://bucket/raw/a.nc", "s3://bucket/raw", True),
        ("s3://bucket/raw/a.nc", "s3://bucket/", True),
        ("s3://bucket-2/raw/a.nc", "s3://bucket", False),
        ("s3://bucket/raw/../../other/a.nc", "s3://bucket/raw", False),
        ("https://host/raw/%2E%2e/a.nc", "https://host/raw", False),
        ("HTTPS://host/raw/a.nc?x=/../", "https://host/raw", True),
        ("http://host/raw/a.nc", "https://host/raw", False),
        ("sftp://anywhere/a.nc", "sftp://", True),
        ("zip://a.nc::/data/a.zip", "/data", True),
        ("simplecache::/etc/passwd", "/data", False),
        ("dir://a.nc::/data/a", "/data", False),
        ("/data/a.nc", "s3://bucket/", False),
        ("s3://bucket/a.nc", "/", False),
    ],
)
def test_what_is_below_a_place(url: str, place: str, expected: bool) -> None:
    assert is_below(url, place) is expected


@pytest.mark.parametrize(
    ("url", "other", "expected"),
    [
        ("/data/a.h5", "/data/b.h5", True),
        ("/data/a.h5", "/data/sub/b.h5", True),
        ("/data/a.h5", "/b.h5", False),
        ("s3://bucket/a.h5", "s3://bucket/sub/b.h5", True),
        ("s3://bucket/x/a.h5?versionId=7", "s3://bucket/x/b.h5", True),
        ("s3://bucket/x/a.h5", "s3://bucket/b.h5", False),
        ("zip://in/a.h5::s3://b/a.zip", "zip://in/b.h5::s3://b/a.zip", True),
        ("zip://in/a.h5::s3://b/a.zip", "zip://b.h5::s3://b/a.zip", False),
        ("zip://in/a.h5::s3://b/a.zip", "zip://in/b.h5::s3://b/other.zip", False),
        ("simplecache::s3://b/x/a.h5", "simplecache::s3://b/x/b.h5", True),
        ("memory://a.h5", "memory://b.h5", True),
    ],
)
def test_what_is_beside_a_file(url: str, other: str, expected: bool) -> None:
    assert is_beside(url, other) is expected


def test_a_file_behind_a_symbolic_link_is_beside_both(tmp_path: Path) -> None:
    for name in ("real", "links", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "real" / "a.h5").touch()
    (tmp_path / "links" / "a.h5").symlink_to(tmp_path / "real" / "a.h5")
    url = str(tmp_path / "links" / "a.h5")
    found = [is_beside(url, str(tmp_path / name / "b.h5")) for name in ("real", "links", "other")]
    assert found == [True, True, False]


REFUSED = {
    "a path": ("/etc/passwd", "on this machine", "/"),
    "a relative path": ("a.nc", "on this machine", "."),
    "a path of the user": ("~/.ssh/id_rsa", "on this machine", "~"),
    "a URL of a file": ("file:///etc/passwd", "on this machine", "/etc"),
    "a URL of a file, spelt otherwise": ("FILE:/etc/passwd", "on this machine", "/etc"),
    "a URL of a file by another name": ("local:///etc/passwd", "on this machine", "/etc"),
    "the memory of this process": ("memory://a.nc", "on this machine", "memory://"),
    "an archive": ("zip://a.nc::/data/a.zip", "on this machine", "/data"),
    "a cache": ("simplecache::file:///etc/passwd", "on this machine", "/etc"),
    "a chain of caches": ("simplecache::filecache::/etc/passwd", "on this machine", "/etc"),
    "a protocol that logs in": ("sftp://host/a.nc", "protocol 'sftp'", "sftp://host"),
    "a protocol that gives keys away": ("smb://host/share/a.nc", "protocol 'smb'", "smb://"),
    "references": ("reference://a::https://host/r.json", "protocol 'reference'", None),
    "a directory of another file system": ("dir://a::https://host/x", "protocol 'dir'", None),
    "a protocol that nobody has": ("gopher://host/a.nc", "protocol 'gopher'", "gopher://host/"),
    "a path upwards": ("https://host/data/../../a.nc", "contains '..'", None),
    "a path upwards in disguise": ("https://host/data/%2e%2E/a.nc", "contains '..'", None),
    "a path upwards in a bucket": ("s3://bucket/../other/a.nc", "contains '..'", None),
}


@pytest.mark.parametrize(("url", "reason", "place"), REFUSED.values(), ids=REFUSED)
def test_references_from_elsewhere_may_not_name(url: str, reason: str, place: str | None) -> None:
    with pytest.raises(NotAllowed, match=reason) as caught:
        check_referred(url, FAR, ())
    assert "allow" in caught.value.remedy
    if place is not None:
        check_referred(url, FAR, ("s3://unrelated", place))


@pytest.mark.parametrize(
    "url",
    [
        "https://other/a.nc",
        "http://host/a..b/c..nc",
        "s3://bucket/a.nc",
        "gs://bucket/a.nc",
        "az://container/a.nc",
        "abfs://container@account.dfs.core.windows.net/a.nc",
        "zip://a.nc::s3://bucket/a.zip",
        "simplecache::s3://bucket/a.nc",
    ],
)
def test_references_from_elsewhere_may_name(url: str) -> None:
    check_referred(url, FAR, ())


@pytest.mark.parametrize(
    "url", ["/etc/hosts", "../a.nc", "file:///a.nc", "memory://a.nc", "s3://b/a.nc", "https://host/a/../b.nc"]
)
def test_references_on_this_machine_may_name(url: str) -> None:
    check_referred(url, NEAR, ())


@pytest.mark.parametrize("url", ["sftp://host/a.nc", "smb://host/a.nc", "reference://a::/data/r.json"])
def test_references_on_this_machine_may_not_name_either(url: str) -> None:
    with pytest.raises(NotAllowed):
        check_referred(url, NEAR, ())


def test_a_protocol_is_usual_where_the_references_have_it_themselves() -> None:
    check_referred("sftp://host/a.nc", "sftp://host/refs.json", ())
    check_referred("memory://a.nc", "memory://refs.json", ())
