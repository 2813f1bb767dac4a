"""Random files that h5py writes: a scan of them says what h5py says."""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.truth.scan_against_h5py import compare

DTYPES = ["i1", "<u2", ">i4", "<i8", ">u8", "<f2", ">f4", "<f8", "?", "<c8", ">c16", "S1", "S7", "V3"]
STRUCTURED = [
    np.dtype([("a", "<i2"), ("b", ">f8"), ("c", "S3")]),
    np.dtype([("x", "<f4", (2, 3)), ("y", [("z", "u1"), ("w", "<i4")])]),
    np.dtype({"names": ["p", "q"], "formats": ["i1", "<i8"], "offsets": [1, 8], "itemsize": 24}),
]
LIBVERS = ["earliest", ("v108", "v108"), ("v110", "v110"), ("v112", "v112"), "latest"]


@dataclass(frozen=True)
class Described:
    """A dataset to be written. `written` chooses chunks by their position in the grid; `chunks` None is contiguous."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    chunks: tuple[int, ...] | None = None
    max_shape: tuple[int | None, ...] | None = None
    written: frozenset[int] = frozenset()
    options: dict[str, Any] = field(default_factory=dict)
    early: bool = False
    fill: int | None = None
    new_shape: tuple[int, ...] | None = None


@st.composite
def described(draw: st.DrawFn) -> Described:
    dtype = np.dtype(draw(st.sampled_from(DTYPES) | st.sampled_from(STRUCTURED)))
    rank = draw(st.integers(1, 4))
    shape = tuple(draw(st.lists(st.integers(0, 9), min_size=rank, max_size=rank)))
    if not draw(st.integers(0, 4)):
        return Described(dtype, shape, written=frozenset([0]) if draw(st.booleans()) else frozenset())
    chunks = tuple(draw(st.integers(1, max(1, extent))) for extent in shape)
    limits = [draw(st.sampled_from([None, extent, extent + 1, 3 * extent + 2])) for extent in shape]
    max_shape = tuple(limits) if draw(st.booleans()) else None
    if max_shape is not None:
        chunks = tuple(min(chunk, limit or chunk) for chunk, limit in zip(chunks, max_shape, strict=True))
    if max_shape is None:
        shape = tuple(max(extent, chunk) for extent, chunk in zip(shape, chunks, strict=True))
    elif any(limit == 0 for limit in max_shape):
        max_shape = tuple(limit if limit is None else max(limit, 1) for limit in max_shape)
    count = int(np.prod([-(-extent // chunk) for extent, chunk in zip(shape, chunks, strict=True)]))
    written = draw(st.just(frozenset(range(count))) | st.frozensets(st.integers(0, max(0, count - 1)), max_size=6))
    options: dict[str, Any] = {}
    if draw(st.booleans()):
        options["compression"] = draw(st.sampled_from(["gzip", "lzf"]))
    if draw(st.booleans()):
        options["shuffle"] = True
    if not draw(st.integers(0, 3)):
        options["fletcher32"] = True
    if not options and dtype.kind in "iu" and draw(st.booleans()):
        options["scaleoffset"] = 0
    new_shape = None
    if max_shape is not None and draw(st.booleans()):
        tops = [2 * extent + 1 if limit is None else limit for extent, limit in zip(shape, max_shape, strict=True)]
        new_shape = tuple(draw(st.integers(0, top)) for top in tops)
    return Described(
        dtype,
        shape,
        chunks,
        max_shape,
        written,
        options,
        early=draw(st.booleans()),
        fill=draw(st.none() | st.integers(1, 100)) if dtype.kind in "iuf" else None,
        new_shape=new_shape,
    )


def values(dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return values that differ from place to place."""
    count = int(np.prod(shape, dtype=int))
    if dtype.names or dtype.kind in "SVc":
        ramp = np.arange(count * dtype.itemsize) % 113 + 1
        if dtype.kind == "c":
            return (np.arange(count) - 1j * np.arange(count)).astype(dtype).reshape(shape)
        return ramp.astype(np.uint8).view(dtype).reshape(shape)
    return (np.arange(count) % 113 + 1).astype(dtype).reshape(shape)


