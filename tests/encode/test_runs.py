"""Runs of values without chunks of their own: how they are cut, and what happens at the end of a file."""

from __future__ import annotations

import time
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h5zarr.encode.arrays import encode_array
from h5zarr.encode.inlining import Budget, Inlining
from h5zarr.encode.runs import choose_length, cut_run
from h5zarr.io.span import Span
from h5zarr.io.steps import run as run_step
from h5zarr.tree import StoredRun, Variable
from h5zarr.zarr_model.hierarchy import ArrayNode

NOTHING_INLINE = Inlining(array_nbytes=0, coordinate_nbytes=0)
FILL = -7


def encode(
    content: bytes, run: StoredRun, chunk_nbytes: int, inlining: Inlining | None = None, shape: tuple[int, ...] = ()
) -> ArrayNode:
    variable = Variable(
        dtype=np.dtype(">i4"),
        shape=shape or run.shape,
        dimensions=tuple(f"d{axis}" for axis in range(len(run.shape))),
        storage=run,
        fill=np.array(FILL, ">i4"),
    )
    step = encode_array(variable, {}, False, Budget(inlining or Inlining(array_nbytes=1)), chunk_nbytes)

    def read_many(spans: list[Span]) -> list[memoryview]:
        assert all(span.address >= 0 and span.end <= len(content) for span in spans)
        return [memoryview(content)[span.address : span.end] for span in spans]

    return run_step(step, read_many)  # type: ignore[arg-type]


