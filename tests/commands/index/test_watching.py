"""A source is read again when a file that it refers to has changed, has come, or has gone; and not otherwise."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest

import h5zarr
from h5zarr.commands.catalog.catalog import CATALOG
from h5zarr.commands.index import watching
from h5zarr.commands.index.watching import decode_related, encode_related, open_beside
from h5zarr.io.source import Identity
from tests.commands.index.jobs import rows_of
from tests.servers import RangeServer

VALUES = np.arange(6, dtype="<i4")


def write_values(path: Path, values: Any = VALUES) -> None:
    with h5py.File(path, "w") as file:
        file["values"] = values


def link_to(path: Path, other: str) -> None:
    with h5py.File(path, "w") as file:
        file["own"] = VALUES
        file["linked"] = h5py.ExternalLink(other, "/values")


def map_to(path: Path, other: str) -> None:
    layout = h5py.VirtualLayout((6,), "<i4")
    layout[:] = h5py.VirtualSource(other, "values", (6,))
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("mapped", layout, fillvalue=-1)


def lay_out_in(path: Path, other: str) -> None:
    with h5py.File(path, "w") as file:
        file["own"] = VALUES
        file.create_dataset("raw", (6,), "<i4", external=[(other, 0, 24)])


def write_raw(path: Path, values: Any = VALUES) -> None:
    path.write_bytes(np.asarray(values).tobytes())


KINDS = {"link": (link_to, write_values), "mapping": (map_to, write_values), "raw": (lay_out_in, write_raw)}


def age(path: Path) -> None:
    """Have a file changed long ago, so that every change from now on is seen by its time."""
    os.utime(path, ns=(10**18, 10**18))


@pytest.fixture(params=sorted(KINDS))
def kind(request: pytest.FixtureRequest) -> tuple[Callable[[Path, str], None], Callable[..., None]]:
    return KINDS[request.param]


def run(data: Path, threads: ThreadPoolExecutor, **choices: Any) -> tuple[int, int]:
    """Index files whose names begin with "main", and return how many were indexed, and how many were unchanged."""
    report = h5zarr.index(str(data / "main*.h5"), data / "refs", executor=threads, **choices)
    assert not report.failed
    return report.indexed_count + report.with_problems_count, report.unchanged_count


def test_a_change_of_another_file_is_one_of_the_source(kind: Any, tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    refer, write = kind
    refer(tmp_path / "main.h5", "other.bin")
    write(tmp_path / "other.bin")
    age(tmp_path / "other.bin")
    assert run(tmp_path, threads) == (1, 0)
    assert run(tmp_path, threads) == (0, 1)
    write(tmp_path / "other.bin", VALUES * 2)
    assert run(tmp_path, threads, dry_run=True) == (0, 0)
    assert run(tmp_path, threads) == (1, 0)
    assert run(tmp_path, threads) == (0, 1)
    h5zarr.translate(tmp_path / "main.h5", tmp_path / "expected.json")
    assert (tmp_path / "refs" / "main.h5.json").read_bytes() == (tmp_path / "expected.json").read_bytes()


def test_a_file_that_comes_later_or_goes_is_noticed(kind: Any, tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    refer, write = kind
    refer(tmp_path / "main.h5", "other.bin")
    assert run(tmp_path, threads) == (1, 0)
    assert run(tmp_path, threads) == (0, 1)
    write(tmp_path / "other.bin")
    assert run(tmp_path, threads) == (1, 0)
    (row,) = rows_of(tmp_path / "refs").values()
    assert not row.problems
    assert set(decode_related(row.related)) == {str(tmp_path / "other.bin")}
    (tmp_path / "other.bin").unlink()
    assert run(tmp_path, threads) == (1, 0)
    assert run(tmp_path, threads) == (0, 1)


def test_a_broken_file_is_looked_at_again_once_it_has_changed(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    link_to(tmp_path / "main.h5", "other.h5")
    (tmp_path / "other.h5").write_bytes(b"<html>")
    age(tmp_path / "other.h5")
    assert run(tmp_path, threads) == (1, 0)
    assert run(tmp_path, threads) == (0, 1)
    write_values(tmp_path / "other.h5")
    assert run(tmp_path, threads) == (1, 0)
    assert not next(iter(rows_of(tmp_path / "refs").values())).problems


def test_a_source_that_was_given_up_is_tried_again_once_the_file_that_it_lacked_is_there(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    with h5py.File(tmp_path / "main.h5", "w") as file:
        file["linked"] = h5py.ExternalLink("other.h5", "/values")

    def run_once() -> h5zarr.IndexReport:
        return h5zarr.index(str(tmp_path / "main.h5"), tmp_path / "refs", executor=threads, max_attempts=1)

    assert [row.attempts for row in run_once().failed] == [1]
    assert [row.attempts for row in run_once().given_up] == [1]
    (tmp_path / "other.h5").write_bytes(b"<html>")
    again = run_once()
    assert ([row.attempts for row in again.failed], again.is_failure) == ([1], True)  # something has changed
    write_values(tmp_path / "other.h5")
    assert (run_once().indexed_count, run_once().unchanged_count) == (1, 1)


def test_files_of_files_count_too(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    with h5py.File(tmp_path / "main.h5", "w") as file:
        file["linked"] = h5py.ExternalLink("between.h5", "/mapped")
    map_to(tmp_path / "between.h5", "last.h5")
    write_values(tmp_path / "last.h5")
    age(tmp_path / "last.h5")
    assert run(tmp_path, threads) == (1, 0)
    write_values(tmp_path / "last.h5", VALUES + 1)
    assert run(tmp_path, threads) == (1, 0)


def test_nothing_is_asked_for_but_what_is_referred_to_and_that_once(
    tmp_path: Path, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    really = watching.ask_identity

    def ask(url: str, options: Any) -> Identity | None:
        asked.append(url)
        return really(url, options)

    monkeypatch.setattr(watching, "ask_identity", ask)
    write_values(tmp_path / "grid.h5")
    write_values(tmp_path / "main0.h5")
    for number in (1, 2, 3):
        link_to(tmp_path / f"main{number}.h5", "grid.h5")
    link_to(tmp_path / "main4.h5", "main0.h5")  # whose state is in the list
    assert run(tmp_path, threads) == (5, 0)
    assert asked == []
    assert run(tmp_path, threads) == (0, 5)
    assert asked == [str(tmp_path / "grid.h5")]


def test_a_catalog_without_the_column_is_read_and_gets_it(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    link_to(tmp_path / "main.h5", "other.h5")
    write_values(tmp_path / "other.h5")
    age(tmp_path / "other.h5")
    run(tmp_path, threads)
    catalog = tmp_path / "refs" / CATALOG
    pq.write_table(pq.read_table(io.BytesIO(catalog.read_bytes())).drop_columns(["related"]), catalog)
    assert run(tmp_path, threads) == (0, 1)
    assert run(tmp_path, threads, force=True) == (1, 0)
    write_values(tmp_path / "other.h5", VALUES + 1)
    assert run(tmp_path, threads) == (1, 0)


def test_a_catalog_that_is_made_anew_knows_of_other_files(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    link_to(tmp_path / "main.h5", "other.h5")
    write_values(tmp_path / "other.h5")
    age(tmp_path / "other.h5")
    run(tmp_path, threads)
    (tmp_path / "refs" / CATALOG).unlink()
    assert run(tmp_path, threads, rebuild_catalog=True) == (0, 1)
    write_values(tmp_path / "other.h5", VALUES + 1)
    assert run(tmp_path, threads) == (1, 0)


@pytest.mark.parametrize("text", ["no", "[]", '{"a": 3}', '{"a": {"size": 3}}'])
def test_a_source_is_read_again_where_the_catalog_was_changed(
    text: str, tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    from dataclasses import replace

    from h5zarr.commands.catalog.catalog import Catalog
    from h5zarr.commands.catalog.place import Place

    write_values(tmp_path / "main.h5")
    run(tmp_path, threads)
    catalog = Catalog(Place(tmp_path / "refs"))
    (row,) = catalog.rows()
    catalog.add(replace(row, related=text))
    catalog.fold()
    assert run(tmp_path, threads) == (1, 0)
    assert run(tmp_path, threads) == (0, 1)


def test_files_behind_signed_urls_are_asked_for_with_the_signature_of_the_day(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    lay_out_in(tmp_path / "main.h5", "other.raw")
    main = (tmp_path / "main.h5").read_bytes()
    files = {"/d/main.h5?signature=1": main, "/d/other.raw?signature=1": VALUES.tobytes()}
    with RangeServer(files, is_literal=True) as server:

        def again(signature: int) -> tuple[int, int]:
            urls = [server.url(f"/d/main.h5?signature={signature}")]
            report = h5zarr.index(urls, tmp_path / "refs", executor=threads)
            return report.indexed_count + report.with_problems_count, report.unchanged_count

        assert again(1) == (1, 0)
        server.files = {name.replace("=1", "=2"): content for name, content in server.files.items()}
        assert again(2) == (0, 1)
        server.files["/d/other.raw?signature=2"] += b"more"
        assert again(2) == (1, 0)
    (row,) = rows_of(tmp_path / "refs").values()
    assert "signature" not in row.related


def test_states_are_read_as_they_were_written() -> None:
    states = {
        "s3://bucket/a": Identity(nbytes=3, etag='"a"', version="1"),
        "/data/Größe\udc80": Identity(nbytes=0, mtime="2026-01-01"),
        "gone": None,
    }
    assert decode_related(encode_related(states.items())) == states
    assert encode_related([]) == ""
    assert decode_related("") == {}
    for other in ("[]", '{"a": 1}', '{"a": {"size": 1}}'):
        with pytest.raises(ValueError, match="the states of related files have an unknown form"):
            decode_related(other)


@pytest.mark.parametrize(
    ("url", "other", "expected"),
    [
        ("/data/main.h5", "/data/other.h5", "/data/other.h5"),
        ("s3://bucket/main.h5", "s3://bucket/below/other.h5", "s3://bucket/below/other.h5"),
        ("s3://bucket/main.h5?versionId=3", "s3://bucket/other.h5", "s3://bucket/other.h5"),
        ("https://me:hush@host/a/main.h5?sig=x", "https://host/a/o.h5", "https://me:hush@host/a/o.h5?sig=x"),
        ("simplecache::s3://bucket/main.h5", "s3://bucket/o.h5", "simplecache::s3://bucket/o.h5"),
        ("zip://main.h5::s3://b/all.zip", "zip://o.h5::s3://b/all.zip", "zip://o.h5::s3://b/all.zip"),
    ],
)
def test_another_file_is_opened_as_the_one_that_refers_to_it(url: str, other: str, expected: str) -> None:
    assert open_beside(url, other) == expected
