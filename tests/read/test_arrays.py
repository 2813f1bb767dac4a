from __future__ import annotations

import pickle
import re
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from h5zarr.commands.translate.translate import translate
from h5zarr.errors import H5ZarrError, MalformedFile
from h5zarr.read.decoding import find_decoder
from h5zarr.read.read_arrays import ArrayValues
from h5zarr.read.sources import Sources
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import TO_THE_END, ArrayNode, Manifest
from tests.collections_of_files import (
    SAMPLES,
    SHARED,
    classic_samples,
    parameters,
    sample_files,
    shared_files,
    translatable,
)
from tests.containers.hierarchies import BIG, LITTLE, UTF8, RawFile, encode_text, make_array, make_hierarchy
from tests.read.keys import random_key, take
from tests.roundtrip.reading import open_group
from tests.servers import RangeServer
from tests.truth.same import same_bytes

MOST_ELEMENTS = 5_000_000
MOST_CHUNKS = 1_000


def values_of(node: ArrayNode, urls: tuple[str, ...]) -> ArrayValues:
    decoder = find_decoder(node)
    assert decoder is not None
    return ArrayValues("/x", node, decoder, Sources(urls=urls))


def read_whole(path: Path, group: zarr.Group, name: str, node: ArrayNode) -> Any:
    """Return all values of an array: as Zarr reads them, or as h5py does where Zarr would take half a minute.

    tests/roundtrip compares Zarr with h5py for those files.
    """
    if prod(node.grid.grid_shape) > MOST_CHUNKS and h5py.is_hdf5(path):
        with h5py.File(path) as file:
            if file[name].dtype.kind in "iuf":
                return file[name][...]
    return np.asarray(group[name[1:]][...])


def check_against_zarr(path: Path) -> int:
    """Compare every array of a file, whole and by random keys, with what Zarr reads. Return how many there were."""
    translation = translate(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = open_group(translation)
        sources = Sources(urls=translation.hierarchy.urls)
        random = np.random.default_rng(1)
        for name, node in translation.arrays().items():
            decoder = find_decoder(node)
            assert decoder is not None, f"{name}: codecs {node.codecs} are read by Zarr alone"
            values = ArrayValues(name, node, decoder, sources)
            if prod(node.shape) > MOST_ELEMENTS:
                assert same_bytes(values[(0,) * len(node.shape)], np.asarray(group[name[1:]][(0,) * len(node.shape)]))
                continue
            try:
                expected = read_whole(path, group, name, node)
            except Exception:  # a filter whose package is missing, or a broken chunk: the same for both
                with pytest.raises(H5ZarrError):
                    values[(slice(None),) * len(node.shape)]
                continue
            assert same_bytes(values[(slice(None),) * len(node.shape)], expected), name
            for _ in range(4 if prod(node.grid.grid_shape) <= MOST_CHUNKS else 1):
                key = random_key(node.shape, random)
                assert same_bytes(values[key], take(expected, key)), (name, key)
    return len(translation.arrays())


@pytest.mark.parametrize("path", parameters(sample_files() + classic_samples(), SAMPLES))
def test_sample_files_are_read_as_zarr_reads_them(path: Path) -> None:
    check_against_zarr(path)


@pytest.mark.parametrize("path", parameters(translatable(shared_files("traps")), SHARED / "traps"))
def test_traps_are_read_as_zarr_reads_them(path: Path) -> None:
    check_against_zarr(path)


@pytest.mark.parametrize("path", parameters(translatable(shared_files("corpus")), SHARED / "corpus"))
def test_real_files_are_read_as_zarr_reads_them(path: Path) -> None:
    check_against_zarr(path)


@st.composite
def arrays(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], str, int]:
    rank = draw(st.integers(0, 3))
    shape = tuple(draw(st.integers(0, 9)) for _ in range(rank))
    chunk = tuple(draw(st.integers(1, 5)) for _ in range(rank))
    return shape, chunk, draw(st.sampled_from(["<i4", ">i2", "<f8", "i1"])), draw(st.integers(0, 1 << 30))


@settings(max_examples=150, deadline=None)
@given(arrays())
def test_any_selection_of_any_array_is_what_numpy_takes(
    tmp_path_factory: pytest.TempPathFactory, made: tuple[tuple[int, ...], tuple[int, ...], str, int]
) -> None:
    shape, chunk, kind, seed = made
    random = np.random.default_rng(seed)
    values = random.integers(0, 100, shape).astype(kind)
    grid = [-(-n // c) for n, c in zip(shape, chunk, strict=True)]
    every = [tuple(index) for index in np.ndindex(*grid)]
    choice = random.integers(0, 4, len(every)).tolist()
    missing = [index for index, kind in zip(every, choice, strict=True) if kind == 0]
    inline = [index for index, kind in zip(every, choice, strict=True) if kind == 1]
    folder = tmp_path_factory.mktemp("raw")
    files = [RawFile(folder / f"{number}.bin") for number in range(2)]
    node = make_array(files, values, chunk, fill_value=7, missing=missing, inline=inline)
    for index in missing:
        values[tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, chunk, strict=True))] = 7
    reader = values_of(node, tuple(file.url for file in files))
    assert reader.shape == shape
    assert reader.dtype == np.dtype(kind)
    for _ in range(3):
        key = random_key(shape, random)
        found = reader[key]
        assert found.dtype == values.dtype
        assert np.array_equal(found, take(values, key)), key


