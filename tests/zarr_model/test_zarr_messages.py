"""Messages about Zarr metadata name the codec, the number or the value that they mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from h5zarr.errors import H5ZarrError
from h5zarr.zarr_model.codecs import split_transpose
from h5zarr.zarr_model.fill_values import decode_fill
from h5zarr.zarr_model.grid import RegularGrid, decode_regular
from h5zarr.zarr_model.nz.nodes import decode_line
from h5zarr.zarr_model.record import RECORD, decode_group
from h5zarr.zarr_model.v2_codecs import decode_codecs_v2, encode_codecs_v2
from h5zarr.zarr_model.vlen_text import decode_texts

INT4 = np.dtype("<i4")
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}


def _grid_of_rank(rank: int) -> Any:
    ones = [1] * rank
    return decode_regular(ones, ones)


def _v3(*filters: dict[str, Any]) -> Any:
    return decode_codecs_v2({"filters": list(filters), "compressor": None}, INT4, 1)


MESSAGES: dict[str, Callable[[], Any]] = {
    "order of codec transpose does not name each of 2 dimensions once": lambda: split_transpose(
        [{"name": "transpose", "configuration": {"order": [0, 0]}}, BYTES], 2
    ),
    "the fill value does not fit the type text of 1 byte: it is too long": lambda: decode_fill("YWJj", np.dtype("S1")),
    "the fill value does not fit the type text of 2 characters: it is too long": lambda: decode_fill(
        "abc", np.dtype("<U2")
    ),
    "the fill value does not fit the type int32: it has another type": lambda: decode_fill("1", INT4),
    "the array has 65 dimensions, but readers support at most 64": lambda: _grid_of_rank(65),
    "codec transpose has no counterpart in Zarr v2 at this position": lambda: encode_codecs_v2(
        [{"name": "transpose", "configuration": {"order": [0]}}, BYTES]
    ),
    "codec crc32c has no counterpart in Zarr v2": lambda: encode_codecs_v2([BYTES, {"name": "crc32c"}]),
    'codec "vlen-utf8" has no counterpart in Zarr v3 at this position': lambda: _v3({"id": "vlen-utf8"}),
    'codec "delta" has no counterpart in Zarr v3 at this position': lambda: _v3(
        {"id": "zlib", "level": 1}, {"id": "delta", "dtype": "<i4"}
    ),
    'codec "quantize" has no counterpart in Zarr v3 if it changes the type': lambda: _v3(
        {"id": "quantize", "digits": 2, "dtype": "<f8", "astype": "<f4"}
    ),
    "a chunk of text has a count of 1 instead of 2": lambda: decode_texts(b"\1\0\0\0\1\0\0\0a", 2),
}


@pytest.mark.parametrize("message", MESSAGES)
def test_the_message_names_what_it_means(message: str) -> None:
    with pytest.raises(H5ZarrError) as caught:
        MESSAGES[message]()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"h5zarr": 9}, "its version is 9, expected 1"),
        ({"h5zarr": 1, "unlimited": [3]}, "3 is not text"),
        ({"h5zarr": 1, "unlimited": 3}, "3 is not a list"),
        ({"h5zarr": 1, "classic": 1}, "1 is neither true nor false"),
    ],
)
def test_a_record_that_is_ignored_is_described(document: dict[str, Any], reason: str) -> None:
    _, (problem,) = decode_group("/g", {RECORD: document})
    assert str(problem) == f"/g: the record {RECORD} is ignored, because it is malformed ({reason})"
    assert problem.remedy


def test_values_behind_another_codec_are_not_checked_and_the_codec_is_named() -> None:
    codecs = [{"name": "transpose", "configuration": {"order": [0]}}, BYTES]
    found = decode_line(RegularGrid((1,), (1,)), "int32", codecs, {(0,): bytes(4)})
    assert found == "h5zarr does not decode codec transpose here"
