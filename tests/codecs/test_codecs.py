"""The codecs themselves: found by name, configured readably, picklable, and able to write."""

from __future__ import annotations

import json
import pickle
import sys
from importlib.metadata import entry_points
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.registry import get_codec_class
from zarr.storage import MemoryStore

from h5zarr.codecs.base import FilterCodec
from h5zarr.errors import MalformedFile, Unsupported

SHAPE = (6, 50)
COUNT = 300
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "h5zarr.bitshuffle": {"element_nbytes": 4, "block_count": 64, "compressor": "zstd", "level": 5},
    "h5zarr.blosc2": {
        "element_nbytes": 4,
        "level": 3,
        "shuffle": "bitshuffle",
        "compressor": "zstd",
        "block_nbytes": 0,
    },
    "h5zarr.lz4": {"block_nbytes": 500},
    "h5zarr.lzf": {},
    "h5zarr.nbit": {
        "count": COUNT,
        "layout": {"kind": "number", "nbytes": 4, "byte_order": "little", "precision": 20, "bit_offset": 0},
    },
    "h5zarr.scaleoffset": {
        "count": COUNT,
        "kind": "integer",
        "element_nbytes": 4,
        "signed": True,
        "byte_order": "little",
        "factor": 0,
        "fill": "0xffffffff",
    },
    "h5zarr.shuffle": {"element_nbytes": 7},
    "h5zarr.szip": {
        "coding": "nearest-neighbor",
        "byte_order": "little",
        "pixels_per_block": 16,
        "bits_per_pixel": 32,
        "pixels_per_scanline": 50,
    },
    "h5zarr.zfp": {
        "dtype": "int32",
        "shape": [6, 50],
        "minbits": 1,
        "maxbits": 16658,
        "maxprec": 64,
        "minexp": -1075,
        "byte_order": "little",
    },
}
NAMES = pytest.mark.parametrize("name", CONFIGURATIONS)


def made(name: str) -> FilterCodec:
    codec = get_codec_class(name).from_dict({"name": name, "configuration": CONFIGURATIONS[name]})
    assert isinstance(codec, FilterCodec)
    return codec


def values() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 1000, SHAPE).astype("<i4")


def test_every_codec_is_registered_for_both_versions() -> None:
    for group in ("zarr.codecs", "numcodecs.codecs"):
        assert {one.name for one in entry_points(group=group)} >= set(CONFIGURATIONS)


@NAMES
def test_a_configuration_survives_json_and_pickling(name: str) -> None:
    codec = made(name)
    document = codec.to_dict()
    assert document == {"name": name, "configuration": CONFIGURATIONS[name]}
    again = type(codec).from_dict(json.loads(json.dumps(document)))
    assert again == codec
    assert hash(again) == hash(codec)
    assert pickle.loads(pickle.dumps(codec)) == codec


@NAMES
def test_zarr_writes_and_reads_with_it(name: str) -> None:
    array = zarr.create_array(
        MemoryStore(), shape=SHAPE, chunks=SHAPE, dtype="<i4", compressors=[made(name)], fill_value=0
    )
    array[...] = values()
    assert array.metadata.codecs[-1] == made(name)
    assert (zarr.open_array(array.store, mode="r")[...] == values()).all()


@NAMES
def test_numcodecs_has_it_too(name: str) -> None:
    codec = numcodecs.get_codec({"id": name, **CONFIGURATIONS[name]})
    assert codec.get_config() == {"id": name, **CONFIGURATIONS[name]}
    assert pickle.loads(pickle.dumps(codec)) == codec
    assert repr(codec).startswith(type(codec).__name__)
    encoded = codec.encode(values())
    assert bytes(codec.decode(encoded)) == values().tobytes()
    target = np.empty(SHAPE, "<i4")
    codec.decode(encoded, out=target)
    assert (target == values()).all()


@NAMES
def test_zarr_v2_writes_and_reads_with_it(name: str) -> None:
    codec = numcodecs.get_codec({"id": name, **CONFIGURATIONS[name]})
    array = zarr.create_array(
        MemoryStore(), shape=SHAPE, chunks=SHAPE, dtype="<i4", zarr_format=2, compressors=codec, fill_value=0
    )
    array[...] = values()
    assert (zarr.open_array(array.store, mode="r")[...] == values()).all()


@NAMES
def test_unknown_settings_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"codec {name} has no setting colour"):
        get_codec_class(name).from_dict({"name": name, "configuration": {"colour": "blue"}})
    with pytest.raises(ValueError, match=f"codec {name} has no setting colour"):
        numcodecs.get_codec({"id": name, "colour": "blue"})


@pytest.mark.parametrize(
    "name", ["h5zarr.bitshuffle", "h5zarr.nbit", "h5zarr.scaleoffset", "h5zarr.szip", "h5zarr.zfp"]
)
def test_settings_that_must_be_there_are_asked_for(name: str) -> None:
    with pytest.raises(ValueError, match=f"codec {name} lacks settings"):
        get_codec_class(name).from_dict({"name": name})


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("h5zarr.nbit", {"layout": {"kind": "number"}}),
        ("h5zarr.nbit", {"layout": {"kind": "compound", "nbytes": 4, "members": [1]}}),
        ("h5zarr.nbit", {"layout": {"kind": "compound", "nbytes": 4, "members": 1}}),
        ("h5zarr.nbit", {"layout": 4}),
        ("h5zarr.scaleoffset", {"fill": "12"}),
        ("h5zarr.scaleoffset", {"fill": 12}),
        ("h5zarr.scaleoffset", {"factor": 33}),
        ("h5zarr.scaleoffset", {"signed": 1}),
        ("h5zarr.szip", {"bits_per_pixel": 25}),
        ("h5zarr.szip", {"pixels_per_block": 3}),
        ("h5zarr.szip", {"coding": "huffman"}),
    ],
)
def test_impossible_settings_are_refused(name: str, changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|is no"):
        get_codec_class(name)(**(CONFIGURATIONS[name] | changed))


def test_a_codec_does_not_take_another_ones_metadata() -> None:
    with pytest.raises(ValueError, match=r"this is codec h5zarr.lz4, not 'zstd'"):
        get_codec_class("h5zarr.lz4").from_dict({"name": "zstd", "configuration": {}})
    with pytest.raises(ValueError, match="must be an object"):
        get_codec_class("h5zarr.lz4").from_dict({"name": "h5zarr.lz4", "configuration": [1]})


def test_a_broken_chunk_is_not_read_as_values() -> None:
    array = zarr.create_array(MemoryStore(), shape=SHAPE, chunks=SHAPE, dtype="<i4", compressors=[made("h5zarr.lz4")])
    array[...] = values()
    stored = array.store._store_dict["c/0/0"]
    array.store._store_dict["c/0/0"] = stored[:100]
    with pytest.raises(MalformedFile):
        array[...]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = numcodecs.get_codec({"id": "h5zarr.szip", **CONFIGURATIONS["h5zarr.szip"]})
    monkeypatch.setitem(sys.modules, "imagecodecs", None)
    with pytest.raises(Unsupported, match="filter szip needs the package imagecodecs"):
        codec.encode(values())
