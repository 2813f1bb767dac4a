"""The configuration file of an archive: what it may say, what it means, and what is said about mistakes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from h5zarr.cli import main
from h5zarr.cli.config_file import ConfigError, read_collections
from h5zarr.cli.index_config import _options, _parser
from h5zarr.commands.catalog.place import Place
from h5zarr.commands.index.lease import Lease
from h5zarr.commands.index.workers import ExecutorWorkers
from tests.collections_of_files import SAMPLES
from tests.collectors import MetricsServer
from tests.commands.index.jobs import rows_of

SECRET = "hunter2"
TWO = """\
[defaults]
workers = 1
report = "{collection}.json"

[collection.ocean]
sources = "data/ocean*.nc"
out = "refs/{collection}"

[collection.links]
sources = ["data/links.h5"]
out = "refs/links/"
format = "parquet"
"""


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with data, in which nobody is: paths must not depend on the working directory."""
    (tmp_path / "archive" / "data").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    shutil.copy(SAMPLES / "ocean.nc", tmp_path / "archive" / "data" / "ocean.nc")
    shutil.copy(SAMPLES / "links_compact.h5", tmp_path / "archive" / "data" / "links.h5")
    with ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr("h5zarr.commands.index.index.LocalWorkers", lambda count: ExecutorWorkers(pool, count))
        yield tmp_path / "archive"


def write(archive: Path, text: str) -> str:
    """Write the file, and return its path."""
    (archive / "archive.toml").write_text(text, encoding="utf-8")
    return str(archive / "archive.toml")


def read(archive: Path, text: str, *names: str, **environment: str) -> dict[str, dict[str, Any]]:
    """Return the values of each collection."""
    found = read_collections(write(archive, text), _options(_parser()), names, environment)
    return {one.name: dict(one.values) for one in found}


def faults(archive: Path, text: str, *names: str, **environment: str) -> list[str]:
    """Return what is wrong, without the name of the file."""
    with pytest.raises(ConfigError) as caught:
        read(archive, text, *names, **environment)
    lines = str(caught.value).splitlines()
    prefix = f"{archive}/archive.toml:"
    assert all(line.startswith(prefix) for line in lines)
    return [line.removeprefix(prefix) for line in lines]


def collection(*lines: str) -> str:
    """Return a file with one collection, whose own lines start at line 4."""
    return "\n".join(["[collection.ocean]", 'sources = "data"', 'out = "refs"', *lines])


# --- runs


def test_all_collections_are_indexed_each_with_its_options(archive: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "--config", write(archive, TWO), "--run-id", "night-1"]) == 0
    assert (archive / "refs/ocean/ocean.nc.json").exists()
    assert (archive / "refs/links/links.h5.parquet").is_dir()
    assert [row.found_by for row in rows_of(archive / "refs/ocean").values()] == [f"{archive}/data/ocean*.nc"]
    told = {name: json.loads((archive / f"{name}.json").read_text()) for name in ("ocean", "links")}
    assert {one["run_id"] for one in told.values()} == {"night-1"}
    assert [told[name]["collection"] for name in told] == list(told)
    said = capfd.readouterr().err
    assert "[night-1 ocean] 1 new, 0 changed" in said
    assert "[night-1 links] 1 file indexed" in said


def test_json_lines_name_the_collection(archive: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "--config", write(archive, TWO), "--log-format", "json"]) == 0
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [line["collection"] for line in lines] == ["ocean"] * 3 + ["links"] * 3
    assert len({line["run_id"] for line in lines}) == 1


def test_some_collections_can_be_chosen(archive: Path) -> None:
    assert main(["index", "--config", write(archive, TWO), "--collection", "links", "--quiet"]) == 0
    assert not (archive / "refs/ocean").exists()
    assert (archive / "refs/links").exists()


def test_the_exit_code_is_the_worst_and_the_others_still_run(archive: Path) -> None:
    path = write(archive, TWO)
    (archive / "data" / "ocean_broken.nc").write_bytes(b"<html>")
    assert main(["index", "--config", path, "--quiet"]) == 1
    assert (archive / "refs/links").exists()
    (archive / "data" / "links.h5").unlink()
    (archive / "data" / "ocean_new.nc").write_bytes(b"<html>")
    assert main(["index", "--config", path, "--quiet"]) == 2
    assert [json.loads((archive / f"{name}.json").read_text())["exit_code"] for name in ("ocean", "links")] == [1, 2]


