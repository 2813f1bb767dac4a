"""Plant secrets where users put them, and collect all output to search for them."""

from __future__ import annotations

import json
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xarray
import zarr

from h5zarr.cli import main

SECRET = "hunter2Hunter2"
BASE64 = "aHVudGVyMkh1bnRlcjI="  # the same, as in a key of Azure


@dataclass(frozen=True, kw_only=True)
class Place:
    """A place for a secret: the URL and storage options for a server at `{host}`, or the environment."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    package: str = "aiohttp"


ENDPOINT = {"endpoint_url": "http://{host}", "config_kwargs": {"retries": {"max_attempts": 0}}}
PLACES = {
    "user": Place(url=f"http://me:{SECRET}@{{host}}/bucket/ocean.h5"),
    "amazon": Place(
        url=f"http://{{host}}/bucket/ocean.h5?X-Amz-Credential={SECRET}%2F20260101&X-Amz-Signature={SECRET}"
    ),
    "sas": Place(url=f"http://{{host}}/bucket/ocean.h5?sv=2024-11-04&se=2030&sp=r&sig={SECRET}%3D"),
    "google": Place(url=f"http://{{host}}/bucket/ocean.h5?X-Goog-Expires=60&X-Goog-Signature={SECRET}"),
    "header": Place(url="http://{host}/bucket/ocean.h5", options={"headers": {"Authorization": f"Bearer {SECRET}"}}),
    "s3": Place(
        url="s3://bucket/ocean.h5",
        options={**ENDPOINT, "key": f"AKIA{SECRET}", "secret": SECRET, "token": SECRET},
        package="s3fs",
    ),
    "s3 environment": Place(
        url="s3://bucket/ocean.h5",
        options=ENDPOINT,
        environment={"AWS_ACCESS_KEY_ID": f"AKIA{SECRET}", "AWS_SECRET_ACCESS_KEY": SECRET},
        package="s3fs",
    ),
    "gs": Place(
        url="gs://bucket/ocean.h5",
        options={"endpoint_url": "http://{host}", "token": "anon", "session_kwargs": {"headers": {"X-Key": SECRET}}},
        package="gcsfs",
    ),
    "az": Place(
        url="az://bucket/ocean.h5",
        options={"connection_string": f"AccountName=acc;AccountKey={BASE64};BlobEndpoint=http://{{host}}/acc;"},
        package="adlfs",
    ),
}


@dataclass(frozen=True)
class Planted:
    """A place with a real server, and all output so far."""

    url: str
    options: dict[str, Any]
    folder: Path
    said: list[str] = field(default_factory=list)

    def attempt(self, act: Callable[[], Any]) -> None:
        """Do something that may fail, and keep its output."""
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                act()
            except Exception as error:
                self.said.extend(words_of(error))
        self.said.extend(str(one.message) for one in warned)

    def run(self, *arguments: str) -> None:
        """Run a command with the storage options."""
        texts = [f"{name}={json.dumps(value)}" for name, value in self.options.items()]
        main([*arguments, *(word for text in texts for word in ("--storage-options", text))])

    def texts(self) -> list[str]:
        """Return all output, including every written file."""
        return self.said + [path.read_text() for path in self.folder.iterdir() if path.is_file()]


def words_of(error: BaseException) -> Iterator[str]:
    """Yield all text of an error and of its causes."""
    seen: list[BaseException | None] = [None]
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one in seen or one is None:
            continue
        seen.append(one)
        yield from (str(one), repr(one), repr(one.args), repr(vars(one)))
        yield "".join(traceback.format_exception(one))
        waiting += [one.__cause__, one.__context__]


def look_at(thing: Any, said: list[str]) -> None:
    said.extend((repr(thing), str(thing)))


def read_store(store: Any, said: list[str]) -> None:
    opened = store._opened
    for thing in (store, opened, opened.sources, *opened.sources._readers.values()):
        look_at(thing, said)
    try:
        said.extend(str(opened.sources.reader(number).url) for number in range(len(opened.sources.urls)))
        zarr.open_group(store, mode="r")["grid/temp"][...]
    finally:
        store.close()


def read_dataset(place: str, chosen: dict[str, Any], said: list[str]) -> None:
    with xarray.open_dataset(place, engine="h5zarr", group="grid", **chosen) as opened:
        look_at(opened, said)
        assert opened.encoding["source"]
        said.append(repr(opened.encoding) + repr(opened.temp.encoding) + repr(opened.temp.variable._data))
        opened.load()


def nowhere(planted: Planted, captured: Any, records: list[logging.LogRecord]) -> None:
    """Fail if any output contains a secret."""
    formatted = [logging.Formatter().format(one) for one in records if one.name.partition(".")[0] == "h5zarr"]
    for text in [*planted.texts(), captured.out, captured.err, *formatted]:
        assert SECRET not in text
        assert BASE64.rstrip("=") not in text
