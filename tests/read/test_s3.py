"""References and files in a bucket, through s3fs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr

from h5zarr.commands.translate.translate import translate
from h5zarr.errors import SourceChanged, SourceError
from h5zarr.io.access import Access
from h5zarr.io.source import open_source
from h5zarr.io.span import Span
from h5zarr.store import open_store
from tests.io.policies import EXACT
from tests.s3 import s3_server

s3fs = pytest.importorskip("s3fs")
pytest.importorskip("moto.server")
pytestmark = pytest.mark.filterwarnings(
    "ignore:datetime.datetime.utcnow:DeprecationWarning", "ignore:unclosed:ResourceWarning"
)

VALUES = np.arange(600 * 16384, dtype="<i2").reshape(600, 16384)
URL = "s3://bucket/some dir/file%20#1.h5"


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, Any]]:
    with s3_server() as started:
        yield started


@pytest.fixture
def bucket(options: dict[str, Any], tmp_path: Path) -> Any:
    """A bucket with a file of 20 MB, more than is read whole."""
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as made:
        made.create_dataset("v", data=VALUES, chunks=(1, 16384))
    made = make_bucket(options, "bucket")
    made.put_file(str(path), URL)
    return made


def make_bucket(options: dict[str, Any], name: str) -> Any:
    """Make an empty bucket, whatever other tests have left in it; return the file system that has it."""
    filesystem = s3fs.S3FileSystem(**options, skip_instance_cache=True)
    if filesystem.exists(name):
        filesystem.rm(name, recursive=True)
    filesystem.mkdir(name)
    return filesystem


def test_a_file_in_a_bucket_is_read_with_and_without_references(bucket: Any, options: dict[str, Any]) -> None:
    translate(URL, "s3://bucket/refs.json", storage_options=options, output_options=options)
    for url in (URL, "s3://bucket/refs.json"):
        store = open_store(url, storage_options=options)
        assert np.array_equal(zarr.open_group(store, mode="r")["v"][5:40, ::7], VALUES[5:40, ::7])
        store.close()


def test_options_may_be_given_by_protocol(bucket: Any, options: dict[str, Any], tmp_path: Path) -> None:
    translate(URL, tmp_path / "refs.json", storage_options=options)
    store = open_store(tmp_path / "refs.json", storage_options={"s3": options, "https": {}})
    assert np.array_equal(zarr.open_group(store, mode="r")["v"][7], VALUES[7])


def test_an_object_that_was_replaced_is_noticed(bucket: Any, options: dict[str, Any], tmp_path: Path) -> None:
    translate(URL, tmp_path / "refs.json", storage_options=options)
    size = bucket.info(URL)["size"]
    bucket.pipe_file(URL, bytes(size))
    store = open_store(tmp_path / "refs.json", storage_options=options)
    with pytest.raises(SourceChanged, match="since it was translated: its ETag is no longer"):
        zarr.open_group(store, mode="r")["v"][0]


def test_a_scan_notices_that_an_object_was_replaced(bucket: Any, options: dict[str, Any]) -> None:
    with open_source(URL, Access(storage_options=options, network=EXACT)) as source:
        source.read_many([Span(0, 8)])
        bucket.pipe_file(URL, bytes(source.nbytes))
        with pytest.raises(SourceChanged, match="since it was opened: its ETag is no longer"):
            source.read_many([Span(source.nbytes - 10, 10)])
        assert (source.log.requests, source.log.nbytes) == (2, 8)


def test_a_new_version_of_an_object_is_an_error_too(options: dict[str, Any]) -> None:
    filesystem = make_bucket(options, "versions")
    keeping = {"Status": "Enabled"}
    filesystem.call_s3("put_bucket_versioning", Bucket="versions", VersioningConfiguration=keeping)
    filesystem.pipe_file("s3://versions/file.h5", bytes(5000))
    with open_source(
        "s3://versions/file.h5", Access(storage_options=options, network=replace(EXACT, first_read_nbytes=512))
    ) as source:
        assert source.identity.version is not None
        filesystem.pipe_file("s3://versions/file.h5", bytes([1]) * 5000)
        with pytest.raises(SourceChanged, match="since it was opened: its ETag is no longer"):
            source.read_many([Span(1000, 10)])
        assert (source.log.requests, source.log.nbytes) == (2, 512)


def test_a_missing_object_and_wrong_options_say_what_to_check(options: dict[str, Any]) -> None:
    make_bucket(options, "bucket")
    with pytest.raises(SourceError, match="there is no such file"):
        open_store("s3://bucket/no.json", storage_options=options)
    with pytest.raises(SourceError, match="the file system has no storage option named nonsense"):
        open_store("s3://bucket/no.json", storage_options={"nonsense": 1})
    with pytest.raises(SourceError, match="endpoint_url is not the URL of a server") as caught:
        open_store("s3://bucket/no.json", storage_options={**options, "endpoint_url": "localhost:9000"})
    assert caught.value.remedy.startswith("It starts with http:// or https://")
    with pytest.raises(SourceError, match="a URL that ends with a slash names a directory") as caught:
        open_store("s3://bucket/no/", storage_options=options)
    assert "a file in it" in caught.value.remedy
