from __future__ import annotations

import subprocess
import sys

import hdf5plugin
import pytest

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.hdf5.model import Filter
from h5zarr.zarr_model.codecs import encode_filter, encode_filters
from tests.filters.written import LZF, numbers, plugin, write


def applied(number: int, *values: int, name: str = "") -> Filter:
    return Filter(number=number, name=name, optional=False, values=values)


def codec(number: int, *values: int, nbytes: int | None = 4000) -> object:
    return encode_filter(applied(number, *values), nbytes=nbytes)


@pytest.mark.parametrize(
    ("number", "values", "name", "configuration"),
    [
        (1, (4,), "numcodecs.zlib", {"level": 4}),
        (1, (), "numcodecs.zlib", {"level": 6}),
        (2, (8,), "numcodecs.shuffle", {"elementsize": 8}),
        (3, (), "numcodecs.fletcher32", {}),
        (307, (5,), "numcodecs.bz2", {"level": 5}),
        (307, (), "numcodecs.bz2", {"level": 9}),
        (32015, (7,), "zstd", {"level": 7, "checksum": False}),
        (32015, (), "zstd", {"level": 3, "checksum": False}),
        (32015, (2**32 - 5,), "zstd", {"level": -5, "checksum": False}),
        (32015, (99,), "zstd", {"level": 22, "checksum": False}),
        (32000, (4, 261, 4000), "h5zarr.filter", {"filter": "lzf"}),
        (32004, (), "h5zarr.filter", {"filter": "lz4", "block_nbytes": 1 << 30}),
        (32004, (0,), "h5zarr.filter", {"filter": "lz4", "block_nbytes": 1 << 30}),
        (32004, (100,), "h5zarr.filter", {"filter": "lz4", "block_nbytes": 100}),
        (
            32008,
            (0, 4, 4, 0, 2),
            "h5zarr.filter",
            {"filter": "bitshuffle", "element_nbytes": 4, "block_count": 0, "compressor": "lz4", "level": 3},
        ),
        (
            32008,
            (0, 2, 4),
            "h5zarr.filter",
            {"filter": "bitshuffle", "element_nbytes": 4, "block_count": 0, "compressor": "none", "level": 3},
        ),
        (
            32001,
            (2, 2, 4, 4000, 9, 2, 5),
            "blosc",
            {"typesize": 4, "cname": "zstd", "clevel": 9, "shuffle": "bitshuffle", "blocksize": 0},
        ),
        (
            32001,
            (2, 2, 300, 4000),
            "blosc",
            {"typesize": 1, "cname": "blosclz", "clevel": 5, "shuffle": "shuffle", "blocksize": 0},
        ),
        (
            4,
            (141, 16, 32, 100),
            "h5zarr.filter",
            {
                "filter": "szip",
                "coding": "entropy",
                "byte_order": "little",
                "pixels_per_block": 16,
                "bits_per_pixel": 32,
                "pixels_per_scanline": 100,
            },
        ),
        (5, (8, 1, 1000, 1, 4, 0, 32, 0), "h5zarr.filter", {"filter": "nbit", "count": 1000, "layout": None}),
    ],
)
def test_a_filter_becomes_a_codec(
    number: int, values: tuple[int, ...], name: str, configuration: dict[str, object]
) -> None:
    assert codec(number, *values) == {"name": name, "configuration": configuration}


@pytest.mark.parametrize(
    ("number", "values"),
    [(2, ()), (2, (0,)), (2, (1,)), (2, (2001,)), (32022, (3, 4, 0, 0, 0)), (32023, (3, 4, 0, 0, 0)), (32032, (9,))],
)
def test_what_does_nothing_on_reading_becomes_none(number: int, values: tuple[int, ...]) -> None:
    assert codec(number, *values) is None


def test_a_shuffle_that_numcodecs_would_refuse_is_ours() -> None:
    ours = {"name": "h5zarr.filter", "configuration": {"filter": "shuffle", "element_nbytes": 4}}
    assert codec(2, 4, nbytes=4002) == ours
    assert codec(2, 4, nbytes=None) == ours


def test_sizes_are_followed_through_a_pipeline() -> None:
    shuffle, deflate, fletcher32, rounded = applied(2, 8), applied(1, 4), applied(3), applied(32022, 3, 4, 0, 0, 0)

    def names(*filters: Filter) -> list[str]:
        return [one["name"] for one in encode_filters(filters, nbytes=800)]

    assert names(rounded, shuffle, deflate) == ["numcodecs.shuffle", "numcodecs.zlib"]
    assert names(shuffle, shuffle) == ["numcodecs.shuffle", "numcodecs.shuffle"]
    assert names(fletcher32, shuffle) == ["numcodecs.fletcher32", "h5zarr.filter"]
    assert names(deflate, shuffle) == ["numcodecs.zlib", "h5zarr.filter"]


@pytest.mark.parametrize("number", [305, 32002, 32003, 32017, 32019, 32020, 32024, 31_999])
def test_filters_without_a_codec_are_named(number: int) -> None:
    with pytest.raises(Unsupported, match=rf"filter {number} \(some filter\)") as caught:
        encode_filter(applied(number, name="some filter"), nbytes=4000)
    assert caught.value.remedy


def test_blosc_with_snappy_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="compressor snappy") as caught:
        codec(32001, 2, 2, 4, 4000, 5, 1, 3)
    assert "h5repack" in caught.value.remedy


@pytest.mark.parametrize(
    ("number", "values"),
    [(32001, (2, 2, 4, 4000, 5, 7, 0)), (4, ()), (5, (1,)), (6, (1, 2)), (32008, ()), (32013, (1, 2)), (32026, (1,))],
)
def test_impossible_client_data_are_malformed(number: int, values: tuple[int, ...]) -> None:
    with pytest.raises(MalformedFile, match="client data"):
        codec(number, *values)


def test_client_data_of_real_files_become_readable() -> None:
    chunk = write(numbers((12, 10), "<f4"), plugin(hdf5plugin.Zfp(accuracy=0.01)), LZF)
    zfp, lzf = encode_filters(chunk.filters, nbytes=480)
    assert zfp == {
        "name": "h5zarr.filter",
        "configuration": {
            "filter": "zfp",
            "dtype": "float32",
            "shape": [12, 10],
            "minbits": 1,
            "maxbits": 16658,
            "maxprec": 64,
            "minexp": -7,
            "byte_order": "little",
        },
    }
    assert lzf == {"name": "h5zarr.filter", "configuration": {"filter": "lzf"}}


def test_encoding_filters_imports_no_library() -> None:
    script = "import sys, h5zarr.zarr_model.codecs; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"zarr", "numcodecs", "imagecodecs", "blosc2", "zfpy"} & set(done.stdout.split())
