"""Manifests as Icechunk 1 and 2 write them: one each with a chunk of each kind, whole and damaged."""

from __future__ import annotations

from base64 import b64decode

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h5zarr.containers.compression import decompress, decompress_each, find_compressor
from h5zarr.containers.icechunk.manifest_file import INLINE, NATIVE, VIRTUAL, decode_manifest
from h5zarr.errors import H5ZarrError, MalformedFile, Unsupported

# Written by Icechunk 1.1.21: an array of 6 × 1 chunks. (1, 0) is inline, (2, 0) in the repository, (3, 0) missing.
MANIFEST = b64decode(
    "SUNF8J+nikNIVU5LaWMtMC4zLjI0ICAgICAgICAgICAgICAgAQIBKLUv/QBYrQcAck0pL3BtmgPk6lxeUfTR7T2qSsGBp1zgb9bavimJzymVzVCx"
    "QPzBmgKriXZWEiIk2jsFFlfo89ajecMvqYKXM+w6wM9tqU4qTRCIeCr3kDF1fGwgtnSrTMst4ygYYNWBIwyJksw71JhPU8o0Ei4r9AFlHJhlMSxs"
    "/B1t/l7dc5OrHHEe8DaRhIysVAh4UNvXnXr0BoIQcZJy0AlNFCiYu29bdaCLzOEvISCAggmKtgNAgJMwd0TSwi1gzMsXefRMCuczxbQxkTDnbergV"
    "VuIHWc9sxHjfdMFWc3u4dLjMrxZtnsUbCOFWy/bDdwExNvr8uZcCwo="
)
# Written by Icechunk 2.3.0: 30 × 1 chunks, with compressed locations. (1, 0) is inline, (2, 0) in the repository, and
# (0, 0) and (3, 0) are missing.
SECOND = b64decode(
    "SUNF8J+nikNIVU5LaWMtMi4zLjAgICAgICAgICAgICAgICAgAgIBKLUv/WAYCzUYAEYjf0rAUlJrChdsLbdgToERxyEoRIHTCtBfMpVRdITYO3Eq"
    "VUqP2P5qJ8DEYKQdEJmtapE80svV7HNjU2vM+EcNgXCNsLBK7G6yd5O9U3YAZgBgAEQNOX86acDGRiWGpkiJnVHgYnUOXtRwWFqiKVJSidGdIFJp"
    "MvGygodAiFQDYDgcoqhMK04oFCZgnQ+SkqKcXlYiFzwsjMBxFCT1QZ0C60qiA6LRYapNannSxm8+OUXigsuFIAIKBmXKKMDvmn3d/O66h4cI89/P"
    "yvHm8E2kN6/+vPmTxaProz6POn0r962hb9X4NPhpildxr354tem/5Vxm3NhpsAMGbPMV9hONu3ZAu9Lr9YItvhWWlqXn6xGNO6BxB+TxCPgyEI27"
    "X9tKKPpUoMDDUCzq8H6KPQFQI+3IiFCtVvuRYuvZbFVP996qGAlN9qORJD/uv7/weKSK8ZeUQP0+ExOh/3ajSvnLh65sEvc2NwFAeC10v20H56dI"
    "nvw5Bsejj6cJP9OT98mfJ52+vH0J9KWMZ7XPAhH/P0nMwflZ6eaw0/LyRkWQFc/OrJQp8dsQTGc/Zl7THOLOlXuea+7aoyiKouVrtY4yaZr2UFlU"
    "9cjlcgVZ8Pq9XjpgMJhRCDAkBMiBWCwmJdIiIhJiXdcroCwok0XNZjMPtKGTmUndR7g0mtWOZdmAq6iBrCZDQZKiQmFaA1CDSJqkDRKgwRhSwxAQ"
    "h0ErMMQYCSaaiR8MeifW1xuf7Am2W8g80u29uOwhFbtN0HP3YgpXza195zSr0L5OvmKezbe+0faZjcSMRsIrcp3rCsrXWZu0IrHJLa2JsV2Ir4rj"
    "+PdgdYkIYgO3ugRmdyBeJYzzfdvNqAWE04Wro2FFmeMNwl2Fu64NMcUBZk9tqdymzzO3WiWAq/XV3BxMgj+C8m8mkMaxsVFDghJvWJ8DWtdtJbEi"
    "mKCdj90wbCRlkedHpFa/YXWAHNltQofbqXtawrrWpfV3lkC1xU4KVtZVNZbA4/VAtMhEYMdrSSVA/CunhEyZVYo7BQ=="
)
SECOND_NODE = "QQQMYSZ1V0XJ8"
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
    assert list(found.chunks) == [2]


