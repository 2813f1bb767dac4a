"""A job that is killed again and again, at any moment, and started again, does all of it right in the end."""

from __future__ import annotations

import random
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import h5zarr
from h5zarr.commands.catalog.rows import Status
from h5zarr.commands.index.lease import LEASE
from tests.commands.index.jobs import GOOD, OWN_FILES, SAMPLES, check_index, fill, finish, rows_of, started
from tests.s3 import s3_server


def kill_until_done(chance: random.Random, most: int, longest: float, *arguments: object) -> int:
    """Start a job, and kill it at a random moment, so many times; then let it end. Return how often it was killed."""
    killed = 0
    while killed < most:
        with started(*arguments) as process:
            moment = time.monotonic() + chance.uniform(0, longest)
            while process.poll() is None and time.monotonic() < moment:
                time.sleep(0.005)
            if process.poll() is not None:
                break
            process.kill()
            killed += 1
    began = time.monotonic()
    with started(*arguments) as process:
        code, said = finish(process, 120)
    assert code == 0, said
    assert time.monotonic() - began < 60
    return killed


def kill_locally(seed: int, count: int, most: int, form: str, tmp_path: Path) -> None:
    paths, out = fill(tmp_path / "data", count), tmp_path / "refs"
    kill_until_done(random.Random(seed), most, 3, tmp_path / "data", out, "--workers", 2, "--format", form)
    if form == "json":
        check_index(out, paths, tmp_path)
        return
    rows = rows_of(out)
    assert set(rows) == {str(path) for path in paths}
    assert {row.status for row in rows.values()} == {Status.INDEXED}
    expected = set()
    for source, row in rows.items():
        (tmp_path / row.output).parent.mkdir(exist_ok=True)
        h5zarr.translate(source, tmp_path / row.output)
        for path in (tmp_path / row.output).rglob("*"):
            if path.is_file():
                name = path.relative_to(tmp_path).as_posix()
                expected.add(name)
                if path.name == ".zmetadata":  # the others have a token in them, that is new each time
                    assert (out / name).stat().st_size == path.stat().st_size
    found = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert found == expected | OWN_FILES


def test_a_job_over_files_that_is_killed_at_random_moments_ends_right(tmp_path: Path) -> None:
    kill_locally(8, 24, 3, "json", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("form", ["json", "parquet"])
def test_a_job_that_is_killed_over_and_over_ends_right(form: str, seed: int, tmp_path: Path) -> None:
    kill_locally(seed, 300, 15, form, tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning", "ignore:unclosed:ResourceWarning")
def test_a_job_over_a_bucket_that_is_killed_at_random_moments_ends_right(tmp_path: Path) -> None:
    s3fs = pytest.importorskip("s3fs")
    with s3_server() as options:
        filesystem, bucket = s3fs.S3FileSystem(**options), f"killed-{secrets.token_hex(6)}"
        filesystem.mkdir(bucket)
        names = [f"{number % 3}/{number:03d}.nc" for number in range(60)]
        for number, name in enumerate(names):
            filesystem.pipe_file(f"{bucket}/data/{name}", (SAMPLES / GOOD[number % 3]).read_bytes())
        words = [f"{name}={value}" for name, value in options.items()]
        given = [word for text in words for word in ("--storage-options", text, "--output-options", text)]
        out = f"s3://{bucket}/refs"
        killed = kill_until_done(random.Random(3), 6, 6, f"s3://{bucket}/data/**/*.nc", out, "--workers", 2, *given)
        assert killed > 0
        rows = rows_of(out, options)
        assert set(rows) == {f"s3://{bucket}/data/{name}" for name in names}
        for source, row in rows.items():
            h5zarr.translate(source, tmp_path / "expected.json", storage_options=options)
            assert filesystem.cat_file(f"{out}/{row.output}") == (tmp_path / "expected.json").read_bytes()
        filesystem.invalidate_cache()
        found = {name.removeprefix(f"{bucket}/refs/") for name in filesystem.find(f"{bucket}/refs")}
        assert found == {row.output for row in rows.values()} | OWN_FILES


def test_the_lease_of_a_job_that_was_killed_is_taken_over_at_once(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    paths, out = fill(tmp_path / "data", 2), tmp_path / "refs"
    with started(tmp_path / "data", out, "--workers", 1) as process:
        while not (out / LEASE).exists():
            time.sleep(0.001)
        process.kill()
        process.wait()
    (out / "0" / ".h5zarr-0123456789abcdef.tmp").parent.mkdir(exist_ok=True)
    (out / "0" / ".h5zarr-0123456789abcdef.tmp").write_bytes(b"begun")
    (out / "0" / ".h5zarr-notes.txt").write_bytes(b"not ours")
    began = time.monotonic()
    assert h5zarr.index(tmp_path / "data", out, executor=threads).is_good
    assert time.monotonic() - began < 15  # and not the 20 s for which others are watched
    (out / "0" / ".h5zarr-notes.txt").unlink()
    check_index(out, paths, tmp_path)