def test_a_signal_ends_the_command_before_the_next_collection(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from h5zarr.cli.stopping import Stop

    def stopped(arguments: object, stop: Stop) -> int:
        stop.set(15)
        return 143

    monkeypatch.setattr("h5zarr.cli.index.run_job", stopped)
    assert main(["index", "--config", write(archive, TWO)]) == 143


def test_the_command_line_goes_before_the_file(archive: Path) -> None:
    path = write(archive, TWO)
    words = ["--format", "json.gz", "--report", "mine-{collection}.json", "--quiet", "--exclude", "/sst"]
    assert main(["index", "--config", path, *words]) == 0
    assert (archive / "refs/links/links.h5.json.gz").exists()
    assert (archive.parent / "elsewhere" / "mine-ocean.json").exists()  # relative to the working directory
    assert not (archive / "ocean.json").exists()
    assert [row.arrays for row in rows_of(archive / "refs/ocean").values()] == [5]


def test_tables_of_the_command_line_and_the_file_are_merged(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("h5zarr.cli.index.run_job", lambda job, stop: seen.append(job) or 0)
    text = '[defaults]\nnetwork = { attempts = 2, concurrency = 4 }\nlimits = { metadata_nbytes = "8MB" }\n'
    text += collection("network = { attempts = 3 }", 'exclude = ["a"]', "workers = 2")
    words = ["--network", "concurrency=9", "--exclude", "b", "--workers=7"]
    assert main(["index", "--config", write(archive, text), *words]) == 0
    (job,) = seen
    assert job.network == {"attempts": 3, "concurrency": 9}
    assert (job.limits, job.exclude, job.workers) == ({"metadata_nbytes": 8_000_000}, ["b"], 7)
    assert (job.max_attempts, job.name, job.prune) == (5, "{path}", False)


def test_a_list_on_the_command_line_replaces_the_sources(archive: Path) -> None:
    (archive / "list.txt").write_text(f"{archive}/data/ocean.nc\n")
    words = ["--config", write(archive, collection()), "--files-from", str(archive / "list.txt")]
    assert main(["index", *words, "--quiet"]) == 0
    assert set(rows_of(archive / "refs")) == {f"{archive}/data/ocean.nc"}


def test_a_secret_from_the_environment_is_used_and_never_shown(
    archive: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PUSH_PASSWORD", SECRET)
    with MetricsServer(401) as server:
        push = f'push_metrics = "http://me:${{PUSH_PASSWORD}}@{server.address}"\nreport = "run.json"'
        assert main(["index", "--config", write(archive, collection(push))]) == 0
    assert len(server.received) == 1
    assert "authorization" in server.received[0].headers
    said = "".join(capfd.readouterr())
    assert "--push-metrics failed" in said
    assert SECRET not in said + (archive / "run.json").read_text()


@pytest.mark.usefixtures("quick_lease")
def test_a_collection_on_which_another_run_works_is_skipped(archive: Path) -> None:
    path = write(archive, TWO)
    with Lease(Place(archive / "refs/ocean")):
        assert main(["index", "--config", path, "--quiet"]) == 0
    assert (archive / "refs/links").exists()


# --- status


def test_status_summarises_all_collections(archive: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(archive, TWO)
    (archive / "data" / "ocean_broken.nc").write_bytes(b"<html>")
    assert main(["index", "--config", path, "--quiet"]) == 1
    capfd.readouterr()
    assert main(["status", "--config", path]) == 1
    said = capfd.readouterr().out
    assert said.startswith("ocean:\n1 indexed, 0 indexed with problems, 1 failed")
    assert "\n\nlinks:\n1 indexed, " in said
    assert main(["status", "--config", path, "--collection", "links", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["links"]["counts"]["indexed"] == 1
    shutil.rmtree(archive / "refs/links")
    assert main(["status", "--config", path, "--json"]) == 2
    captured = capfd.readouterr()
    assert json.loads(captured.out)["links"] is None
    assert "refs/links: no index found" in captured.err


def test_status_reads_an_index_with_the_options_that_write_it(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("h5zarr.cli.status._summarise", lambda out, access: seen.append((out, access)))
    text = collection('storage_options = { anon = true }\noutput_options = { profile = "a", x = 1 }')
    assert main(["status", "--config", write(archive, text), "--storage-options", "profile=b"]) == 2
    assert seen == [
        (str(archive / "refs"), {"storage_options": {"profile": "b", "x": 1}, "anon": False, "network": {}})
    ]


# --- values


def test_every_option_can_be_given(archive: Path) -> None:
    text = collection(
        'format = "json.zst"\nname = "{stem}-{hash}"\nprune = true\nforce = false\ndry_run = true\nstrict = true',
        'max_attempts = 3\nmax_failures = 0\nfail_on = "any"\nrebuild_catalog = true\nwait = 1.5\nworkers = 4',
        'at_once = 8\ndask = "tcp://host:8786"\ngroup = "/a"\ninclude = ["x*"]\nexclude = []\nzarr_format = 2',
        'nz = true\nchunk_bytes = "8MiB"\ninline_bytes = 0\nmax_inline_bytes = 1000\njoinable = true\nanon = true',
        'storage_options = { client_kwargs = { region_name = "eu" } }\nnetwork = { timeout_seconds = 60.5 }',
        'limits = { depth = 10 }\nallow = ["other"]\noutput_options = {}\noverwrite = true\nlog_format = "json"',
        'report = "r.json"\nmetrics = "m.prom"\nquiet = true\njob = "{collection}!"\npush_metrics = "http://g:1"',
        'otel = "http://c:4318"\nalong = ["time"]\ncube = ["c.json,files=a*", { out = "{collection}.json" }]',
    )
    values = read(archive, text)["ocean"]
    known = set(_options(_parser())) - {"config", "collection", "run_id", "files_from"}
    assert set(values) == known | {"sources", "out"}
    assert (values["chunk_bytes"], values["wait"], values["zarr_format"]) == (8 * 2**20, 1.5, 2)
    assert (values["allow"], values["report"]) == ([str(archive / "other")], str(archive / "r.json"))
    assert (values["sources"], values["job"]) == ([str(archive / "data")], "ocean!")
    assert [one["out"] for one in values["cube"]] == [str(archive / "c.json"), str(archive / "ocean.json")]
    assert values["storage_options"] == {"client_kwargs": {"region_name": "eu"}}


@pytest.mark.parametrize("place", ["s3://bucket/**/*.nc", "/data/**/*.nc", "https://host/a.nc"])
def test_absolute_places_stay(place: str, archive: Path) -> None:
    assert read(archive, f'[collection.a]\nsources = "{place}"\nout = "s3://refs/a/"')["a"]["sources"] == [place]


def test_a_directory_with_brackets_is_not_taken_for_a_pattern(archive: Path) -> None:
    odd = archive.parent / "[old] *"
    shutil.move(archive, odd)
    assert main(["index", "--config", write(odd, collection().replace('"data"', '"data/*.nc"')), "--quiet"]) == 0
    assert set(rows_of(odd / "refs")) == {f"{odd}/data/ocean.nc"}
    assert main(["index", "--config", write(odd, collection()), "--quiet"]) == 0
    assert len(rows_of(odd / "refs")) == 2


def test_standard_streams_are_no_paths(archive: Path) -> None:
    text = '[collection.a]\nfiles_from = "-"\nout = "refs"\nreport = "-"'
    values = read(archive, text)["a"]
    assert (values["files_from"], values["report"]) == ("-", "-")


def test_variables_are_replaced_where_values_are_not_shown(archive: Path) -> None:
    text = collection('storage_options = { key = "${K}", deep = { list = ["x${K}y${L}"] }, n = 1 }')
    values = read(archive, text, K="1", L="$")["ocean"]
    assert values["storage_options"] == {"key": "1", "deep": {"list": ["x1y$"]}, "n": 1}


def test_a_password_in_a_url_may_have_any_character(archive: Path) -> None:
    text = collection('push_metrics = "http://me:${P}@host"', 'otel = "${URL}"')
    values = read(archive, text, P="a/b@c:%", URL="http://me:x%40@host:4318")["ocean"]
    assert values["push_metrics"] == "http://me:a%2Fb%40c%3A%25@host"
    assert values["otel"] == "http://me:x%40@host:4318"


def test_only_the_chosen_collections_need_their_variables(archive: Path) -> None:
    text = collection("") + '\n[collection.b]\nsources = "x"\nout = "y"\nstorage_options.key = "${NOT_SET}"'
    assert list(read(archive, text, "ocean")) == ["ocean"]
    assert faults(archive, text) == ["8: storage_options: the environment variable NOT_SET is not set"]


# --- mistakes

MISTAKES = {
    "a mistyped option": ("formatt = 'json'", "4: there is no option formatt: did you mean format?"),
    "an option with a hyphen": ("max-failures = 1", "4: there is no option max-failures: did you mean max_failures?"),
    "the id of a run": ("run_id = 'x'", "4: there is no option run_id"),
    "a number as text": ("workers = 'many'", "4: workers: 'many' is not a positive number"),
    "a wrong number": ("workers = 0", "4: workers: '0' is not a positive number"),
    "no number at all": ("zarr_format = 'x'", "4: zarr_format: 'x' is not a number"),
    "a list for a number": ("workers = [1]", "4: workers: expected a number or a string"),
    "a number for a switch": ("prune = 1", "4: prune: expected true or false"),
    "text for a list": ("include = 'sst'", "4: include: expected a list of strings"),
    "a number for text": ("group = 1", "4: group: expected a string"),
    "a choice": ("fail_on = 'anny'", "4: fail_on: 'anny' is not one of new, any, never: did you mean any?"),
    "a choice of numbers": ("zarr_format = 4", "4: zarr_format: 4 is not one of 2, 3"),
    "text for a table": ("network = 'fast'", "4: network: expected a table such as { name = value }"),
    "a setting": ("network = { attemps = 2 }", "attempts: did you mean attempts?"),
    "the value of a setting": ("network.attempts = true", "4: network: attempts: expected a number"),
    "a size": ("chunk_bytes = '8XB'", "4: chunk_bytes: '8XB': expected a size such as 8MB, 8MiB or 8000000"),
    "a format": ("format = 'jsn'", "4: format: 'jsn' is not one of json, json.gz, "),
    "a URL": ("push_metrics = 'gateway'", "4: push_metrics: expected a URL such as http://pushgateway:9091"),
    "a list": ("files_from = 'list.txt'", "1: the collection ocean needs either `sources` or `files_from`"),
    "another table": ("[default]\nx = 1", "[collection.NAME]: did you mean defaults?"),
    "defaults that are none": ("[defaults.defaults]", "4: there is no option defaults"),
    "a table in a list": ("[[collection.x]]", "1: expected at least one table [collection.NAME]"),
    "a name": ("[collection.'../x']\nsources = 'a'\nout = 'b'", "4: the name of a collection has letters"),
    "nothing": ("[collection.x]", "4: the collection x needs `out`, the directory for the references"),
    "no sources": ("[collection.x]\nsources = []\nout = 'b'", "5: sources: expected at least one source"),
    "an output": ("[collection.x]\nsources = 'a'\nout = 1", "6: out: expected a string"),
    "the same output": (
        "[collection.x]\nsources = 'a'\nout = 'refs/'",
        "6: the collections ocean and x have the same `out`: use {collection} in its name",
    ),
    "the same file for all": (
        "[collection.x]\nsources = 'a'\nout = 'b'\n[defaults]\nmetrics = 'm.prom'",
        "8: the collections ocean and x have the same `metrics`",
    ),
}


@pytest.mark.parametrize(("lines", "expected"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_reported_with_its_line(lines: str, expected: str, archive: Path) -> None:
    assert expected in "\n".join(faults(archive, collection(lines)))


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (f'storage_options = {{ secret = "{SECRET}" }}', "storage_options.secret"),
        (f'output_options.key = "{SECRET}"', "output_options.key"),
        (f'storage_options = {{ client_kwargs = {{ headers = {{ Authorization = "{SECRET}" }} }} }}', "Authorization"),
        (f'storage_options = {{ auth = ["me", "{SECRET}"] }}', "storage_options.auth"),
        (f'storage_options.endpoint_url = "https://me:{SECRET}@host"', "endpoint_url"),
        (f'push_metrics = "http://me:{SECRET}@host"', "push_metrics"),
        (f'allow = ["https://me:{SECRET}@host/data"]', "allow"),
        (f'report = "https://host/r.json?X-Amz-Signature={SECRET}"', "report"),
    ],
)
def test_secrets_in_the_file_are_refused_without_showing_them(line: str, name: str, archive: Path) -> None:
    (fault,) = faults(archive, collection(line))
    assert fault.startswith("4: ")
    assert f'{name}: put secrets into an environment variable, and write "${{NAME}}" here' in fault
    assert SECRET not in fault


def test_what_only_looks_like_a_secret_is_taken(archive: Path) -> None:
    text = collection('storage_options = { token = "anon", requester_pays = true, key = "${K}" }', K := 'name = "x"')
    assert read(archive, text, K="k")["ocean"]["name"] == K.partition('"')[2].rstrip('"')


def test_variables_where_values_are_shown_are_refused(archive: Path) -> None:
    (fault,) = faults(archive, collection('report = "${HOME}/x.json"'), HOME="/root")
    assert fault == (
        "4: report: only storage_options, output_options, push_metrics and otel may contain ${NAME}: "
        "other values are shown in logs and reports"
    )


def test_everything_that_is_wrong_is_reported_at_once_in_order(archive: Path) -> None:
    text = "[defaults]\nworkres = 1\nprune = 2\n" + collection("x = 1", 'format = "y"') + "\n[nothing]\n"
    assert [fault.partition(":")[0] for fault in faults(archive, text)] == ["2", "3", "7", "8", "9"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[collection.a]\nout = ", "2: Invalid value"),
        ("a = 1\na = 2\n", "2: Cannot overwrite a value"),
        ("[collection.a]\n[collection.a]\n", "2: Cannot declare ('collection', 'a') twice"),
        ('x = """\nabc\n', "Unterminated string"),
    ],
)
def test_a_syntax_error_has_its_line(text: str, expected: str, archive: Path) -> None:
    (fault,) = faults(archive, text)
    assert expected in fault
    assert "(at" not in fault


def test_a_file_that_cannot_be_read_is_named(archive: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "--config", "none.toml"]) == 2
    assert capfd.readouterr().err == "h5zarr: none.toml: No such file or directory\n"
    (archive / "archive.toml").write_bytes(b"\xff\xfe")
    assert main(["status", "--config", str(archive / "archive.toml")]) == 2
    assert "this is not text in UTF-8" in capfd.readouterr().err


def test_a_collection_that_there_is_not_is_refused_with_a_suggestion(
    archive: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write(archive, TWO)
    assert main(["index", "--config", path, "--collection", "ocaen"]) == 2
    assert capfd.readouterr().err == f"h5zarr: {path}:1: there is no collection ocaen: did you mean ocean?\n"
    assert main(["index", "--config", path, "--collection", "zzz"]) == 2
    assert "there is no collection zzz: there are ocean, links" in capfd.readouterr().err
    assert not (archive / "refs").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["index", "data", "refs", "--config", "x.toml"], "give either --config, or sources and OUT"),
        (["status", "refs", "--config", "x.toml"], "give either --config or OUT: with --config, the file names it"),
        (["index", "data", "refs", "--collection", "x"], "give either --config, or sources and OUT"),
        (["status", "refs", "--collection", "x"], "give either --config or OUT"),
    ],
)
def test_places_beside_a_file_are_refused(words: list[str], expected: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert expected in capfd.readouterr().err


def test_a_collection_needs_a_file(archive: Path) -> None:
    from argparse import Namespace

    from h5zarr.cli.index_config import read_archive

    with pytest.raises(ConfigError, match="--collection needs --config FILE"):
        read_archive(Namespace(config=None, collection=["x"]))


def test_one_file_for_the_reports_of_several_collections_is_refused(
    archive: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", "--config", write(archive, TWO), "--report", "all.json"]) == 2
    assert "--report: each collection needs its own: use {collection} in the name" in capfd.readouterr().err
    assert main(["index", "--config", write(archive, TWO), "--report", "all.json", "--collection", "links"]) == 0
    assert os.path.exists("all.json")


def test_places_are_still_required_without_a_file(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "--quiet"]) == 2
    assert "the following arguments are required: SOURCE ... OUT" in capfd.readouterr().err
    assert main(["status"]) == 2
    assert "the following arguments are required: OUT" in capfd.readouterr().err