@settings(max_examples=100, deadline=None)
@given(arrays(), st.randoms(use_true_random=False), st.booleans())
def test_chunks_with_permuted_dimensions_are_read_as_zarr_reads_them(
    tmp_path_factory: pytest.TempPathFactory, made: Any, random: Any, compressed: bool
) -> None:
    from tests.containers.hierarchies import open_store, v3_text

    shape, chunk, kind, seed = made
    values = np.random.default_rng(seed).integers(0, 100, shape).astype(kind)
    order = random.sample(range(len(shape)), len(shape))
    codecs: tuple[Any, ...] = (
        {"name": "transpose", "configuration": {"order": order}},
        BIG if kind[0] == ">" else LITTLE,
    )
    compress = zlib.compress if compressed else bytes
    if compressed:
        codecs += ({"name": "numcodecs.zlib", "configuration": {"level": 1}},)
    raw = RawFile(tmp_path_factory.mktemp("raw") / "raw.bin")

    def encode(one: Any) -> bytes:
        return compress(one.transpose(order).tobytes())

    node = make_array(raw, values, chunk, codecs=codecs, encode=encode)
    reader = values_of(node, (raw.url,))
    assert np.array_equal(reader[(slice(None),) * len(shape)], values)
    key = random_key(shape, np.random.default_rng(seed))
    assert np.array_equal(reader[key], take(values, key))
    if shape:
        group = zarr.open_group(open_store(v3_text(make_hierarchy(raw, {"/x": node}))), mode="r")
        assert np.array_equal(group["x"][...], values)  # type: ignore[arg-type]


def test_only_the_wanted_part_of_plain_values_is_read(tmp_path: Path) -> None:
    raw = RawFile(tmp_path / "raw.bin")
    values = np.arange(6 * 1000, dtype="<i4").reshape(6, 1000)
    reader = values_of(make_array(raw, values), (raw.url,))
    asked: list[int] = []
    source = reader._sources.reader(0)
    read = source.read
    source.read = lambda address, nbytes, deliver, **kind: (
        asked.extend(nbytes.tolist()),
        read(address, nbytes, deliver),
    )  # type: ignore[method-assign]
    assert reader[2, slice(10, 20, 3)].tolist() == values[2, 10:20:3].tolist()
    assert asked == [40]
    assert reader[slice(1, 3), 7].tolist() == values[1:3, 7].tolist()
    assert asked == [40, 4004]


def test_texts_are_read_from_any_number_of_chunks(tmp_path: Path) -> None:
    raw = RawFile(tmp_path / "raw.bin")
    texts = np.array([["a", "été"], ["", "日本"], ["x" * 300, "z"]], object)
    node = make_array(raw, texts, (1, 2), data_type="string", codecs=(UTF8,), encode=encode_text, fill_value="none")
    reader = values_of(node, (raw.url,))
    assert reader[slice(None), slice(None)].tolist() == texts.tolist()
    node = make_array(
        *(raw, texts, (1, 2)), data_type="string", codecs=(UTF8,), encode=encode_text, fill_value="n", missing=[(1, 0)]
    )
    assert values_of(node, (raw.url,))[1, slice(None)].tolist() == ["n", "n"]


@pytest.mark.parametrize(
    ("codecs", "content", "message"),
    [
        ((LITTLE,), bytes(12), "has 12 bytes instead of 16"),
        ((LITTLE, {"name": "numcodecs.zlib", "configuration": {"level": 1}}), b"junk", "does not decompress"),
        ((LITTLE, {"name": "numcodecs.fletcher32"}), bytes(16) + b"\1\2\3\4", "checksum"),
    ],
)
def test_a_broken_chunk_is_an_error_that_names_the_array(
    tmp_path: Path, codecs: tuple[Any, ...], content: bytes, message: str
) -> None:
    raw = RawFile(tmp_path / "raw.bin")
    node = make_array(raw, np.zeros(4, "<i4"), codecs=codecs, encode=lambda chunk: content)
    with pytest.raises(MalformedFile, match=f"^{re.escape(raw.url)}:/x: .*{message}") as caught:
        values_of(node, (raw.url,))[(slice(None),)]
    assert caught.value.remedy


