"""Whole translations, in process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import fsspec
import h5py
import numpy as np
import pytest

from h5zarr import translate
from h5zarr.commands.translate.selecting import NothingSelected
from h5zarr.commands.translate.translation import ProblemsFound
from h5zarr.errors import H5ZarrError, OutputError, SourceError
from tests.made_files import make_ocean, make_plain
from tests.servers import Faults, RangeServer

SECRET = "hunter2"


@pytest.fixture
def ocean(tmp_path: Path) -> Path:
    return make_ocean(tmp_path / "ocean.h5")


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return make_plain(tmp_path / "plain.h5")


def references(path: Path) -> dict[str, object]:
    entries: dict[str, object] = json.loads(path.read_text())["refs"]
    return entries


def test_what_cannot_be_translated_is_named_and_the_rest_is_there(ocean: Path) -> None:
    done = translate(ocean)
    assert set(done.arrays()) == {"/time", "/grid/temp"}
    (problem,) = done.problems
    assert (problem.path, problem.kind) == ("/ragged", "unrepresentable")
    (warning,) = done.warnings
    assert (warning.path, warning.kind) == ("/grid/temp", "fill value")
    assert done.source_nbytes == ocean.stat().st_size


def test_references_are_absolute_wherever_they_are_made(plain: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(plain.parent)
    translate(plain.name, tmp_path / "refs.json")
    with h5py.File(plain) as file:
        address = file["x"].id.get_offset()
    assert references(tmp_path / "refs.json")["x/c/0"] == [str(plain), address, 16000]


def test_the_target_url_replaces_that_of_the_source(plain: Path, tmp_path: Path) -> None:
    translate(plain, tmp_path / "refs.json", target_url="s3://bucket/plain.h5")
    text = (tmp_path / "refs.json").read_text()
    assert json.loads(text)["refs"]["x/c/0"][0] == "s3://bucket/plain.h5"


def test_two_translations_give_the_same_bytes(ocean: Path, tmp_path: Path) -> None:
    for version in (2, 3):
        for name in ("one.json", "two.json"):
            translate(ocean, tmp_path / name, zarr_format=version)
        assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_strict_writes_nothing_and_lists_the_problems(ocean: Path, tmp_path: Path) -> None:
    out = tmp_path / "refs.json"
    with pytest.raises(ProblemsFound) as caught:
        translate(ocean, out, strict=True)
    assert [problem.path for problem in caught.value.problems] == ["/ragged"]
    assert str(caught.value) == f"{ocean}: 1 problem found with strict=True: nothing was written"
    assert not out.exists()
    translate(ocean, out, strict=True, exclude=["ragged"])
    assert out.exists()


def test_a_selected_group_is_the_root_of_the_references(ocean: Path, tmp_path: Path) -> None:
    translate(ocean, tmp_path / "refs.json", group="/grid")
    assert {"zarr.json", "temp/zarr.json", "temp/c/0/0"} <= references(tmp_path / "refs.json").keys()


def test_a_selection_without_anything_is_an_error_and_writes_nothing(ocean: Path, tmp_path: Path) -> None:
    with pytest.raises(NothingSelected):
        translate(ocean, tmp_path / "refs.json", include=["salt"])
    with pytest.raises(NothingSelected, match=r": \* excludes every array"):
        translate(ocean, tmp_path / "refs.json", exclude=["*"])
    assert not (tmp_path / "refs.json").exists()


def test_nothing_of_the_data_is_read_without_inlining(plain: Path) -> None:
    done = translate(plain, inline_bytes=0)
    assert done.arrays()["/x"].manifest.count == 1
    assert not done.arrays()["/x"].manifest.inline


def test_what_does_not_fit_any_more_is_a_problem(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "text.h5", "w") as file:
        file["t"] = np.array(["a"] * 100, h5py.string_dtype())
    done = translate(tmp_path / "text.h5", max_inline_bytes=10)
    assert done.arrays() == {}
    assert "may still be inlined" in done.problems[0].message


def test_the_source_is_never_replaced(plain: Path) -> None:
    before = plain.read_bytes()
    with pytest.raises(OutputError, match="the output would replace the input file"):
        translate(plain, plain)
    assert plain.read_bytes() == before


def test_a_remote_source_is_never_replaced_either() -> None:
    for source, out in [
        ("memory://a::b.h5", "memory://a::b.h5"),
        ("simplecache::memory://a.h5", "memory://a.h5"),
        ("HTTP://host/a b", "http://host/a%20b"),
    ]:
        with pytest.raises(OutputError, match="the output would replace the input file"):
            translate(source, out)


@pytest.mark.parametrize(
    "content",
    [b"CDF\1" + bytes(8), b"CDF\3" + bytes(100), b"just a text\n" * 20, b"", b"\x89HDF\r\n\x1a\n"],
)
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(H5ZarrError):
        translate(tmp_path / "file", tmp_path / "refs.json")
    assert not (tmp_path / "refs.json").exists()


def test_a_missing_file_and_a_directory_are_refused(tmp_path: Path) -> None:
    for source in (tmp_path / "none.h5", tmp_path):
        with pytest.raises(SourceError):
            translate(source)


# --- secrets


@pytest.fixture
def in_memory(plain: Path) -> Iterator[str]:
    """A file behind a URL that has a signature in it."""
    url = f"memory://bucket/plain.h5?X-Amz-Signature={SECRET}"
    memory = fsspec.filesystem("memory")
    memory.pipe_file(f"/bucket/plain.h5?X-Amz-Signature={SECRET}", plain.read_bytes())
    yield url
    memory.store.clear()


def told(done: object) -> str:
    return " ".join(map(str, (*done.problems, *done.warnings)))  # type: ignore[attr-defined]


def test_a_signature_reaches_neither_references_nor_warnings(in_memory: str, tmp_path: Path) -> None:
    done = translate(in_memory, tmp_path / "refs.json", storage_options={"password": SECRET})
    assert done.arrays().keys() == {"/x"}
    assert SECRET not in (tmp_path / "refs.json").read_text()
    assert SECRET not in told(done)
    assert [warning.kind for warning in done.warnings] == ["secret"]


@pytest.mark.parametrize(
    "url",
    [
        f"https://user:{SECRET}@host/plain.h5",
        f"https://host/plain.h5?X-Amz-Signature={SECRET}&X-Amz-Date=1",
        f"https://host/plain.h5?sig={SECRET}",
        f"https://host/plain.h5?token={SECRET}",
        f"simplecache::https://user:{SECRET}@host/plain.h5",
    ],
)
def test_secrets_of_the_target_are_left_out_with_a_warning(url: str, plain: Path, tmp_path: Path) -> None:
    done = translate(plain, tmp_path / "refs.json", target_url=url)
    assert references(tmp_path / "refs.json")["x/c/0"][0] == "https://host/plain.h5"  # type: ignore[index]
    assert SECRET not in (tmp_path / "refs.json").read_text()
    assert SECRET not in told(done)
    assert [warning.kind for warning in done.warnings] == ["secret"]


def test_secrets_do_not_reach_errors() -> None:
    url = f"memory://user:{SECRET}@bucket/none.h5?X-Amz-Signature={SECRET}"
    with pytest.raises(SourceError) as caught:
        translate(url, storage_options={"token": SECRET})
    assert SECRET not in f"{caught.value} {caught.value.remedy} {caught.value.__cause__}"


@pytest.mark.parametrize("claim", ["none", "bytes"])
def test_a_server_that_ignores_ranges_is_a_warning(plain: Path, claim: str) -> None:
    """Some servers that know ranges send the whole file if the range covers it, so that alone is not enough."""
    files = {"/plain.h5": plain.read_bytes()}
    with RangeServer(files, faults=Faults(ignore_range=True)) as server:
        server.headers["Accept-Ranges"] = claim
        url = server.url("/plain.h5")
        warnings = translate(url).warnings
        assert translate(url, target_url="https://host/plain.h5").warnings == ()
    assert [warning.kind for warning in warnings] == (["ranges"] if claim == "none" else [])


def test_a_longer_answer_than_requested_shows_that_ranges_are_ignored(plain: Path) -> None:
    with RangeServer({"/plain.h5": plain.read_bytes()}, faults=Faults(ignore_range=True)) as server:
        (warning,) = translate(server.url("/plain.h5"), network={"first_read_nbytes": 512}).warnings
    assert warning.message.startswith("the server ignores byte ranges")
    assert "supports range requests" in warning.remedy


def test_a_server_that_sends_ranges_is_no_warning(plain: Path) -> None:
    with RangeServer({"/plain.h5": plain.read_bytes()}) as server:
        server.headers["Accept-Ranges"] = "none"
        assert translate(server.url("/plain.h5")).warnings == ()


def test_the_time_includes_the_first_request(plain: Path) -> None:
    latency = 0.2
    with RangeServer({"/plain.h5": plain.read_bytes()}, latency=latency) as server:
        done = translate(server.url("/plain.h5"))
    assert (done.log.requests, done.log.infos) == (1, 0)
    assert done.seconds >= latency