def decode(array: ArrayNode, content: bytes) -> np.ndarray:
    """Return the values of an array, as a reader of Zarr puts them together."""
    counts = [-(-extent // chunk) for extent, chunk in zip(array.shape, array.chunk_shape, strict=True)]
    padded = np.full([n * chunk for n, chunk in zip(counts, array.chunk_shape, strict=True)], FILL, ">i4")
    manifest = array.manifest
    chunks = {tuple(index): held for index, held in manifest.inline.items()}
    rows = zip(manifest.index.tolist(), manifest.address.tolist(), manifest.nbytes.tolist(), strict=True)
    for index, address, nbytes in rows:
        assert 0 <= address <= address + nbytes <= len(content)
        assert tuple(index) not in chunks
        chunks[tuple(index)] = content[address : address + nbytes]
    for index, held in chunks.items():
        place = tuple(slice(at * chunk, (at + 1) * chunk) for at, chunk in zip(index, array.chunk_shape, strict=True))
        padded[place] = np.frombuffer(held, ">i4").reshape(array.chunk_shape)
    return padded[tuple(slice(extent) for extent in array.shape)]


def numbers(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(prod(shape), dtype=">i4").reshape(shape)


@pytest.mark.parametrize(
    ("extent", "wanted", "length"),
    [
        (100, 100, 100), (100, 1000, 100), (100, 25, 25), (100, 30, 25), (100, 40, 50), (100, 70, 50), (100, 80, 100),
        (101, 50, 34), (101, 100, 101), (1009, 100, 92), (7, 2, 1), (7, 3, 3), (1, 1, 1), (2**40 + 1, 2**20, 2**20),
    ],
)  # fmt: skip
def test_lengths_are_divisors_or_balanced(extent: int, wanted: int, length: int):
    assert choose_length(extent, wanted) == length


def test_a_small_run_is_one_chunk():
    run = StoredRun(shape=(10, 10), address=8, source_nbytes=408)
    array = encode(b"\xaa" * 8 + numbers((10, 10)).tobytes(), run, 1000)
    assert array.chunk_shape == (10, 10)
    assert (array.manifest.address.tolist(), array.manifest.nbytes.tolist()) == ([8], [400])


def test_a_run_is_cut_along_the_first_axis_whose_rows_are_small_enough():
    def chunk_shape(shape: tuple[int, ...], nbytes: int) -> tuple[int, ...]:
        run = StoredRun(shape=shape, address=0, source_nbytes=1 << 40)
        return cut_run(run, np.dtype(">i4"), nbytes, Budget(Inlining()), may_reach_over=True).chunk_shape

    assert chunk_shape((100, 10, 10), 4000) == (10, 10, 10)
    assert chunk_shape((100, 10, 10), 400) == (1, 10, 10)
    assert chunk_shape((100, 10, 10), 200) == (1, 5, 10)
    assert chunk_shape((100, 10, 10), 8) == (1, 1, 2)
    assert chunk_shape((100, 10, 10), 1) == (1, 1, 1)
    assert chunk_shape((1, 1, 1000), 400) == (1, 1, 100)
    assert chunk_shape((), 1) == ()
    assert chunk_shape((1 << 28,), 1 << 23) == (1 << 21,)


def test_the_last_chunk_reaches_over_into_what_follows():
    content = numbers((7, 2)).tobytes() + b"\xaa" * 16
    array = encode(content, StoredRun(shape=(7, 2), address=0, source_nbytes=len(content)), 24)
    assert (array.chunk_shape, array.manifest.inline) == ((3, 2), {})
    assert array.manifest.nbytes.tolist() == [24, 24, 24]
    assert (decode(array, content) == numbers((7, 2))).all()


def test_at_the_end_of_the_file_the_last_chunk_is_inlined():
    content = numbers((67, 2)).tobytes()
    array = encode(content, StoredRun(shape=(67, 2), address=0, source_nbytes=len(content)), 24 * 8)
    assert array.chunk_shape == (23, 2)
    assert list(array.manifest.inline) == [(2, 0)]
    assert array.manifest.inline[2, 0][21 * 8 :] == np.full(4, FILL, ">i4").tobytes()
    assert (decode(array, content) == numbers((67, 2))).all()


def test_a_smaller_divisor_is_better_than_to_inline():
    content = numbers((3 * 67,)).tobytes()
    array = encode(content, StoredRun(shape=(201,), address=0, source_nbytes=len(content)), 4 * 20)
    assert (array.chunk_shape, array.manifest.inline) == ((3,), {})


def test_where_nothing_may_be_inlined_the_run_stays_whole():
    content = numbers((67,)).tobytes()
    run = StoredRun(shape=(67,), address=0, source_nbytes=len(content))
    for inlining in (NOTHING_INLINE, Inlining(array_nbytes=1, total_nbytes=50)):
        array = encode(content, run, 4 * 20, inlining)
        assert (array.chunk_shape, array.manifest.inline) == ((67,), {})


def test_a_variable_that_is_longer_than_its_values_never_shows_what_follows():
    content = numbers((67,)).tobytes() + b"\xaa" * 1000
    run = StoredRun(shape=(67,), address=0, source_nbytes=len(content))
    assert encode(content, run, 80).chunk_shape == (17,)
    array = encode(content, run, 80, shape=(90,))
    assert array.chunk_shape == (67,)
    assert decode(array, content).tolist() == [*range(67), *[FILL] * 23]


def test_a_million_records_are_columns():
    count = 1_000_000
    run = StoredRun(shape=(count, 3), address=100, source_nbytes=100 + 40 * count, stride=40)
    started = time.perf_counter()
    cut = cut_run(run, np.dtype(">i4"), 8 << 20, Budget(Inlining()), may_reach_over=True)
    assert time.perf_counter() - started < 1
    assert cut.chunk_shape == (1, 3)
    assert np.array_equal(cut.address, 100 + 40 * np.arange(count))
    assert np.array_equal(cut.index[:, 0], np.arange(count))
    assert cut.first_cut == count


@pytest.mark.parametrize("shape", [(1 << 62,), (1 << 40, 1 << 60), (1 << 20, 1 << 60, 1 << 60)])
@pytest.mark.parametrize("stride", [None, 1 << 70])
def test_shapes_that_no_file_can_hold_take_no_memory(shape: tuple[int, ...], stride: int | None):
    content = numbers((64,)).tobytes()
    run = StoredRun(shape=shape, address=4, source_nbytes=len(content), stride=stride)
    array = encode(content, run, 16)
    assert array.manifest.count + len(array.manifest.inline) <= 64


@st.composite
def runs(draw: st.DrawFn) -> tuple[StoredRun, int, int]:
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=0, max_size=3)))
    address, behind = draw(st.integers(0, 9)), draw(st.integers(0, 60))
    row_nbytes = 4 * prod(shape[1:])
    stride = row_nbytes + draw(st.integers(0, 9)) if shape and draw(st.booleans()) else None
    end = address + 4 * prod(shape) if stride is None else address + (shape[0] - 1) * stride + row_nbytes
    cut = draw(st.sampled_from((0, 0, 0, 1, 5, 17, 100)))
    nbytes = max(0, end - cut) if cut else end + behind
    run = StoredRun(shape=shape, address=address, source_nbytes=nbytes, stride=stride)
    return run, draw(st.integers(1, 200)), draw(st.sampled_from((0, 1, 64, 10_000)))


@settings(max_examples=500, deadline=None)
@given(runs())
def test_every_cut_of_every_run_shows_the_same_values(drawn: tuple[StoredRun, int, int]):
    run, chunk_nbytes, inline_nbytes = drawn
    content = bytes(np.random.default_rng(0).integers(0, 256, run.source_nbytes, np.uint8))
    array = encode(content, run, chunk_nbytes, Inlining(array_nbytes=inline_nbytes, coordinate_nbytes=inline_nbytes))
    expected = np.full(run.shape, FILL, ">i4")
    strides = [4 * prod(run.shape[axis + 1 :]) for axis in range(len(run.shape))]
    if run.stride is not None:
        strides[0] = run.stride
    for place in np.ndindex(*run.shape):
        address = run.address + sum(at * stride for at, stride in zip(place, strides, strict=True))
        if address + 4 <= len(content):
            expected[place] = np.frombuffer(content, ">i4", 1, address)[0]
    assert np.array_equal(decode(array, content), expected)