@pytest.mark.parametrize("content", [b"", b"\2\0\0\0", b"\1\0\0\0\3\0\0\0ab", b"\1\0\0\0\2\0\0\0\xff\xfe", b"\1\0\0\0"])
def test_a_broken_chunk_of_text_is_an_error(tmp_path: Path, content: bytes) -> None:
    raw = RawFile(tmp_path / "raw.bin")
    options: dict[str, Any] = {"data_type": "string", "codecs": (UTF8,), "encode": lambda chunk: content}
    with pytest.raises(MalformedFile, match=r"^/x: a chunk"):
        values_of(make_array(raw, np.array(["ab"], object), inline=[(0,)], fill_value="", **options), (raw.url,))[(0,)]


def test_codecs_and_types_that_are_not_known_are_left_to_zarr(tmp_path: Path) -> None:
    raw = RawFile(tmp_path / "raw.bin")
    for codecs in (
        (LITTLE, {"name": "numcodecs.lzma"}),
        ({"name": "transpose", "configuration": {"order": [1]}}, LITTLE),  # malformed
        ({"name": "sharding_indexed", "configuration": {}},),
    ):
        assert find_decoder(make_array(raw, np.zeros(4, "<i4"), codecs=codecs)) is None
    assert find_decoder(make_array(raw, np.zeros(4, "<i4"), data_type="int4")) is None


def test_a_codec_without_a_configuration_has_its_defaults(tmp_path: Path) -> None:
    raw = RawFile(tmp_path / "raw.bin")
    decoder = find_decoder(make_array(raw, np.zeros(4, "<i4"), codecs=(LITTLE, {"name": "numcodecs.zlib"})))
    assert decoder is not None
    assert decoder.decode(zlib.compress(np.arange(4, dtype="<i4").tobytes()), (4,)).tolist() == [0, 1, 2, 3]


def test_an_array_can_be_sent_to_another_process_and_is_small(tmp_path: Path) -> None:
    raw = RawFile(tmp_path / "raw.bin")
    values = np.arange(5000, dtype=">i2")
    node = make_array(raw, values, (1,), codecs=(BIG,), attributes={"long": "x" * 100_000})
    sent = pickle.dumps(values_of(node, (raw.url,)))
    assert len(sent) < 24 * 5000 + 3000
    assert np.array_equal(pickle.loads(sent)[(slice(None),)], values)


def test_many_threads_may_read_one_array(tmp_path: Path) -> None:
    raw = RawFile(tmp_path / "raw.bin")
    values = np.arange(64 * 1000, dtype="<i4").reshape(64, 1000)
    reader = values_of(make_array(raw, values, (1, 100)), (raw.url,))
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda row: reader[row, slice(None)], range(64)))
    assert np.array_equal(rows, values)


def test_zarr_agrees_about_arrays_made_by_hand(tmp_path: Path) -> None:
    """The comparison with files would not notice if both read nothing."""
    raw = RawFile(tmp_path / "raw.bin")
    values = np.arange(12, dtype="<i4").reshape(3, 4)
    hierarchy = make_hierarchy(raw, {"/x": make_array(raw, values, (2, 2))})
    from tests.containers.hierarchies import open_store, v3_text

    group = zarr.open_group(open_store(v3_text(hierarchy)), mode="r")
    assert same_bytes(values_of(hierarchy.nodes["/x"], hierarchy.urls)[slice(None), slice(None)], group["x"][...])  # type: ignore[arg-type]


def test_chunks_in_many_files_are_fetched_at_the_same_time() -> None:
    values = np.arange(20 * 100, dtype="<i4").reshape(20, 100)
    with RangeServer({f"/{number}.bin": values[number].tobytes() for number in range(20)}, latency=0.05) as server:
        columns = np.arange(20, dtype=np.int64)
        manifest = Manifest(
            index=np.column_stack((columns, 0 * columns)),
            address=0 * columns,
            nbytes=np.where(columns % 2 == 0, 400, TO_THE_END),
            source=columns.astype(np.int32),
        )
        node = ArrayNode(
            grid=RegularGrid((20, 100), (1, 100)),
            data_type="int32",
            codecs=(LITTLE,),
            fill_value=0,
            dimension_names=("a", "b"),
            attributes={},
            manifest=manifest,
        )
        reader = values_of(node, tuple(server.url(f"/{number}.bin") for number in range(20)))
        assert np.array_equal(reader[slice(None), slice(None)], values)
        assert server.counts.max_in_flight >= 5
        assert (len(server.counts.gets), server.counts.heads) == (20, 10)
        sessions = {id(reader._sources.reader(number)._opened.filesystem) for number in range(20)}  # type: ignore[attr-defined]
        assert len(sessions) == 1
