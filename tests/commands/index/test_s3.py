"""A job over a bucket of an S3 server, which writes its index into another one."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import pytest

import h5zarr
from h5zarr.cli import main
from h5zarr.commands.catalog.catalog import CATALOG
from h5zarr.commands.catalog.rows import Row, Status
from h5zarr.commands.index import dispatch
from h5zarr.commands.index.run_record import RUN
from h5zarr.errors import OutputError, SourceError, SourceGone
from tests.commands.index.jobs import GOOD, OWN_FILES, SAMPLES, rows_of, unmarked
from tests.s3 import s3_server

s3fs = pytest.importorskip("s3fs")
pytest.importorskip("moto.server")
pytestmark = pytest.mark.filterwarnings(
    "ignore:datetime.datetime.utcnow:DeprecationWarning", "ignore:unclosed:ResourceWarning"
)

# Common and unusual names of objects.
ODD = (
    "with space.nc",
    "per%cent %20.nc",
    "hash#1.nc",
    "question?.nc",
    "{braces}.nc",
    "brackets[1].nc",
    "brackets1.nc",
    "Größe 海.nc",
    "quote\"and'.nc",
    "back\\slash.nc",
    "star*.nc",
    "colon:1.nc",
    "two::colons.nc",
    "..nc",
    "up/../../../climbing.nc",
    "_h5zarr/catalog.parquet.nc",
    "twice//slash.nc",
    "Capital.nc",
    "capital.nc",
    f"{'long' * 60}.nc",
    "/".join(["deep" * 12] * 18) + ".nc",
)


@dataclass(frozen=True)
class Bucket:
    """A bucket with sources in `data`, for an index in `refs`."""

    filesystem: Any
    options: dict[str, Any]
    name: str

    @property
    def pattern(self) -> str:
        return f"s3://{self.name}/data/**/*.nc"

    @property
    def out(self) -> str:
        return f"s3://{self.name}/refs/product"

    def put(self, name: str, content: bytes) -> None:
        self.filesystem.pipe_file(f"{self.name}/data/{name}", content)

    def url(self, name: str) -> str:
        return f"s3://{self.name}/data/{name}"

    def written(self) -> set[str]:
        self.filesystem.invalidate_cache()
        return {name.removeprefix(f"{self.name}/refs/product/") for name in self.filesystem.find(f"{self.name}/refs")}

    def rows(self) -> dict[str, Row]:
        return {
            source.removeprefix(f"s3://{self.name}/data/"): row
            for source, row in rows_of(self.out, self.options).items()
        }


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, Any]]:
    with s3_server() as started:
        yield started


@pytest.fixture
def bucket(options: dict[str, Any]) -> Bucket:
    """A bucket with three objects. What moto knows is one for all servers of a process: the name is a new one."""
    made = Bucket(s3fs.S3FileSystem(**options), options, f"index-{secrets.token_hex(6)}")
    made.filesystem.mkdir(made.name)
    for name in GOOD:
        made.put(f"2024/{Path(name).stem}.nc", (SAMPLES / name).read_bytes())
    return made


def run(bucket: Bucket, threads: ThreadPoolExecutor, **choices: Any) -> h5zarr.IndexReport:
    return h5zarr.index(
        bucket.pattern,
        bucket.out,
        storage_options=bucket.options,
        output_options=bucket.options,
        executor=threads,
        **choices,
    )


def check_output(bucket: Bucket, name: str, tmp_path: Path) -> None:
    """Fail unless the output of an object is what `translate` writes."""
    h5zarr.translate(bucket.url(name), tmp_path / "expected.json", storage_options=bucket.options)
    found = bucket.filesystem.cat_file(f"{bucket.out}/{bucket.rows()[name].output}")
    assert found == (tmp_path / "expected.json").read_bytes()


def test_a_bucket_is_indexed_into_another_place_and_a_second_run_does_nothing(
    bucket: Bucket, threads: ThreadPoolExecutor, tmp_path: Path
) -> None:
    assert run(bucket, threads).counts()["indexed"] == 3
    names = {f"2024/{Path(name).stem}.nc" for name in GOOD}
    assert bucket.written() == {f"{name}.json" for name in names} | OWN_FILES
    for name in names:
        check_output(bucket, name, tmp_path)

    def modified() -> dict[str, object]:
        found = bucket.filesystem.find(bucket.out, detail=True).values()
        return {one["name"]: one["LastModified"] for one in found if not one["name"].endswith(f"/{RUN}")}

    before = modified()
    again = run(bucket, threads)
    assert (again.unchanged_count, again.indexed_count, again.requests, again.is_good) == (3, 0, 0, True)
    assert modified() == before


def test_only_the_object_that_has_changed_is_read_again(
    bucket: Bucket, threads: ThreadPoolExecutor, tmp_path: Path
) -> None:
    run(bucket, threads)
    bucket.put("2024/ocean.nc", (SAMPLES / GOOD[1]).read_bytes())
    bucket.put("2025/new.nc", (SAMPLES / GOOD[1]).read_bytes())
    report = run(bucket, threads)
    assert (report.changed_count, report.new_count, report.unchanged_count) == (1, 1, 2)
    check_output(bucket, "2024/ocean.nc", tmp_path)
    assert run(bucket, threads).unchanged_count == 4


def test_vanished_objects_are_kept_until_they_are_pruned(bucket: Bucket, threads: ThreadPoolExecutor) -> None:
    run(bucket, threads)
    bucket.filesystem.rm_file(bucket.url("2024/ocean.nc"))
    assert run(bucket, threads).vanished == [bucket.url("2024/ocean.nc")]
    assert "2024/ocean.nc.json" in bucket.written()
    assert bucket.rows()["2024/ocean.nc"].status is Status.VANISHED
    assert run(bucket, threads, prune=True).pruned_count == 1
    assert "2024/ocean.nc.json" not in bucket.written()
    assert set(bucket.rows()) == {"2024/links_compact.nc", "2024/netcdf4_coordinates.nc"}
    assert run(bucket, threads, prune=True).vanished == []


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_pruning_one_output_leaves_those_alone_that_its_name_would_match_as_a_pattern(
    form: str, bucket: Bucket, threads: ThreadPoolExecutor
) -> None:
    content = (SAMPLES / GOOD[1]).read_bytes()
    for name in ("a[1].nc", "a1.nc", "a1.nc.parquet.nc", "a.nc"):
        bucket.put(name, content)
    run(bucket, threads, format=form)
    bucket.filesystem.rm_file(bucket.url("a[1].nc"))
    kept = {row.output for name, row in bucket.rows().items() if name != "a[1].nc"}
    assert run(bucket, threads, format=form, prune=True).pruned_count == 1
    found = bucket.written() - OWN_FILES
    assert {name if form == "json" else name.partition(".parquet/")[0] + ".parquet" for name in found} == kept
    assert run(bucket, threads, format=form).unchanged_count == 6


def test_a_broken_object_is_recorded_and_the_rest_is_indexed(bucket: Bucket, threads: ThreadPoolExecutor) -> None:
    bucket.put("2024/broken.nc", b"<html>")
    report = run(bucket, threads)
    assert (report.indexed_count, report.failed_count) == (3, 1)
    row = bucket.rows()["2024/broken.nc"]
    assert (row.status, row.attempts) == (Status.FAILED, 1)
    assert "not an HDF5 or netCDF file" in row.reason
    assert run(bucket, threads).retried_count == 1


def test_a_dry_run_writes_nothing_into_the_bucket(bucket: Bucket, threads: ThreadPoolExecutor) -> None:
    assert run(bucket, threads, dry_run=True).new_count == 3
    assert bucket.written() == set()


def test_objects_with_odd_names_have_outputs_of_their_own(
    bucket: Bucket, threads: ThreadPoolExecutor, tmp_path: Path
) -> None:
    for number, name in enumerate(ODD):
        bucket.put(name, (SAMPLES / GOOD[number % 3]).read_bytes())
    report = run(bucket, threads)
    assert [(row.source, row.reason) for row in report.failed] == []
    assert report.indexed_count == len(ODD) + 3
    rows = bucket.rows()
    assert {name for name in ODD if name not in rows} == set()
    outputs = {row.output for row in rows.values()}
    assert bucket.written() == outputs | OWN_FILES
    assert len({name.casefold() for name in outputs}) == len(ODD) + 3
    for name in ODD:
        check_output(bucket, name, tmp_path)
    assert run(bucket, threads).unchanged_count == len(ODD) + 3
    for name in ODD:
        bucket.filesystem.rm_file(bucket.url(name))
    assert run(bucket, threads, prune=True).pruned_count == len(ODD)
    assert bucket.written() == {f"2024/{Path(name).stem}.nc.json" for name in GOOD} | OWN_FILES


@pytest.mark.parametrize("form", ["json.zst", "parquet"])
def test_a_lost_catalog_in_a_bucket_is_made_anew(form: str, bucket: Bucket, threads: ThreadPoolExecutor) -> None:
    run(bucket, threads, format=form)
    before = {name: (row.identity, row.output, row.chunks) for name, row in bucket.rows().items()}
    bucket.filesystem.rm_file(f"{bucket.out}/{CATALOG}")
    assert run(bucket, threads, format=form, rebuild_catalog=True).unchanged_count == 3
    assert {name: (row.identity, row.output, row.chunks) for name, row in bucket.rows().items()} == before


def test_a_bucket_for_the_index_that_is_not_there_is_an_error_at_once(
    bucket: Bucket, threads: ThreadPoolExecutor
) -> None:
    with pytest.raises(OutputError, match="s3://no-such-bucket/refs"):
        h5zarr.index(
            bucket.pattern,
            "s3://no-such-bucket/refs",
            storage_options=bucket.options,
            output_options=bucket.options,
            executor=threads,
        )


def test_a_bucket_of_sources_that_is_not_there_is_an_error(bucket: Bucket, threads: ThreadPoolExecutor) -> None:
    for name in ("s3://no-such-bucket/*.nc", "s3://no-such-bucket/data"):
        with pytest.raises(SourceError, match="s3://no-such-bucket"):
            h5zarr.index(
                name, bucket.out, storage_options=bucket.options, output_options=bucket.options, executor=threads
            )
    assert bucket.written() == set()  # not even a lease


def test_an_output_that_cannot_be_written_for_a_while_is_tried_again(
    bucket: Bucket, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch.Dispatcher.__init__, "__kwdefaults__", {"backoff_seconds": (0.0, 0.0)})
    before, refused = s3fs.S3FileSystem._put_file, []

    async def put_file(self: Any, local: str, path: str, *rest: Any, **choices: Any) -> Any:
        if path.endswith(".nc.json") and len(refused) < 4:
            refused.append(path)
            raise OSError("SlowDown")
        return await before(self, local, path, *rest, **choices)

    monkeypatch.setattr(s3fs.S3FileSystem, "_put_file", put_file)
    s3fs.S3FileSystem.clear_instance_cache()  # each instance has bound it
    assert run(bucket, threads).indexed_count == 3
    assert len(refused) == 4


def test_the_command_tells_of_a_bucket_without_its_keys(
    bucket: Bucket, tmp_path: Path, capfd: pytest.CaptureFixture[str], threads_for_command: None
) -> None:
    key, secret = "AKIAhunter2Hunter2", "hunter2Hunter2"
    bucket.put("2024/broken.nc", b"<html>")
    words = []
    for name, value in {**bucket.options, "key": key, "secret": secret, "token": secret}.items():
        words += ["--storage-options", f"{name}={value}", "--output-options", f"{name}={value}"]
    report, metrics = tmp_path / "run.json", tmp_path / "run.prom"
    told = ["--report", str(report), "--metrics", str(metrics)]
    assert main(["index", bucket.pattern, bucket.out, "--workers", "1", "--log-format", "json", *told, *words]) == 1
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [line["event"] for line in lines].count("indexed") == 3
    seeing = [word for name, word in zip(words[::2], words[1::2], strict=True) if name == "--storage-options"]
    assert main(["status", bucket.out, *(f"--storage-option={word}" for word in seeing)]) == 1
    assert main(["index", bucket.pattern, "s3://no-such-bucket/", *words]) == 2
    captured = capfd.readouterr()
    assert "3 indexed, 0 indexed with problems, 1 failed" in captured.out
    assert "h5zarr: s3://no-such-bucket: no such bucket" in captured.err
    written = [bucket.filesystem.cat_file(f"{bucket.out}/{name}") for name in bucket.written()]
    for text in (*written, captured.out.encode(), captured.err.encode(), report.read_bytes(), metrics.read_bytes()):
        assert secret.encode() not in text
    assert not any(secret in json.dumps(line) for line in lines)


def test_objects_that_a_source_refers_to_are_watched(
    bucket: Bucket, threads: ThreadPoolExecutor, tmp_path: Path
) -> None:
    import h5py

    with h5py.File(tmp_path / "main.nc", "w") as file:
        file.create_dataset("raw", (6,), "<i4", external=[("values.raw", 0, 24)])
        file["linked"] = h5py.ExternalLink("later.h5", "/values")
    with h5py.File(tmp_path / "later.h5", "w") as file:
        file["values"] = [1, 2, 3]
    bucket.put("2024/main.nc", (tmp_path / "main.nc").read_bytes())
    bucket.put("2024/values.raw", bytes(24))
    first = run(bucket, threads)
    assert (first.indexed_count, first.with_problems_count) == (3, 1)
    assert run(bucket, threads).unchanged_count == 4
    bucket.put("2024/values.raw", bytes([1] * 24))  # which only its ETag tells
    for expected in ((0, 1), (1, 0)):
        report = run(bucket, threads)
        assert (report.indexed_count, report.with_problems_count, report.unchanged_count) == (*expected, 3)
        assert run(bucket, threads).unchanged_count == 4
        bucket.put("2024/later.h5", (tmp_path / "later.h5").read_bytes())
    related = json.loads(bucket.rows()["2024/main.nc"].related)
    assert set(related) == {bucket.url("2024/values.raw"), bucket.url("2024/later.h5")}
    assert all(state["etag"] for state in related.values())


def test_directories_among_several_sources_need_no_slash(bucket: Bucket, threads: ThreadPoolExecutor) -> None:
    for name in ("one/a.nc", "two/b.nc", "three"):
        bucket.put(name, (SAMPLES / "ocean.nc").read_bytes())
    sources = [bucket.url(name) for name in ("one", "two", "three", "one/a.nc")]
    options = {"storage_options": bucket.options, "output_options": bucket.options, "executor": threads}
    report = h5zarr.index(sources, bucket.out, **options)
    assert (report.indexed_count, report.failed_count) == (3, 0)
    with pytest.raises(SourceGone, match="four: there is no such file or directory") as caught:
        h5zarr.index([bucket.url("one"), bucket.url("four")], bucket.out, **options)
    assert caught.value.remedy == "Check the URL, the endpoint_url and the credentials."


def test_the_documented_queries_read_the_catalog_in_a_bucket(bucket: Bucket, threads: ThreadPoolExecutor) -> None:
    duckdb, pandas = pytest.importorskip("duckdb"), pytest.importorskip("pandas")
    page = (Path(__file__).parents[3] / "docs" / "indexing.md").read_text()
    code = next(block for block in page.split("```python\n") if "register_filesystem" in block).partition("```")[0]
    report = h5zarr.index(
        bucket.pattern,
        bucket.out,
        storage_options=bucket.options,
        output_options=bucket.options,
        executor=threads,
    )
    code = code.replace('{"profile": "research"}', "options").replace('profile="research"', "**options")
    lines = [f"found.append({line})" if "sql" in line else line for line in code.splitlines()]
    found: list[Any] = []
    names = {"pandas": pandas, "duckdb": duckdb, "fsspec": fsspec, "found": found, "options": bucket.options}
    exec("\n".join(lines).replace("s3://refs/ocean", bucket.out), names)
    assert [relation.fetchall() for relation in found] == [[("indexed", report.listed_count)]] * 2


def test_the_status_of_an_index_that_cannot_be_listed_names_the_index(bucket: Bucket) -> None:
    wrong = {**bucket.options, "endpoint_url": "nonsense"}
    with pytest.raises(SourceError, match=f"^{bucket.out}: endpoint_url is not the URL of a server"):
        h5zarr.status(bucket.out, storage_options=wrong)


def test_repositories_without_a_region_fail_before_the_first_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("icechunk")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    keys = ["--output-options", "key=test", "--output-options", "secret=test"]
    assert main(["index", str(tmp_path / "missing"), "s3://bucket/refs", "--format", "icechunk", *keys]) == 2
    assert unmarked(capsys.readouterr().err) == (
        "h5zarr: icechunk+s3://bucket/refs: Icechunk needs the region of the bucket\n"
        "  Give region=us-east-1, or whichever it is, in --output-options, or set AWS_REGION.\n"
    )


def test_repositories_with_an_unknown_option_fail_before_the_first_file_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("icechunk")
    words = ["index", str(tmp_path / "missing"), "s3://bucket/refs", "--format", "icechunk"]
    assert main([*words, "--output-options", "regoin=x"]) == 2
    assert "icechunk+s3://bucket/refs: Icechunk has no option regoin here\n" in capsys.readouterr().err
