from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from h5zarr.errors import SourceError
from h5zarr.io.column import BlockColumn, SpanColumn
from h5zarr.io.source import open_source
from h5zarr.io.span import Span
from h5zarr.io.steps import Crew, Step, run, together

ADDRESSES = np.array([120, 0, 60])
EXPECTED = [bytes(range(120, 128)), bytes(range(8)), bytes(range(60, 68))]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file.h5"
    path.write_bytes(bytes(range(200)))
    return path


def read_column(kinds: list[type]) -> Step[list[bytes]]:
    buffers = yield SpanColumn(ADDRESSES, 8)
    kinds.append(type(buffers))
    return [bytes(buffer) for buffer in buffers]


def read_byte(address: int) -> Step[bytes]:
    (buffer,) = yield [Span(address, 1)]
    return bytes(buffer)


def test_a_column_is_a_sequence_of_spans() -> None:
    column = SpanColumn(ADDRESSES, 8)
    assert list(column) == [Span(120, 8), Span(0, 8), Span(60, 8)]
    assert all(type(span) is Span and type(span.address) is int for span in (*column, column[1]))
    assert (len(column), column[1], list(column[1:])) == (3, (0, 8), [(0, 8), (60, 8)])
    assert column.outermost() == [(0, 8), (120, 8)]
    assert SpanColumn(ADDRESSES[:0], 8).outermost() == []


def test_a_local_file_answers_a_column_with_a_column(path: Path) -> None:
    with open_source(path) as source:
        blocks = source.read_many(SpanColumn(ADDRESSES, 8))
        assert isinstance(blocks, BlockColumn)
        assert [bytes(block) for block in blocks] == EXPECTED
        assert isinstance(blocks[1:], BlockColumn)
        assert [bytes(block) for block in blocks[1:]] == EXPECTED[1:]
        assert (source.log.rounds, source.log.requests, source.log.nbytes) == (1, 3, 24)


@pytest.mark.parametrize("address", [-1, 193, 1 << 62])
def test_a_column_that_is_not_inside_the_file_is_an_error(path: Path, address: int) -> None:
    with open_source(path) as source, pytest.raises(SourceError, match="past the end"):
        source.read_many(SpanColumn(np.array([0, address, 60]), 8))


def test_a_remote_file_returns_a_list() -> None:
    import fsspec

    fsspec.filesystem("memory").pipe("/column.h5", bytes(range(200)))
    with open_source("memory://column.h5") as source:
        assert [bytes(block) for block in source.read_many(SpanColumn(ADDRESSES, 8))] == EXPECTED


def test_a_step_that_is_alone_gets_a_column_and_one_in_company_a_list(path: Path) -> None:
    kinds: list[type] = []
    found: list[object] = []
    with open_source(path) as source:
        assert run(together([read_column(kinds)]), source.read_many) == [EXPECTED]
        crew = Crew()
        crew.start(read_column(kinds), found.append)
        run(crew.finish(), source.read_many)
        crew.start(read_column(kinds), found.append)
        crew.start(read_byte(7), found.append)
        run(crew.finish(), source.read_many)
        assert source.log.rounds == 3
    assert found == [EXPECTED, EXPECTED, b"\x07"]
    assert kinds == [BlockColumn, BlockColumn, list]


def test_pieces_are_all_blocks_and_pages_are_given_back_when_many_are_mapped(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_source(path) as source:
        blocks = source.read_many(SpanColumn(ADDRESSES, 8))
        assert isinstance(blocks, BlockColumn)
        given_back: list[BlockColumn] = []
        release = BlockColumn._release_pages
        monkeypatch.setattr(BlockColumn, "_release_pages", lambda self: (given_back.append(self), release(self)))
        for most, count in ((1 << 28, 0), (1, 3)):
            monkeypatch.setattr("h5zarr.io.column._MOST_MAPPED", most)
            given_back.clear()
            found = {first: [bytes(block) for block in piece] for first, piece in blocks.pieces(1)}
            assert found == {number: [content] for number, content in enumerate(EXPECTED)}
            assert len(given_back) == count
