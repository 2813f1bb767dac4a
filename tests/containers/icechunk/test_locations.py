from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from h5zarr.containers.icechunk import locations
from h5zarr.containers.icechunk.locations import Located, LocatedFiles, find_location, lacking_prefixes, used_files
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.source_state import SourceState
from h5zarr.errors import OutputError
from h5zarr.io.source import Identity
from h5zarr.zarr_model.hierarchy import Hierarchy
from tests.containers.hierarchies import RawFile, make_array, make_hierarchy

MODIFIED = "2024-05-06T07:08:09.000000001Z"
KNOWN = Identity(nbytes=9, etag='"abc"', mtime=MODIFIED)


def hierarchy_of(tmp_path: Path, url: str) -> Hierarchy:
    """Return a hierarchy with one chunk, which is in the file at `url`."""
    file = RawFile(tmp_path / "raw.bin")
    return replace(make_hierarchy(file, {"/x": make_array(file, np.arange(3))}), urls=(url,))


def locate(tmp_path: Path, url: str, identity: Identity = KNOWN, read_from: str | None = None) -> Located:
    provenance = Provenance("0", (SourceState(read_from or url, identity),))
    hierarchy = hierarchy_of(tmp_path, url)
    located = LocatedFiles(hierarchy, provenance)
    located.prefixes(used_files(hierarchy), "out")
    return located[0]


@pytest.mark.parametrize(
    ("url", "location", "prefix"),
    [
        ("/data/ocean.nc", "file:///data/ocean.nc", "file:///data/"),
        ("/data/a b/ü/o%20#?.nc", "file:///data/a%20b/%C3%BC/o%2520%23%3F.nc", "file:///data/"),
        ("s3://bucket/a b/o%20.nc", "s3://bucket/a%20b/o%2520.nc", "s3://bucket/"),
        ("s3a://bucket/o.nc", "s3://bucket/o.nc", "s3://bucket/"),
        ("gcs://bucket/o.nc", "gs://bucket/o.nc", "gs://bucket/"),
        ("https://host:8443/a%20b/o.nc", "https://host:8443/a%20b/o.nc", "https://host:8443/"),
    ],
)
def test_locations_are_escaped_and_prefixes_never_need_it(tmp_path, url, location, prefix) -> None:
    found = locate(tmp_path, url)
    assert (found.location, found.prefix) == (location, prefix)


def test_etags_are_for_s3_and_times_for_all_others(tmp_path: Path) -> None:
    rounded = datetime(2024, 5, 6, 7, 8, 10, tzinfo=UTC)
    on_s3 = locate(tmp_path, "s3://bucket/o.nc")
    assert (on_s3.etag, on_s3.modified) == ('"abc"', None)
    for url in ("/data/o.nc", "https://host/o.nc", "gs://bucket/o.nc"):
        found = locate(tmp_path, url)
        assert (found.etag, found.modified) == (None, rounded)
    weak = locate(tmp_path, "s3://bucket/o.nc", replace(KNOWN, etag='W/"abc"'))
    assert (weak.etag, weak.modified) == (None, rounded)


@pytest.mark.parametrize("mtime", ["2024-05-06T07:08:09Z", "2024-05-06T07:08:09.000Z", "2024-05-06T07:08:09+00:00"])
def test_whole_seconds_stay(tmp_path: Path, mtime: str) -> None:
    found = locate(tmp_path, "/data/o.nc", Identity(nbytes=9, mtime=mtime))
    assert found.modified == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    assert found.modified.tzinfo is UTC  # Icechunk takes no other


def test_nothing_is_compared_where_nothing_is_known(tmp_path: Path) -> None:
    silent = locate(tmp_path, "/data/o.nc", Identity(nbytes=9))
    elsewhere = locate(tmp_path, "/data/o.nc", read_from="/data/copy.nc")
    assert (silent.etag, silent.modified, elsewhere.etag, elsewhere.modified) == (None, None, None, None)


@pytest.mark.parametrize(
    "url", ["https://user:word@host/o.nc", "https://host/o.nc?token=1", "/data/\udcff.nc", "abfs://container/o.nc"]
)
def test_what_icechunk_cannot_read_is_named_without_secrets(tmp_path: Path, url: str) -> None:
    with pytest.raises(OutputError, match="Icechunk cannot refer to") as caught:
        locate(tmp_path, url)
    assert not {"word", "token"} & set(str(caught.value).replace("=", " ").replace(":", " ").split())


def test_files_without_chunks_need_no_place(tmp_path: Path) -> None:
    hierarchy = replace(hierarchy_of(tmp_path, "/data/o.nc"), urls=("/data/o.nc", "zip://a::b.zip"))
    located = LocatedFiles(hierarchy, Provenance("0"))
    assert located.prefixes(used_files(hierarchy), "out") == {"file:///data/"}
    assert set(located) == {0}


def test_only_containers_that_lack_are_made() -> None:
    prefixes = ("file:///a/b/", "file:///a/", "s3://x/", "s3://y/")
    assert sorted(lacking_prefixes(prefixes, ["s3://x/"])) == ["file:///a/", "s3://y/"]


def test_many_directories_share_a_container() -> None:
    months = [f"file:///data/2026/{month:02}/" for month in range(1, 30)]
    assert lacking_prefixes(months[:16], []) == months[:16]
    assert sorted(lacking_prefixes([*months, "s3://x/"], [])) == ["file:///data/2026/", "s3://x/"]
    assert lacking_prefixes(months[16:17], months[:16]) == ["file:///data/2026/"]
    assert lacking_prefixes(["s3://x/"], months) == ["s3://x/"]
    elsewhere = [*months, "file:///scratch/"]
    assert sorted(lacking_prefixes(elsewhere, [])) == sorted(elsewhere)  # not all files of the machine


@pytest.mark.parametrize(
    "path",
    [
        *("/data/a.nc", "/data/./a.nc", "/data/../a.nc", "/data//a.nc", "/data/a/..", "/data/a/.", "/data/a.nc/"),
        *("/a.nc", "/a b/c.nc", "/data/a%20b.nc", "/data/a:b.nc", "/data/.hidden/a.nc", "/data/..a/b.nc"),
        *("/dätä/a.nc", "/data/é.nc"),
    ],
)
def test_usual_paths_are_located_as_all_others(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = find_location(path), _located(path)
    monkeypatch.setattr(locations, "_is_usual", lambda url: False)
    assert (find_location(path), _located(path)) == found


def _located(path: str) -> Located:
    return LocatedFiles(Hierarchy(nodes={}, urls=(path,)), Provenance("0"))[0]
