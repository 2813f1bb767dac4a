"""Containers in a bucket: read back, replaced, and what is there when the writer dies."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import h5py
import numpy as np
import pytest
import xarray as xr

from h5zarr.commands.translate.translate import translate
from h5zarr.errors import H5ZarrError, SourceChanged, SourceGone
from tests.s3 import s3_server

s3fs = pytest.importorskip("s3fs")
pytest.importorskip("moto.server")
pytestmark = pytest.mark.filterwarnings(
    "ignore:datetime.datetime.utcnow:DeprecationWarning", "ignore:unclosed:ResourceWarning"
)

OLD, NEW = np.arange(6000, dtype="<i4"), np.arange(6000, dtype="<i4") + 7


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, Any]]:
    with s3_server() as started:
        yield started


@pytest.fixture
def bucket(options: dict[str, Any]) -> str:
    """A bucket of this test's own: all servers of a process have the same ones."""
    filesystem = s3fs.S3FileSystem(**options, skip_instance_cache=True, use_listings_cache=False)
    name = f"containers-{uuid4().hex}"
    filesystem.mkdir(name)
    return name


def make_source(path: Path, values: Any) -> Path:
    """Write a file with three arrays, whose chunks are too large to be inlined."""
    with h5py.File(path, "w") as file:
        for number in range(3):
            file.create_dataset(f"v{number}", data=values + number, chunks=(1000,))
    return path


def read(url: str, options: dict[str, Any]) -> list[list[int]]:
    with xr.open_dataset(url, engine="h5zarr", storage_options={"s3": options}, allow=["/"]) as opened:
        return [opened[f"v{number}"].values.tolist() for number in range(3)]


def expected(values: Any) -> list[list[int]]:
    return [(values + number).tolist() for number in range(3)]


def objects(options: dict[str, Any], url: str) -> dict[str, bytes]:
    filesystem = s3fs.S3FileSystem(**options, skip_instance_cache=True, use_listings_cache=False)
    path = url.removeprefix("s3://")
    return {name.removeprefix(path): filesystem.cat_file(name) for name in filesystem.find(path)}


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("name", ["refs.json", "refs.json.zst", "refs.parquet"])
def test_a_container_is_written_replaced_and_read(
    name: str, zarr_format: int, bucket: str, options: dict[str, Any], tmp_path: Path
) -> None:
    url = f"s3://{bucket}/some dir/{name}"
    for number, values in enumerate((OLD, NEW)):
        source = make_source(tmp_path / f"{number}.h5", values)
        translate(source, url, zarr_format=zarr_format, output_options=options)
        assert read(url, options) == expected(values)
    if name == "refs.parquet":
        assert sorted(objects(options, url)) == ["/.zmetadata", *(f"/v{number}/refs.0.parq" for number in range(3))]


def test_files_that_the_new_references_lack_are_gone(bucket: str, options: dict[str, Any], tmp_path: Path) -> None:
    url = f"s3://{bucket}/refs.parquet"
    translate(make_source(tmp_path / "old.h5", OLD), url, output_options=options)
    with h5py.File(tmp_path / "new.h5", "w") as file:
        file.create_dataset("v1", data=NEW, chunks=(1000,))
    translate(tmp_path / "new.h5", url, output_options=options)
    assert sorted(objects(options, url)) == ["/.zmetadata", "/v1/refs.0.parq"]


def test_opening_reads_the_metadata_and_then_the_files_of_what_is_looked_at(
    bucket: str, options: dict[str, Any], tmp_path: Path
) -> None:
    url = f"s3://{bucket}/refs.parquet"
    translate(make_source(tmp_path / "old.h5", OLD), url, output_options=options)
    filesystem = s3fs.S3FileSystem(**options, skip_instance_cache=True, use_listings_cache=False)
    for number in (0, 2):
        filesystem.pipe_file(f"{url}/v{number}/refs.0.parq", b"nobody looks at this")
    with xr.open_dataset(url, engine="h5zarr", storage_options={"s3": options}, allow=["/"]) as opened:
        assert opened.sizes == {"phony_dim_0": 6000}
        np.testing.assert_array_equal(opened.v1.values, OLD + 1)
        with pytest.raises(H5ZarrError, match=r"v2/refs\.0\.parq"):
            _ = opened.v2.values