def write(file: h5py.File, name: str, one: Described) -> None:
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if one.early:
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    dataset = file.create_dataset(
        name,
        one.shape,
        one.dtype,
        chunks=one.chunks,
        maxshape=one.max_shape,
        fillvalue=one.fill,
        dcpl=plist,
        **one.options,
    )
    content = values(one.dtype, one.shape)
    if one.chunks is None:
        if one.written:
            dataset[...] = content
    else:
        axes = [range(0, extent, chunk) for extent, chunk in zip(one.shape, one.chunks, strict=True)]
        for number, origin in enumerate(itertools.product(*axes)):
            if number in one.written:
                part = tuple(slice(at, at + chunk) for at, chunk in zip(origin, one.chunks, strict=True))
                dataset[part] = content[part]
    if one.new_shape is not None:
        dataset.resize(one.new_shape)


_scalars = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.booleans(),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20),
    st.binary(min_size=1, max_size=10).map(np.void),
    st.complex_numbers(),
)
_arrays = st.builds(
    lambda code, shape: values(np.dtype(code), tuple(shape)),
    st.sampled_from(DTYPES),
    st.lists(st.integers(0, 4), min_size=0, max_size=3),
)
_texts = st.lists(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9), max_size=5
).map(lambda texts: np.array(texts, h5py.string_dtype()))
_sequences = st.lists(st.lists(st.integers(-100, 100), max_size=5), min_size=1, max_size=4).map(
    lambda rows: np.array([*(np.array(row, "<i4") for row in rows), None], h5py.vlen_dtype(np.dtype("<i4")))[:-1]
)


def _enumeration(code: str, names: list[str], count: int) -> np.ndarray[Any, Any]:
    members = {name: 13 * number for number, name in enumerate(names)}
    return np.resize(np.array(list(members.values())), count).astype(h5py.enum_dtype(members, code))


_enumerations = st.builds(
    _enumeration,
    st.sampled_from(["i1", "<u2", ">i4", "<i8"]),
    st.lists(st.text("abcdefghijkl", min_size=1), min_size=1, max_size=9, unique=True),
    st.integers(0, 5),
)
_empties = st.sampled_from([h5py.Empty("f4"), h5py.Empty("S5")])
_names = st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=12)
_attributes = st.dictionaries(_names, _scalars | _arrays | _texts | _sequences | _enumerations | _empties, max_size=12)

_settings = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def check(libver: Any, datasets: list[Described], attributes: dict[str, Any], **options: Any) -> int:
    """Write a file, compare it with h5py, and return how many chunks were checked."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.h5"
        with h5py.File(path, "w", libver=libver, **options) as file:
            for number, one in enumerate(datasets):
                write(file, f"group/{number}", one)
            for name, value in attributes.items():
                file.attrs[name] = value
        found = compare(path)
    assert not found.differences
    assert not found.problems
    assert not found.refused
    assert len(found.compared) == found.identical == len(datasets)
    assert found.counts["attributes"] == len(attributes)
    return found.counts["chunks"]


@settings(_settings, max_examples=400)
@given(st.sampled_from(LIBVERS), st.lists(described(), min_size=1, max_size=3), st.sampled_from([0, 512]))
def test_any_datasets_are_what_h5py_says(libver: Any, datasets: list[Described], userblock_size: int) -> None:
    expected = 0
    for one in datasets:
        if one.chunks is not None and one.new_shape is None and not one.early:
            expected += len(one.written) if 0 not in one.shape else 0
    assert check(libver, datasets, {}, userblock_size=userblock_size) >= expected


@settings(_settings, max_examples=250)
@given(st.sampled_from(["earliest", "latest"]), _attributes, st.booleans())
def test_any_attributes_are_what_h5py_says(libver: str, attributes: dict[str, Any], track_order: bool) -> None:
    check(libver, [], attributes, track_order=track_order)


def test_the_values_of_these_tests_differ_from_place_to_place() -> None:
    for dtype in [*map(np.dtype, DTYPES), *STRUCTURED]:
        if dtype.kind != "b":
            content = values(dtype, (5, 6))
            assert len({one.tobytes() for one in content.ravel()}) > 5


@pytest.mark.parametrize("libver", LIBVERS)
def test_a_dataset_of_every_dtype(libver: Any) -> None:
    every = [np.dtype(code) for code in DTYPES] + STRUCTURED
    datasets = [Described(dtype, (4, 5), (2, 2), written=frozenset(range(6))) for dtype in every]
    assert check(libver, datasets, {}) == 6 * len(every)
