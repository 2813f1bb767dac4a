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
# The modules outside io/ that still take URLs apart as text. New code uses `Location`: this list only gets shorter.
STILL_TEXT = {
    "commands/index/listing.py": {"find_named", "is_chain", "split_chain"},
    "commands/index/watching.py": {"find_named", "split_chain", "split_path", "split_query"},
    "containers/icechunk/locations.py": {"split_path", "split_query"},
    "containers/icechunk/storage.py": {"split_path"},
    "containers/parquet/parquet_reading.py": {"find_named", "split_query"},
    "virtualizarr.py": {"split_query"},
    "zarr_model/names.py": {"is_chain", "is_rewritten", "split_query"},
}


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


def test_modules_outside_io_use_locations() -> None:
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith("io/") and (taken := _taken_from_urls(path)):
            found[name] = taken
    assert found == STILL_TEXT


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
