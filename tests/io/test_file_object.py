from __future__ import annotations

import io

import pytest

from h5zarr.errors import SourceError
from h5zarr.io.file_object import FileObjectSource
from h5zarr.io.network import MIB
from h5zarr.io.source import Identity
from h5zarr.io.span import Span


def test_bytes_are_read_in_one_round_and_the_file_stays_open(body: bytes) -> None:
    file = io.BytesIO(body)
    spans = [Span(5 * MIB, 100), Span(10, 20), Span(7, 0)]
    with FileObjectSource(file, url="s3://bucket/file.h5") as source:
        assert source.identity == Identity(nbytes=len(body))
        expected = [body[span.address : span.end] for span in spans]
        assert [bytes(buffer) for buffer in source.read_many(spans)] == expected
        source.read_many(spans)
        assert str(source.log) == "1 round, 2 requests, 1.2 MB"  # the beginning, and a block around the span
    assert not file.closed


def test_a_file_without_a_buffer_may_give_its_bytes_in_pieces() -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(3, size or 0))

    with FileObjectSource(Slow(b"0123456789"), url="file.h5") as source:
        assert bytes(source.read_many([Span(1, 8)])[0]) == b"12345678"


def test_a_file_that_cannot_be_sought_in_is_a_source_error() -> None:
    class Pipe(io.BytesIO):
        def seek(self, offset: int, whence: int = 0, /) -> int:
            raise io.UnsupportedOperation("seek")

    with pytest.raises(SourceError, match=r"^file\.h5: could not be read"):
        FileObjectSource(Pipe(), url="file.h5")


def test_a_file_that_ends_early_is_a_source_error() -> None:
    file = io.BytesIO(b"0123456789")
    with FileObjectSource(file, url="https://host/file.h5?key=hunter2") as source:
        file.truncate(4)
        with pytest.raises(SourceError, match=r"^https://host/file\.h5: bytes 0-9: the response has 4 bytes") as caught:
            source.read_many([Span(1, 8)])
    assert "hunter2" not in str(caught.value)


def test_a_file_that_is_closed_is_a_source_error() -> None:
    file = io.BytesIO(b"0123456789")
    with FileObjectSource(file, url="file.h5") as source:
        file.close()
        with pytest.raises(SourceError, match=r"^file\.h5: bytes 0-9: could not be read"):
            source.read_many([Span(1, 8)])