@pytest.mark.parametrize("stale", [".zmetadata", "v1/refs.0.parq"])
def test_a_mixture_of_two_containers_is_an_error(
    stale: str, bucket: str, options: dict[str, Any], tmp_path: Path
) -> None:
    url = f"s3://{bucket}/refs.parquet"
    translate(make_source(tmp_path / "old.h5", OLD), url, output_options=options)
    kept = objects(options, url)[f"/{stale}"]
    translate(make_source(tmp_path / "new.h5", NEW), url, output_options=options)
    filesystem = s3fs.S3FileSystem(**options, skip_instance_cache=True, use_listings_cache=False)
    filesystem.pipe_file(f"{url}/{stale}", kept)
    with pytest.raises(SourceChanged, match=r"refs\.0\.parq does not belong to \.zmetadata"):
        read(url, options)


def test_readers_of_replaced_references_get_an_error(bucket: str, options: dict[str, Any], tmp_path: Path) -> None:
    url = f"s3://{bucket}/refs.parquet"
    translate(make_source(tmp_path / "old.h5", OLD), url, output_options=options)
    with xr.open_dataset(url, engine="h5zarr", storage_options={"s3": options}, allow=["/"]) as opened:
        translate(make_source(tmp_path / "new.h5", NEW), url, output_options=options)
        with pytest.raises(SourceChanged, match="does not belong"):
            _ = opened.v0.values


# Writers that are killed, as by kill -9, before the request with this number that changes the bucket. Each is a fork of
# a process that has imported everything, which takes most of the time.
_KILLED = """
import json, os, signal, sys
import pyarrow.parquet, s3fs
from h5zarr.commands.translate.translate import translate

call, count = s3fs.S3FileSystem._call_s3, 0

def write(source, url, options, moment):
    async def counted(self, method, *arguments, **named):
        global count
        if method.startswith(("put", "delete", "create", "upload", "complete")):
            if count == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1
        return await call(self, method, *arguments, **named)

    s3fs.S3FileSystem._call_s3 = counted
    translate(source, url, output_options=options)

for line in sys.stdin:
    if (child := os.fork()) == 0:
        write(*json.loads(line))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def writers() -> Iterator[subprocess.Popen[str]]:
    """A process that starts writers."""
    command, pipe = [sys.executable, "-W", "ignore", "-c", _KILLED], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture
def killed_at(writers: subprocess.Popen[str], options: dict[str, Any]) -> Callable[[int, Path, str], bool]:
    """Write references, and return whether the writer was killed before it had ended."""

    def write(moment: int, source: Path, url: str) -> bool:
        assert writers.stdin is not None
        assert writers.stdout is not None
        writers.stdin.write(json.dumps([str(source), url, options, moment]) + "\n")
        writers.stdin.flush()
        code = int(writers.stdout.readline())
        assert code in (0, -signal.SIGKILL)
        return code != 0

    return write


def test_a_writer_of_json_that_is_killed_leaves_the_old_references(
    bucket: str, options: dict[str, Any], tmp_path: Path, killed_at: Callable[[int, Path, str], bool]
) -> None:
    url = f"s3://{bucket}/refs.json"
    translate(make_source(tmp_path / "old.h5", OLD), url, output_options=options)
    new = make_source(tmp_path / "new.h5", NEW)
    assert killed_at(0, new, url)
    assert read(url, options) == expected(OLD)
    assert not killed_at(1, new, url)  # it is one request
    assert read(url, options) == expected(NEW)


def test_a_writer_of_parquet_that_is_killed_leaves_the_old_references_the_new_or_none(
    bucket: str, options: dict[str, Any], tmp_path: Path, killed_at: Callable[[int, Path, str], bool]
) -> None:
    url = f"s3://{bucket}/refs.parquet"
    old, new = make_source(tmp_path / "old.h5", OLD), make_source(tmp_path / "new.h5", NEW)
    found = []
    # .zmetadata is taken away, then the rest; three files are sent, and .zmetadata.
    for moment in (0, 1, 2, 5, 6):
        translate(old, url, output_options=options)
        assert killed_at(moment, new, url) == (moment < 6)
        try:
            values = read(url, options)
        except SourceGone:
            found.append("none")
        else:
            found.append("old" if values == expected(OLD) else "new" if values == expected(NEW) else "WRONG")
    assert found == ["old", "none", "none", "none", "new"]
    assert killed_at(3, new, url)
    translate(new, url, output_options=options)
    assert read(url, options) == expected(NEW)


def test_a_large_container_is_sent_in_parts_with_the_metadata_last(
    bucket: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("h5zarr.containers.parquet.parquet_output._BATCH_NBYTES", 1)
    url = f"s3://{bucket}/refs.parquet"
    translate(make_source(tmp_path / "old.h5", OLD), url, output_options=options)
    assert read(url, options) == expected(OLD)
