from __future__ import annotations

from h5zarr.io.location import Location
from h5zarr.zarr_model.names import check_reserved, check_urls


def locations(*urls: str) -> list[Location]:
    return [Location.parse(url) for url in urls]


def test_chains_and_several_protocols_are_problems() -> None:
    assert check_urls(locations("s3://a/b", "s3://c/d")) == ()
    assert check_urls(locations("/a/b", "file:///c/d")) == ()
    (problem,) = check_urls(locations("zip://a.nc::https://me:secret@host/a.zip?token=secret"))
    assert "chain" in problem.message
    assert "secret" not in problem.path
    (problem,) = check_urls(locations("s3://a/b", "file:///c"))
    assert "file, s3" in problem.message


def test_names_that_version_3_reserves_cause_a_warning() -> None:
    (warning,) = check_reserved(["/", "/a", "/_b", "/a__b", "/obs/__categories", "/obs/__categories/x"])
    assert warning.path == "/obs/__categories"
    assert "reserves" in warning.message
