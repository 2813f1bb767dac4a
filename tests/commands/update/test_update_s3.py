"""A cube in a bucket follows an archive in a bucket, in one state or the next."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import s3fs
import xarray as xr

import h5zarr
from h5zarr.commands.update import updating as module
from h5zarr.containers.parquet.remote_update import RemoteUpdate
from tests.commands.update.living import LivingArchive, whole
from tests.s3 import s3_server

pytestmark = pytest.mark.filterwarnings("ignore:The .fastparquet. engine is deprecated")
OUTPUTS = {"json": "cube.json", "parquet": "cube.parquet"}


@dataclass
class Bucket:
    """A bucket that has the files of a local archive, and a cube."""

    name: str
    archive: LivingArchive
    options: dict[str, Any]
    filesystem: Any

    def send(self) -> None:
        """Bring the bucket up to date with the archive."""
        self.filesystem.invalidate_cache()
        there = {name.rpartition("/")[2]: name for name in self.filesystem.find(f"{self.name}/data")}
        for name, path in there.items():
            if not (self.archive.folder / name).exists():
                self.filesystem.rm_file(path)
        for path in self.archive.folder.glob("*.nc"):
            if path.name in self.archive.changed or path.name not in there:
                self.filesystem.put_file(str(path), f"{self.name}/data/{path.name}")

    def open(self, out: str) -> xr.Dataset:
        with xr.open_dataset(out, engine="h5zarr", storage_options=self.options) as opened:
            return opened.load()

    def update(self, out: str, *sources: str, **how: Any) -> h5zarr.CubeUpdate:
        options = {"storage_options": self.options, "output_options": self.options, "prune": True}
        return h5zarr.update(out, sources or None, **options, **how)


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    (tmp_path / "data").mkdir()
    with s3_server() as options:
        filesystem = s3fs.S3FileSystem(**options, skip_instance_cache=True)
        name = f"bucket-{secrets.token_hex(6)}"  # the server forgets no bucket while this process runs
        filesystem.mkdir(name)
        made = Bucket(name, LivingArchive(tmp_path / "data", random.Random(1)), options, filesystem)
        made.archive.write("h0000.nc", [0, 1])
        made.send()
        yield made


def combine(bucket: Bucket, out: str) -> None:
    options = {"storage_options": bucket.options, "output_options": bucket.options}
    h5zarr.combine(f"s3://{bucket.name}/data/*.nc", out, along="time", **options)
    bucket.archive.settle()


@pytest.mark.parametrize("container", OUTPUTS)
def test_a_cube_in_a_bucket_follows_its_archive(container: str, bucket: Bucket) -> None:
    out = f"s3://{bucket.name}/{OUTPUTS[container]}"
    combine(bucket, out)
    for _ in range(4):
        bucket.archive.pass_hour()
        bucket.send()
        done = bucket.update(out)
        expected = bucket.archive.settle()
        assert done.file_count == len(expected)
        xr.testing.assert_identical(bucket.open(out), whole(expected))


def test_an_icechunk_repository_in_a_bucket_follows_its_archive(bucket: Bucket) -> None:
    pytest.importorskip("icechunk")
    bucket.options = {**bucket.options, "client_kwargs": {"region_name": "us-east-1"}}
    out = f"icechunk+s3://{bucket.name}/repository"
    combine(bucket, out)
    for _ in range(2):
        bucket.archive.pass_hour()
        bucket.send()
        bucket.update(out)
        xr.testing.assert_identical(bucket.open(out), whole(bucket.archive.settle()))


@pytest.mark.parametrize("container", OUTPUTS)
def test_a_reader_in_a_bucket_keeps_the_state_that_it_opened(container: str, bucket: Bucket) -> None:
    out = f"s3://{bucket.name}/{OUTPUTS[container]}"
    combine(bucket, out)
    for name, hours in (("h0001.nc", [2, 3]), ("h-late.nc", [-4, -3])):
        before = whole(list(bucket.archive.folder.glob("*.nc")))
        with xr.open_dataset(out, engine="h5zarr", storage_options=bucket.options) as opened:
            bucket.archive.write(name, hours)
            bucket.send()
            bucket.update(out)
            xr.testing.assert_identical(opened.load(), before)


@pytest.mark.parametrize("step", ["_flush", "_commit"])
def test_an_update_of_parquet_that_ends_early_leaves_one_state_or_the_next(
    step: str, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = f"s3://{bucket.name}/{OUTPUTS['parquet']}"
    combine(bucket, out)
    before = whole(list(bucket.archive.folder.glob("*.nc")))
    bucket.archive.write("h-late.nc", [-4, -3])
    bucket.send()
    after = whole(list(bucket.archive.folder.glob("*.nc")))
    for moment in ("before", "after"):
        with monkeypatch.context() as patch:
            own = getattr(RemoteUpdate, step)

            def end(self: Any, *arguments: Any, own: Any = own, moment: str = moment) -> None:
                if moment == "after":
                    own(self, *arguments)
                raise KeyboardInterrupt

            patch.setattr(RemoteUpdate, step, end)
            with suppress(KeyboardInterrupt):
                bucket.update(out)
        found = bucket.open(out)
        assert found.identical(before) or found.identical(after)
    bucket.update(out)
    xr.testing.assert_identical(bucket.open(out), after)
    bucket.archive.write("h0009.nc", [18, 19])
    bucket.send()
    bucket.update(out)
    newest = whole(list(bucket.archive.folder.glob("*.nc")))
    xr.testing.assert_identical(bucket.open(out), newest)
    xr.testing.assert_equal(open_with_fsspec(bucket, out), newest)


def open_with_fsspec(bucket: Bucket, out: str) -> xr.Dataset:
    """Open references as a program without h5zarr does: with the plain names of the files."""
    where = {"target_options": bucket.options, "remote_options": {**bucket.options, "asynchronous": True}}
    options = {"fo": out, "target_protocol": "s3", "remote_protocol": "s3", **where}
    with xr.open_dataset("reference://", engine="zarr", storage_options=options, backend_kwargs={}) as opened:
        return opened.load()


@pytest.mark.parametrize("container", OUTPUTS)
def test_two_updates_at_once_lose_nothing(container: str, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one finishes while the first one is about to write."""
    out = f"s3://{bucket.name}/{OUTPUTS[container]}"
    combine(bucket, out)
    bucket.archive.write("one.nc", [10, 11])
    bucket.archive.write("two.nc", [20, 21])
    bucket.send()
    write, passed = module.write_cube, list[str]()

    def pass_first(*arguments: Any, **how: Any) -> Any:
        if not passed:
            passed.append("once")
            bucket.update(out, f"s3://{bucket.name}/data/two.nc")
        return write(*arguments, **how)

    monkeypatch.setattr(module, "write_cube", pass_first)
    done = bucket.update(out, f"s3://{bucket.name}/data/one.nc")
    assert [name.rpartition("/")[2] for name in done.added] == ["one.nc"]
    xr.testing.assert_identical(bucket.open(out), whole(list(bucket.archive.folder.glob("*.nc"))))
