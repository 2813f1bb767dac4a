from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from h5zarr.containers.icechunk.icechunk_container import IcechunkContainer
from h5zarr.containers.icechunk.storage import check_place, container_store, find_place, open_storage
from h5zarr.errors import OutputError
from h5zarr.io.location import Location

icechunk = pytest.importorskip("icechunk")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The S3 settings that Icechunk gets."""
    found: list[dict[str, Any]] = []
    for name in ("s3_storage", "s3_store"):
        monkeypatch.setattr(icechunk, name, lambda **options: found.append(options))
    return found


def test_repositories_are_in_directories_and_in_buckets(tmp_path: Path) -> None:
    assert find_place(Location.parse(f"icechunk+file://{tmp_path}/a%20b")).directory == str(tmp_path / "a b")
    place = find_place(Location.parse("icechunk+s3://bucket/deep/repository/"))
    assert (place.bucket, place.prefix) == ("bucket", "deep/repository")
    assert IcechunkContainer().recognise_output(Location.parse("icechunk+file:/x"))
    assert not IcechunkContainer().recognise_output(Location.parse("icechunk.json"))


@pytest.mark.parametrize(
    "url", ["icechunk+", "icechunk+data", "icechunk+gs://bucket/x", "icechunk+s3://", "icechunk+file://"]
)
def test_other_places_are_refused_with_what_to_give_instead(url: str) -> None:
    with pytest.raises(OutputError) as caught:
        find_place(Location.parse(url))
    assert "icechunk+file:///directory" in caught.value.remedy


def test_keys_in_a_url_are_refused_and_not_shown() -> None:
    with pytest.raises(OutputError) as caught:
        find_place(Location.parse("icechunk+s3://key:hush@bucket/x"))
    assert "hush" not in str(caught.value)


def test_options_may_be_in_the_words_of_fsspec(calls: list[dict[str, Any]]) -> None:
    place = find_place(Location.parse("icechunk+s3://bucket"))
    given = {"key": "k", "secret": "s", "token": "t", "client_kwargs": {"region_name": "eu-west-1"}}
    open_storage(place, {**given, "endpoint_url": "http://host:9000"})
    open_storage(place, {"anon": True})
    open_storage(place, {"anon": False})
    first, anonymous, usual = calls
    assert first == {
        "bucket": "bucket",
        "prefix": None,
        "access_key_id": "k",
        "secret_access_key": "s",
        "session_token": "t",
        "region": "eu-west-1",
        "endpoint_url": "http://host:9000",
        "allow_http": True,
        "force_path_style": True,
    }
    assert anonymous == {"bucket": "bucket", "prefix": None, "anonymous": True}
    assert usual == {"bucket": "bucket", "prefix": None, "from_env": True}


def test_unknown_options_are_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="no option profile"):
        check_place(Location.parse("icechunk+s3://bucket"), {"profile": "research"})
    with pytest.raises(OutputError, match="no option anonymous"):
        check_place(Location.parse(f"icechunk+file://{tmp_path}/x"), {"anon": True})


def test_no_secret_is_kept_with_a_container(calls: list[dict[str, Any]]) -> None:
    options = {"key": "k", "secret": "s", "token": "t", "endpoint_url": "https://host", "profile": "p"}
    container_store("s3://bucket/", options)
    container_store("s3://bucket/", {"anon": True})
    assert calls == [
        {"endpoint_url": "https://host", "allow_http": False, "force_path_style": True, "s3_compatible": True},
        {"anonymous": True, "s3_compatible": False},
    ]
