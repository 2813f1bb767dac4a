"""Manifests as Icechunk 1 writes them: one with a chunk of each kind, whole and damaged."""

from __future__ import annotations

from base64 import b64decode

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h5zarr.containers.compression import decompress
from h5zarr.containers.icechunk.manifest_file import INLINE, NATIVE, VIRTUAL, decode_manifest
from h5zarr.errors import H5ZarrError, MalformedFile, Unsupported

# Written by Icechunk 1.1.21: an array of 6 × 1 chunks. (1, 0) is inline, (2, 0) in the repository, (3, 0) missing.
MANIFEST = b64decode(
    "SUNF8J+nikNIVU5LaWMtMC4zLjI0ICAgICAgICAgICAgICAgAQIBKLUv/QBYrQcAck0pL3BtmgPk6lxeUfTR7T2qSsGBp1zgb9bavimJzymVzVCx"
    "QPzBmgKriXZWEiIk2jsFFlfo89ajecMvqYKXM+w6wM9tqU4qTRCIeCr3kDF1fGwgtnSrTMst4ygYYNWBIwyJksw71JhPU8o0Ei4r9AFlHJhlMSxs"
    "/B1t/l7dc5OrHHEe8DaRhIysVAh4UNvXnXr0BoIQcZJy0AlNFCiYu29bdaCLzOEvISCAggmKtgNAgJMwd0TSwi1gzMsXefRMCuczxbQxkTDnbergV"
    "VuIHWc9sxHjfdMFWc3u4dLjMrxZtnsUbCOFWy/bDdwExNvr8uZcCwo="
)
HEADER_NBYTES = 39
NODE = "H836DZX9MJSGP"
PLAIN = decompress(MANIFEST[HEADER_NBYTES:], "the manifest")


def header(*, version: int = 1, kind: int = 2, compression: int = 0) -> bytes:
    return MANIFEST[: HEADER_NBYTES - 3] + bytes([version, kind, compression])


def test_each_kind_of_chunk_is_found() -> None:
    found = decode_manifest(MANIFEST, "the manifest")[NODE]
    assert found.index.tolist() == [[0, 0], [1, 0], [2, 0], [4, 0], [5, 0]]
    assert found.kind.tolist() == [VIRTUAL, INLINE, NATIVE, VIRTUAL, VIRTUAL]
    assert found.urls == ("s3://bucket/a.nc", "s3://bucket/b%20c.nc")
    is_virtual = found.kind == VIRTUAL
    assert found.source[is_virtual].tolist() == [0, 1, 0]
    assert found.address[is_virtual].tolist() == [4096, 2**40, 0]
    assert found.nbytes[is_virtual].tolist() == [100, 7, 1]
    assert found.nbytes[found.kind == NATIVE].tolist() == [600]
    assert found.inline == {1: b"abc"}


def test_it_need_not_be_compressed() -> None:
    found = decode_manifest(header() + PLAIN, "the manifest")[NODE]
    np.testing.assert_array_equal(found.index, decode_manifest(MANIFEST, "the manifest")[NODE].index)


def test_the_format_of_icechunk_2_is_refused() -> None:
    with pytest.raises(Unsupported, match="version 2") as refused:
        decode_manifest(header(version=2) + PLAIN, "the manifest")
    assert "Icechunk 2.0.5" in refused.value.remedy


@pytest.mark.parametrize("content", [b"", b"{}", MANIFEST[:20], header(kind=1) + PLAIN], ids=str)
def test_other_files_are_malformed(content: bytes) -> None:
    with pytest.raises(MalformedFile):
        decode_manifest(content, "the manifest")


@pytest.mark.parametrize("end", range(0, len(PLAIN), 3))
def test_one_that_is_cut_off_is_malformed(end: int) -> None:
    with pytest.raises(MalformedFile):
        decode_manifest(header() + PLAIN[:end], "the manifest")


@given(st.integers(0, len(PLAIN) - 4), st.binary(min_size=1, max_size=4))
def test_one_that_is_damaged_ends_in_an_error_or_in_rows_of_one_length(start: int, damage: bytes) -> None:
    content = PLAIN[:start] + damage + PLAIN[start + len(damage) :]
    try:
        arrays = decode_manifest(header() + content, "the manifest")
    except H5ZarrError:
        return
    for found in arrays.values():
        columns = (found.index, found.kind, found.address, found.nbytes, found.source)
        assert len({len(column) for column in columns}) == 1
        assert (found.address >= 0).all()
        assert (found.nbytes >= 0).all()
