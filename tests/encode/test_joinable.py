"""Arrays that are to be joined with those of other files: what they are does not depend on how much a file has."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from h5zarr.encode.inlining import Inlining
from h5zarr.hdf5.model import Filter
from h5zarr.tree import ConvertedValues, StoredChunks, StoredRun, Variable
from h5zarr.zarr_model.hierarchy import ArrayNode
from tests.encode.trees import CONTENT, encode, stored

NOTHING = Inlining.up_to(0)
DEFLATE = Filter(number=1, name="deflate", optional=False, values=(4,))
UNKNOWN = Filter(number=999, name="unknown", optional=False, values=())


def array(variable: Variable, inlining: Inlining = NOTHING, *, joinable: bool = True, path: str = "/v") -> ArrayNode:
    hierarchy, _ = encode({path: variable}, inlining, joinable=joinable)
    assert not hierarchy.problems
    node = hierarchy.nodes[path]
    assert isinstance(node, ArrayNode)
    return node


def run(shape: tuple[int, ...], stride: int | None = None) -> Variable:
    storage = StoredRun(shape=shape, address=8, source_nbytes=1 << 40, stride=stride)
    dimensions = tuple(f"d{axis}" for axis in range(len(shape)))
    return Variable(dtype=np.dtype(">f8"), shape=shape, dimensions=dimensions, storage=storage)


def names(node: ArrayNode) -> list[str]:
    return [codec["name"] for codec in node.codecs]


def test_values_without_chunks_stay_whole() -> None:
    variable = run((1000, 1000, 10))
    assert array(variable, joinable=False).chunk_shape != (1000, 1000, 10)
    node = array(variable)
    assert node.chunk_shape == (1000, 1000, 10)
    assert node.manifest.nbytes.tolist() == [8 * 10**7]


@pytest.mark.parametrize("count", [1, 3, 31, 1000])
def test_records_stay_chunks_of_their_own(count: int) -> None:
    assert array(run((3, 2), stride=100), Inlining.up_to(500), joinable=False).chunk_shape == (3, 2)
    node = array(run((count, 2), stride=100), Inlining.up_to(500))
    assert node.chunk_shape == (1, 2)
    assert node.manifest.count == count


def test_no_records_are_an_array_without_chunks() -> None:
    node = array(run((0, 2), stride=100))
    assert (node.shape, node.chunk_shape, node.manifest.count) == ((0, 2), (1, 2), 0)


def test_records_of_a_coordinate_are_put_together() -> None:
    variable = replace(run((3,), stride=100), dimensions=("v",))
    assert array(variable, Inlining()).manifest.inline.keys() == {(0,)}


# --- chunks that are longer than their axis


def oversized(shape: tuple[int, ...], chunk_shape: tuple[int, ...], **more: Any) -> Variable:
    nbytes = 2 * int(np.prod(chunk_shape))
    storage = StoredChunks(
        chunk_shape=chunk_shape,
        index=np.zeros((1, len(shape)), np.int64),
        address=np.array([1000]),
        nbytes=np.array([nbytes]),
        **more,
    )
    return Variable(dtype=np.dtype("<i2"), shape=shape, dimensions=("a", "b")[: len(shape)], storage=storage)


def test_a_chunk_is_cut_to_the_length_of_the_axis() -> None:
    assert array(oversized((3,), (512,)), joinable=False).chunk_shape == (512,)
    node = array(oversized((3,), (512,)))
    assert (node.chunk_shape, node.manifest.address.tolist(), node.manifest.nbytes.tolist()) == ((3,), [1000], [6])


def test_only_the_first_axis_is_cut_since_values_lie_row_by_row() -> None:
    node = array(oversized((3, 5), (512, 8)))
    assert (node.chunk_shape, node.manifest.nbytes.tolist()) == ((3, 8), [48])


def test_an_inlined_chunk_is_cut_as_well() -> None:
    node = array(oversized((3,), (8,)), Inlining())
    assert (node.chunk_shape, node.manifest.inline) == ((3,), {(0,): CONTENT[1000:1006]})


def test_a_compressed_chunk_is_decoded_and_cut_where_that_may_be_inlined(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.arange(512, dtype="<i2")
    content = zlib.compress(values.tobytes())
    monkeypatch.setattr("tests.encode.trees.CONTENT", bytes(1000) + content + bytes(2000))
    for limit, chunk_shape, inline in ((5, (512,), {}), (6, (3,), {(0,): values[:3].tobytes()})):
        node = array(oversized((3,), (512,), filters=(DEFLATE,)), Inlining(array_nbytes=0, converted_nbytes=limit))
        assert (node.chunk_shape, node.manifest.inline) == (chunk_shape, inline)
        assert names(node) == (["bytes"] if inline else ["bytes", "numcodecs.zlib"])


def test_chunks_that_fit_stay_as_they_are() -> None:
    assert array(stored(3, 5)).chunk_shape == (5,)
    assert array(oversized((0,), (512,))).chunk_shape == (512,)


# --- codecs


def unwritten(*filters: Filter) -> Variable:
    none = np.empty(0, np.int64)
    storage = StoredChunks(chunk_shape=(4,), index=none.reshape(0, 1), address=none, nbytes=none, filters=filters)
    return Variable(dtype=np.dtype("<i2"), shape=(8,), dimensions=("a",), storage=storage)


def test_codecs_are_named_where_nothing_is_written_yet() -> None:
    assert names(array(unwritten(DEFLATE), joinable=False)) == ["bytes"]
    assert names(array(unwritten(DEFLATE))) == ["bytes", "numcodecs.zlib"]


def test_a_filter_without_a_codec_does_no_harm_where_nothing_is_written() -> None:
    assert names(array(unwritten(UNKNOWN))) == ["bytes"]


def test_what_a_codec_converts_is_left_to_it_however_little_it_is() -> None:
    def read() -> Any:
        return np.arange(3, dtype="<i2")
        yield

    chunks = oversized((3,), (3,)).storage
    assert isinstance(chunks, StoredChunks)
    codec = {"name": "h5zarr.elements", "configuration": {}}
    storage = ConvertedValues(read=read, nbytes=6, stored=chunks, codec=codec)
    variable = Variable(dtype=np.dtype("<i2"), shape=(3,), dimensions=("a",), storage=storage)
    assert names(array(variable, Inlining(), joinable=False)) == ["bytes"]
    assert names(array(variable, Inlining())) == ["bytes", "h5zarr.elements"]
