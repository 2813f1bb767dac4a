from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h5zarr.errors import SourceError
from h5zarr.io.local import LocalSource, format_mtime
from h5zarr.io.source import Identity, Source, open_source
from h5zarr.io.span import Span


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file.h5"
    path.write_bytes(bytes(range(200)))
    return path


def test_buffers_come_in_the_order_asked_and_share_the_file(path: Path) -> None:
    with open_source(path) as source:
        assert isinstance(source, LocalSource)
        buffers = source.read_many([Span(100, 3), Span(0, 2), Span(200, 0), Span(100, 3)])
        assert [bytes(buffer) for buffer in buffers] == [b"def", b"\x00\x01", b"", b"def"]
        assert buffers[0].readonly
        assert buffers[0].obj is buffers[1].obj


def test_a_batch_is_one_round_and_each_span_a_request(path: Path) -> None:
    with open_source(path) as source:
        source.read_many([Span(0, 10), Span(5, 10)])
        source.read_many([])
        source.read_many([Span(0, 1)])
        assert (source.log.rounds, source.log.requests, source.log.nbytes, source.log.infos) == (2, 3, 21, 0)


def test_the_identity_is_size_and_time(path: Path) -> None:
    os.utime(path, ns=(0, 1_577_880_000_123_456_789))
    with open_source(path) as source:
        assert source.identity == Identity(nbytes=200, mtime="2020-01-01T12:00:00.123456789Z")


def test_times_outside_the_calendar_are_not_shown() -> None:
    assert format_mtime(-1) == "1969-12-31T23:59:59.999999999Z"
    assert format_mtime(10**30) is None


def test_an_empty_file_is_fine(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with open_source(tmp_path / "empty") as source:
        assert source.nbytes == 0
        assert source.read_many([Span(0, 0)]) == [memoryview(b"")]
        with pytest.raises(SourceError, match="bytes 0-7: this is past the end"):
            source.read_many([Span(0, 8)])


@pytest.mark.parametrize(
    "span", [Span(199, 2), Span(200, 1), Span(-10, 5), Span(10, -5), Span(2**70, 1), Span(0, 2**70)]
)
def test_reading_outside_the_file_names_it_and_the_range(path: Path, span: Span) -> None:
    with open_source(path) as source, pytest.raises(SourceError, match="past the end") as caught:
        source.read_many([Span(0, 1), span])
    assert str(path) in str(caught.value)
    assert f"bytes {span.address}-" in str(caught.value)


@pytest.mark.parametrize(
    "name", ["a b.h5", "a#1.h5", "a%20b.h5", "a::b.h5", "s3::x?y=1.h5", "ä€.h5", "~a.h5", "C:a.h5"]
)
def test_names_with_odd_characters_are_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    for url in (str(tmp_path / name), f"file://{tmp_path / name}"):
        if "::" in name and url.startswith("file:"):
            continue  # that is a chain
        with open_source(url) as source:
            assert bytes(source.read_many([Span(0, 1)])[0]) == b"x"
    monkeypatch.chdir(tmp_path)
    with open_source(name) as source:
        assert source.url == name


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file") as caught:
        open_source(tmp_path / "missing.h5")
    assert "missing.h5" in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize("name", ["file.h5/inner.h5", "nul\0.h5", "x" * 5000])
def test_paths_that_cannot_be_are_source_errors(path: Path, name: str) -> None:
    with pytest.raises(SourceError):
        open_source(os.path.join(path.parent, name))


def test_a_directory_is_not_a_source(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="this is a directory") as caught:
        open_source(tmp_path)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceError, match="not a regular file"):
        open_source(tmp_path / "pipe")


def test_a_file_that_may_not_be_read_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:  # the user who runs the tests may read everything
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(SourceError, match="you do not have permission to read this file") as caught:
        open_source(path)
    assert str(path) in str(caught.value)


def test_a_file_that_shrinks_is_noticed_before_it_is_touched(path: Path) -> None:
    with open_source(path) as source:
        os.truncate(path, 100)
        with pytest.raises(SourceError, match="bytes 150-159: the file became shorter"):
            source.read_many([Span(150, 10)])


def test_buffers_outlive_the_source_but_reading_does_not(path: Path) -> None:
    with open_source(path) as source:
        (buffer,) = source.read_many([Span(100, 3)])
    source.close()
    assert bytes(buffer) == b"def"
    with pytest.raises(SourceError, match="closed"):
        source.read_many([Span(0, 1)])


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200))))
def test_every_buffer_is_what_was_asked_for(pairs: list[tuple[int, int]]) -> None:
    source = make_source()
    spans = [Span(min(pair), max(pair) - min(pair)) for pair in pairs]
    assert [bytes(b) for b in source.read_many(spans)] == [bytes(range(s.address, s.end)) for s in spans]


def make_source() -> Source:
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(range(200)))
        file.flush()
        return open_source(file.name)


def test_a_local_file_is_opened_without_importing_fsspec_or_asyncio(path: Path) -> None:
    program = (
        "import sys; from h5zarr.io.source import open_source; open_source(sys.argv[1]);"
        "print([name for name in ('fsspec', 'asyncio', 'aiohttp', 'numpy') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
