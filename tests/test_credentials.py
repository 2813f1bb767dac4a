"""Credentials reach the server by each of the ways in which people give them; the server says which it saw."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from h5zarr.cli import main
from h5zarr.cli.options import storage_option
from h5zarr.errors import SourceError, SourceGone
from h5zarr.io.access import Access
from h5zarr.io.ranges import open_ranges, read_one
from h5zarr.io.source import open_source
from h5zarr.io.span import Span
from tests.collections_of_files import PROJECT
from tests.made_files import make_plain
from tests.s3 import s3_server
from tests.servers import Counts, RangeServer

s3fs = pytest.importorskip("s3fs")
pytestmark = pytest.mark.filterwarnings(
    "ignore:datetime.datetime.utcnow:DeprecationWarning", "ignore:unclosed:ResourceWarning"
)
URL = "s3://bucket/plain.h5"
Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RangeServer]:
    path = make_plain(tmp_path_factory.mktemp("credentials") / "plain.h5")
    with RangeServer({"/bucket/plain.h5": path.read_bytes()}) as server:
        yield server


@pytest.fixture
def server(started: RangeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RangeServer:
    """The server, as if it had just been started; nothing in the environment leads to any credentials."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "FSSPEC_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    s3fs.S3FileSystem.clear_instance_cache()
    started.counts = Counts()
    return started


def inspect(*options: str) -> int:
    """Run the command with storage options; return its exit code."""
    arguments = [word for option in options for word in ("--storage-options", option)]
    return main(["inspect", URL, "--json", *arguments])


def keys_seen(server: RangeServer) -> set[str | None]:
    """Return the access keys in the requests; None for a request that is not signed."""
    headers = [one.get("authorization", "") for one in server.counts.headers]
    return {found[1] if (found := re.search(r"Credential=([^/]+)/", header)) else None for header in headers}


def test_key_and_secret_are_storage_options(server: RangeServer) -> None:
    assert inspect("key=AKIA1", "secret=s", "token=t", f"endpoint_url={server.url('')}") == 0
    assert keys_seen(server) == {"AKIA1"}
    assert {one["x-amz-security-token"] for one in server.counts.headers} == {"t"}


def test_options_have_parts(server: RangeServer) -> None:
    parts = json.dumps({"endpoint_url": server.url(""), "region_name": "eu-west-7"})
    assert inspect("key=AKIA2", "secret=s", f"client_kwargs={parts}") == 0
    assert keys_seen(server) == {"AKIA2"}
    assert all("/eu-west-7/s3/" in one["authorization"] for one in server.counts.headers)


def test_the_environment_has_credentials_and_endpoint(server: RangeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA3")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url(""))
    assert inspect() == 0
    assert keys_seen(server) == {"AKIA3"}


def test_a_profile_has_credentials_and_endpoint(server: RangeServer, tmp_path: Path) -> None:
    credentials = "[default]\naws_access_key_id=no\naws_secret_access_key=no\n"
    credentials += "[research]\naws_access_key_id=AKIA4\naws_secret_access_key=s\n"
    (tmp_path / "AWS_SHARED_CREDENTIALS_FILE").write_text(credentials)
    (tmp_path / "AWS_CONFIG_FILE").write_text(f"[profile research]\nendpoint_url = {server.url('')}\n")
    assert inspect("profile=research") == 0
    assert keys_seen(server) == {"AKIA4"}


def test_a_missing_profile_is_reported(server: RangeServer, capsys: Captured) -> None:
    assert inspect("profile=nobody", f"endpoint_url={server.url('')}") == 2
    assert "no usable credentials were found (ProfileNotFound)" in capsys.readouterr().err
    assert server.counts.urls == []


def test_anonymous_requests_are_not_signed(server: RangeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "no")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "no")
    assert inspect("anon=true", f"endpoint_url={server.url('')}") == 0
    assert main(["inspect", URL, "--anon", "--storage-options", f"endpoint_url={server.url('')}"]) == 0
    assert keys_seen(server) == {None}


def test_missing_credentials_are_reported_with_a_remedy(server: RangeServer, capsys: Captured) -> None:
    assert inspect(f"endpoint_url={server.url('')}") == 2
    told = capsys.readouterr().err
    assert "no usable credentials were found (NoCredentialsError)" in told
    assert "--anon" in told
    assert server.counts.urls == []


