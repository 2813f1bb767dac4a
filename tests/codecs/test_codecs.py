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

from h5zarr.codecs.filter_codec import FilterCodec
from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.filters.table import FILTERS

SHAPE = (6, 50)
COUNT = 300
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "bitshuffle": {"element_nbytes": 4, "block_count": 64, "compressor": "zstd", "level": 5},
    "blosc2": {
        "element_nbytes": 4,
        "level": 3,
        "shuffle": "bitshuffle",
        "compressor": "zstd",
        "block_nbytes": 0,
    },
    "lz4": {"block_nbytes": 500},
    "lzf": {},
    "nbit": {
        "count": COUNT,
        "layout": {"kind": "number", "nbytes": 4, "byte_order": "little", "precision": 20, "bit_offset": 0},
    },
    "scaleoffset": {
        "count": COUNT,
        "kind": "integer",
        "element_nbytes": 4,
        "signed": True,
        "byte_order": "little",
        "factor": 0,
        "fill": "0xffffffff",
    },
    "shuffle": {"element_nbytes": 7},
    "szip": {
        "coding": "nearest-neighbor",
        "byte_order": "little",
        "pixels_per_block": 16,
        "bits_per_pixel": 32,
        "pixels_per_scanline": 50,
    },
    "zfp": {
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
CODEC = "h5zarr.filter"


def document_of(name: str) -> dict[str, Any]:
    return {"name": CODEC, "configuration": {"filter": name, **CONFIGURATIONS[name]}}


def made(name: str) -> FilterCodec:
    codec = get_codec_class(CODEC).from_dict(document_of(name))
    assert isinstance(codec, FilterCodec)
    return codec


def made_v2(name: str) -> Any:
    return numcodecs.get_codec({"id": CODEC, "filter": name, **CONFIGURATIONS[name]})


def values() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 1000, SHAPE).astype("<i4")


def test_both_codecs_are_registered_for_both_versions() -> None:
    for group in ("zarr.codecs", "numcodecs.codecs"):
        assert {one.name for one in entry_points(group=group)} >= {CODEC, "h5zarr.elements"}


def test_every_filter_without_another_codec_is_tested_here() -> None:
    assert {kind.name for kind in FILTERS.values() if kind.codec == CODEC} | {"shuffle"} == set(CONFIGURATIONS)


@NAMES
def test_a_configuration_survives_json_and_pickling(name: str) -> None:
    codec = made(name)
    document = codec.to_dict()
    assert document == document_of(name)
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
    codec = made_v2(name)
    assert codec.get_config() == {"id": CODEC, "filter": name, **CONFIGURATIONS[name]}
    assert pickle.loads(pickle.dumps(codec)) == codec
    assert repr(codec).startswith(type(codec).__name__)
    encoded = codec.encode(values())
    assert bytes(codec.decode(encoded)) == values().tobytes()
    target = np.empty(SHAPE, "<i4")
    codec.decode(encoded, out=target)
    assert (target == values()).all()


@NAMES
def test_zarr_v2_writes_and_reads_with_it(name: str) -> None:
    codec = made_v2(name)
    array = zarr.create_array(
        MemoryStore(), shape=SHAPE, chunks=SHAPE, dtype="<i4", zarr_format=2, compressors=codec, fill_value=0
    )
    array[...] = values()
    assert (zarr.open_array(array.store, mode="r")[...] == values()).all()


@NAMES
def test_unknown_settings_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"codec h5zarr.filter \({name}\) has no setting colour"):
        get_codec_class(CODEC).from_dict({"name": CODEC, "configuration": {"filter": name, "colour": "blue"}})
    with pytest.raises(ValueError, match=rf"codec h5zarr.filter \({name}\) has no setting colour"):
        numcodecs.get_codec({"id": CODEC, "filter": name, "colour": "blue"})


@pytest.mark.parametrize("configuration", [{}, {"filter": "rot13"}, {"filter": 32004}, {"filter": ["lz4"]}])
def test_an_unknown_filter_is_refused(configuration: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"codec h5zarr.filter does not know filter .* install the package"):
        get_codec_class(CODEC).from_dict({"name": CODEC, "configuration": configuration})


@pytest.mark.parametrize("name", ["bitshuffle", "nbit", "scaleoffset", "szip", "zfp"])
def test_settings_that_must_be_there_are_asked_for(name: str) -> None:
    with pytest.raises(ValueError, match=rf"codec h5zarr.filter \({name}\) lacks settings"):
        get_codec_class(CODEC).from_dict({"name": CODEC, "configuration": {"filter": name}})


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("nbit", {"layout": {"kind": "number"}}),
        ("nbit", {"layout": {"kind": "compound", "nbytes": 4, "members": [1]}}),
        ("nbit", {"layout": {"kind": "compound", "nbytes": 4, "members": 1}}),
        ("nbit", {"layout": 4}),
        ("scaleoffset", {"fill": "12"}),
        ("scaleoffset", {"fill": 12}),
        ("scaleoffset", {"factor": 33}),
        ("scaleoffset", {"signed": 1}),
        ("szip", {"bits_per_pixel": 25}),
        ("szip", {"pixels_per_block": 3}),
        ("szip", {"coding": "huffman"}),
    ],
)
def test_impossible_settings_are_refused(name: str, changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|is not a"):
        get_codec_class(CODEC)(filter=name, **(CONFIGURATIONS[name] | changed))


def test_a_codec_does_not_take_another_ones_metadata() -> None:
    with pytest.raises(ValueError, match=r"this is codec h5zarr.filter, not 'zstd'"):
        get_codec_class(CODEC).from_dict({"name": "zstd", "configuration": {}})
    with pytest.raises(ValueError, match="must be an object"):
        get_codec_class(CODEC).from_dict({"name": CODEC, "configuration": [1]})


def test_a_broken_chunk_is_not_read_as_values() -> None:
    array = zarr.create_array(MemoryStore(), shape=SHAPE, chunks=SHAPE, dtype="<i4", compressors=[made("lz4")])
    array[...] = values()
    stored = array.store._store_dict["c/0/0"]
    array.store._store_dict["c/0/0"] = stored[:100]
    with pytest.raises(MalformedFile):
        array[...]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = made_v2("szip")
    monkeypatch.setitem(sys.modules, "imagecodecs", None)
    with pytest.raises(Unsupported, match="filter szip needs the package imagecodecs"):
        codec.encode(values())
