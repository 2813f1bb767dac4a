from __future__ import annotations

import ast
import os
import pickle
from pathlib import Path

import pytest

import h5zarr
from h5zarr.io.location import Location
from h5zarr.io.urls import UnclearURL

PACKAGE = Path(h5zarr.__file__).parent


def test_secrets_are_never_shown() -> None:
    location = Location.parse("simplecache::https://me:hush@host/a.nc?sig=hush")
    for shown in (str(location), repr(location), f"{location}", f"{[location]}"):
        assert "hush" not in shown
    assert str(location) == "simplecache::https://host/a.nc"
    assert location.for_references() == ("https://host/a.nc", True)
    with pytest.raises(TypeError):
        os.fspath(location)  # type: ignore[call-overload]


def test_a_location_is_parsed_once_and_can_be_sent() -> None:
    location = Location.parse("s3://bucket/a.nc?versionId=x")
    assert Location.parse(location) is location
    assert pickle.loads(pickle.dumps(location)) == location
    assert (location.protocol, location.path, location.is_chain) == ("s3", None, False)
    assert location.address == "s3://bucket/a.nc"


def test_paths_keep_their_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Location.parse("a.nc").path == "a.nc"
    assert Location.parse(Path("a.nc")).path == "a.nc"
    assert Location.parse("~/a.nc").path == str(tmp_path / "a.nc")
    assert Location.parse(f"file://{tmp_path}/a%20b.nc").path == str(tmp_path / "a b.nc")
    assert Location.parse("a.nc").for_references() == (str(tmp_path / "a.nc"), False)


def test_a_name_that_looks_like_a_chain_is_a_path_if_the_file_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Location.parse("zip::a.nc").is_chain
    (tmp_path / "zip::a.nc").touch()
    location = Location.parse("zip::a.nc")
    assert (location.path, location.is_chain, location.protocol) == ("zip::a.nc", False, "file")


def test_a_url_that_names_two_files_is_not_opened(tmp_path: Path) -> None:
    for name in ("a%20b.nc", "a b.nc"):
        (tmp_path / name).touch()
    with pytest.raises(UnclearURL):
        Location.parse(f"file://{tmp_path}/a%20b.nc").find_path()
    assert Location.parse(tmp_path / "a%20b.nc").find_path() == str(tmp_path / "a%20b.nc")


def test_a_chain_is_read_by_its_last_link() -> None:
    location = Location.parse("zip://a.nc::https://host/b.zip?key=x")
    assert (location.protocol, location.address) == ("https", "zip://a.nc")
    assert location.links == ["zip://a.nc", "https://host/b.zip?key=x"]


@pytest.mark.parametrize("text", ["~a\0b", "~\ud800/a.nc"])
def test_a_home_that_no_user_can_have_is_a_path_as_written(text: str) -> None:
    assert Location.parse(text).path == text
    assert str(Location.parse(text)) == text


def test_absolute_and_without_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Location.parse("a.nc").absolute() == str(tmp_path / "a.nc")
    far = Location.parse("https://me:hush@host/a.nc?name=b")
    assert far.absolute() == far.text
    assert far.without_secrets() == "https://host/a.nc?name=b"


def test_the_parts_of_a_url_are_those_of_the_link_that_names_the_file() -> None:
    far = Location.parse("simplecache::https://me:hush@host/a/b.nc?key=x")
    assert far.split_root() == ("https://me:hush@host", "/a/b.nc")
    assert (far.query, far.plain_path()) == ("?key=x", "host/a/b.nc")
    inside = Location.parse("zip://a/b.nc::https://host/c.zip?key=x")
    assert inside.split_root() == ("zip://", "a/b.nc")
    assert (inside.query, inside.plain_path()) == ("", "a/b.nc")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3://bucket/a.nc?versionId=x", True),
        ("s3://bucket/a.nc", False),
        ("https://host/a.nc?versionId=x", False),
        ("a.nc?versionId=x", False),
    ],
)
def test_only_the_query_of_a_bucket_selects_a_version(text: str, expected: bool) -> None:
    assert Location.parse(text).selects_version is expected


def test_fsspec_changes_some_escapes_of_a_web_server() -> None:
    assert Location.parse("https://host/a%3Bb.nc").is_changed_by_fsspec
    assert not Location.parse("s3://bucket/a%3Bb.nc").is_changed_by_fsspec
    assert Location.parse("https://host/a%3Bb c.nc?d=%20").unescaped() == "https://host/a;b c.nc?d=%20"
    assert Location.parse("s3://bucket/a%3Bb.nc").unescaped() == "s3://bucket/a%3Bb.nc"


def test_files_inside_a_directory(tmp_path: Path) -> None:
    assert Location.parse(f"{tmp_path}/").inside("a b/c").path == f"{tmp_path}/a b/c"
    assert Location.parse("https://host/a/?key=x").inside("b c/d").text == "https://host/a/b%20c/d?key=x"
    assert Location.parse("simplecache::s3://bucket/a").inside("b c").text == "simplecache::s3://bucket/a/b c"


def test_files_beside_a_url_keep_its_secrets_but_not_its_version() -> None:
    signed = Location.parse("simplecache::https://me:hush@host/a/b.nc?key=x")
    assert signed.with_path_of(Location.parse("https://host/c.nc")) == "simplecache::https://me:hush@host/c.nc?key=x"
    version = Location.parse("s3://bucket/a.nc?versionId=x")
    assert version.with_path_of(Location.parse("s3://bucket/b.nc")) == "s3://bucket/b.nc"


def test_listed_files_have_the_form_of_the_pattern() -> None:
    assert Location.parse("s3://bucket/*.nc").with_listed("bucket/a.nc") == "s3://bucket/a.nc"
    assert Location.parse("simplecache::s3://bucket/*").with_listed("bucket/a") == "simplecache::s3://bucket/a"
    assert Location.parse("https://host/*.nc").with_listed("https://host/a.nc") == "https://host/a.nc"


def test_a_mark_comes_before_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    marked = Location.parse("a").marked("icechunk+")
    assert marked.text == f"icechunk+file://{tmp_path}/a"
    assert marked.has_mark("icechunk+")
    assert marked.without_mark("icechunk+").path == str(tmp_path / "a")
    assert not Location.parse("icechunk.json").has_mark("icechunk+")
    assert Location.parse("s3://b/c//").without_slash().text == "s3://b/c"


def test_modules_outside_io_use_locations() -> None:
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith("io/") and (taken := _taken_from_urls(path)):
            found[name] = taken
    assert found == {}


def _taken_from_urls(path: Path) -> set[str]:
    """Return the names that a module imports from `h5zarr.io.urls`, and the module itself if it imports that."""
    taken: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = {alias.name for alias in node.names} if isinstance(node, ast.Import | ast.ImportFrom) else set()
        if isinstance(node, ast.ImportFrom) and node.module == "h5zarr.io.urls":
            taken |= names
        elif isinstance(node, ast.ImportFrom) and node.module == "h5zarr.io":
            taken |= names & {"urls"}
        else:
            taken |= names & {"h5zarr.io.urls"}
    return taken