def test_each_kind_of_chunk_is_found_in_version_2_with_compressed_locations() -> None:
    found = decode_manifest(SECOND, "the manifest")[SECOND_NODE]
    assert found.index.tolist() == [[1, 0], [2, 0], *([row, 0] for row in range(4, 30))]
    assert found.kind.tolist() == [INLINE, NATIVE, *[VIRTUAL] * 26]
    assert found.urls == tuple(f"s3://bucket/deep/file_{number:03d}.nc" for number in range(2, 15))
    assert found.source[2:].tolist() == [row // 2 - 2 for row in range(4, 30)]
    assert found.address[2:].tolist() == [2**40 + row for row in range(4, 30)]
    assert found.nbytes[1:].tolist() == [600, *range(4, 30)]
    assert found.inline == {0: b"abc"}
    assert found.chunks == {1: "71V3B7TE0896ET7VF6PG"}


def test_compressed_locations_need_their_dictionary() -> None:
    plain = decompress(SECOND[HEADER_NBYTES:], "the manifest")
    dictionary = plain.index(b"\x37\xa4\x30\xec")  # zstd's magic number
    damaged = plain[: dictionary + 8] + bytes(64) + plain[dictionary + 72 :]
    with pytest.raises(MalformedFile):
        decode_manifest(header(version=2) + damaged, "the manifest")


def test_it_need_not_be_compressed() -> None:
    found = decode_manifest(header() + PLAIN, "the manifest")[NODE]
    np.testing.assert_array_equal(found.index, decode_manifest(MANIFEST, "the manifest")[NODE].index)


def test_a_later_format_is_refused() -> None:
    with pytest.raises(Unsupported, match="version 3 of Icechunk's format") as refused:
        decode_manifest(header(version=3) + PLAIN, "the manifest")
    assert refused.value.remedy == "Install a newer h5zarr, or write the references with an older Icechunk."


def test_a_location_of_any_length_is_not_decompressed() -> None:
    compressor = find_compressor("locations.zst")
    assert compressor is not None
    content = compressor.compress(bytes(1 << 20)) + compressor.flush()
    with pytest.raises(MalformedFile, match="a compressed location has more than 65536 bytes"):
        decompress_each([content], b"", "the manifest")


@pytest.mark.parametrize("content", [b"", b"{}", MANIFEST[:20], header(kind=1) + PLAIN], ids=str)
def test_other_files_are_malformed(content: bytes) -> None:
    with pytest.raises(MalformedFile):
        decode_manifest(content, "the manifest")


@pytest.mark.parametrize("end", range(0, len(PLAIN), 3))
def test_one_that_is_cut_off_is_malformed(end: int) -> None:
    with pytest.raises(MalformedFile):
        decode_manifest(header() + PLAIN[:end], "the manifest")


@pytest.mark.parametrize("content", [MANIFEST, SECOND], ids=["version 1", "version 2"])
@given(data=st.data())
def test_one_that_is_damaged_ends_in_an_error_or_in_rows_of_one_length(content: bytes, data: st.DataObject) -> None:
    plain = decompress(content[HEADER_NBYTES:], "the manifest")
    start, damage = data.draw(st.integers(0, len(plain) - 4)), data.draw(st.binary(min_size=1, max_size=4))
    damaged = plain[:start] + damage + plain[start + len(damage) :]
    try:
        arrays = decode_manifest(header(version=2) + damaged, "the manifest")
    except H5ZarrError:
        return
    for found in arrays.values():
        columns = (found.index, found.kind, found.address, found.nbytes, found.source)
        assert len({len(column) for column in columns}) == 1
        assert (found.address >= 0).all()
        assert (found.nbytes >= 0).all()
        assert not len(found.source) or 0 <= found.source.min() <= found.source.max() < max(1, len(found.urls))