@pytest.mark.parametrize("way", ["a file", "variables"])
def test_fsspec_is_configured_outside_of_the_command(server: RangeServer, tmp_path: Path, way: str) -> None:
    environment = dict(os.environ)
    if way == "a file":
        settings = {"s3": {"key": "AKIA5", "secret": "s", "endpoint_url": server.url("")}}
        (tmp_path / "conf.json").write_text(json.dumps(settings))
        environment["FSSPEC_CONFIG_DIR"] = str(tmp_path)
    else:
        environment |= {"FSSPEC_S3_KEY": "AKIA5", "FSSPEC_S3_SECRET": "s", "FSSPEC_S3_ENDPOINT_URL": server.url("")}
    script = "import sys, h5zarr; h5zarr.translate(sys.argv[1]); print(len(h5zarr.open_store(sys.argv[1])._opened.url))"
    command = [sys.executable, "-c", script, URL]
    subprocess.run(command, env=environment, cwd=PROJECT, check=True, capture_output=True)
    assert keys_seen(server) == {"AKIA5"}
    assert len(server.counts.urls) == 2


def test_a_file_that_is_opened_in_another_way_has_the_same_credentials(server: RangeServer) -> None:
    # Scans and reads have file systems of their own.
    options = {"key": "AKIA6", "secret": "s", "endpoint_url": server.url(""), "requester_pays": True}
    reader = open_ranges(URL, Access(storage_options=options))
    assert bytes(read_one(reader, Span(0, 8))) == b"\x89HDF\r\n\x1a\n"
    reader.close()
    assert keys_seen(server) == {"AKIA6"}
    assert {one["x-amz-request-payer"] for one in server.counts.headers} == {"requester"}


def test_user_and_password_in_a_url_are_sent(server: RangeServer) -> None:
    url = server.url("/bucket/plain.h5").replace("://", "://me:pw@")
    assert main(["inspect", url, "--json"]) == 0
    assert {one["authorization"] for one in server.counts.headers} == {"Basic bWU6cHc="}


def test_a_bucket_that_is_missing_is_not_a_missing_file() -> None:
    pytest.importorskip("moto.server")
    with s3_server() as options:
        s3fs.S3FileSystem(**options).mkdir("with-no-file")  # all servers of a process have the same buckets
        with pytest.raises(SourceGone, match="there is no such file"):
            open_source("s3://with-no-file/no.h5", Access(storage_options=options))
        with pytest.raises(SourceGone, match="there is no such bucket or container") as caught:
            open_source("s3://no-bucket/no.h5", Access(storage_options=options))
        assert "endpoint_url" in caught.value.remedy


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("InvalidAccessKeyId", "the access key is not known"),
        ("SignatureDoesNotMatch", "the secret does not match the access key"),
        ("ExpiredToken", "the credentials have expired"),
        ("RequestTimeTooSkewed", "the clock of this machine is wrong"),
        ("AccessDenied", "access was refused"),
        ("SomethingWith-AKIA-InIt", "access was refused"),
    ],
)
def test_s3_error_codes_are_explained(code: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from botocore.exceptions import ClientError

    answer: Any = {
        "Error": {"Code": code, "Message": "AKIA7 is no good"},
        "ResponseMetadata": {"HTTPStatusCode": 403},
    }

    async def refuse(*_: Any, **__: Any) -> None:
        raise s3fs.errors.translate_boto_error(ClientError(answer, "GetObject"))

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", refuse)
    with pytest.raises(SourceError, match=words) as caught:
        open_source(URL, Access(storage_options={"key": "AKIA7", "secret": "s"}))
    assert "AKIA" not in str(caught.value)


# --- storage options on the command line


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("anon=true", ("anon", True)),
        ("profile=research", ("profile", "research")),
        ("retries=3", ("retries", 3)),
        ("key=12345", ("key", "12345")),
        ("secret=1e5", ("secret", "1e5")),
        ("password=", ("password", "")),
        ("account_key=abc==", ("account_key", "abc==")),
        ('client_kwargs={"verify": false}', ("client_kwargs", {"verify": False})),
        ('token={"type": "service_account"}', ("token", {"type": "service_account"})),
        ('name="12345"', ("name", "12345")),
    ],
)
def test_values_of_storage_options_are_json_or_text(text: str, option: tuple[str, Any]) -> None:
    assert storage_option(text) == option


def test_invalid_json_is_reported_with_its_position(capsys: Captured) -> None:
    assert main(["inspect", URL, "--storage-options", "client_kwargs={'endpoint_url': 'hunter2'}"]) == 2
    told = capsys.readouterr().err
    assert "client_kwargs starts like JSON, but at character 2" in told
    assert "double quotes" in told
    assert "hunter2" not in told


@pytest.mark.parametrize("words", [["--storage-options", "hunter2"], ["--secret=hunter2"], ["--secret", "hunter2"]])
def test_arguments_that_are_wrong_are_not_repeated(words: list[str], capsys: Captured) -> None:
    assert main(["inspect", URL, *words]) == 2
    told = capsys.readouterr().err
    assert "usage:" in told
    assert words[0].partition("=")[0] in told
    assert "hunter2" not in told
