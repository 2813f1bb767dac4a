"""Virtual datasets: what is referred to, put together or refused shows the values that h5py shows."""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from h5zarr.errors import H5ZarrError, MalformedFile, SourceError, Unsupported
from h5zarr.hdf5.model import VirtualLayout
from h5zarr.hdf5.selection import BlockSelection, PointSelection, RegularSelection
from h5zarr.netcdf4 import assembling
from h5zarr.netcdf4.element_forms import interpret_element
from h5zarr.netcdf4.mappings import is_numbered, resolve_mappings, spell
from h5zarr.netcdf4.regions import resolve_selection
from h5zarr.netcdf4.virtual import locate
from h5zarr.tree import ConvertedValues, StoredChunks
from tests.collections_of_files import SHARED
from tests.netcdf4.random_virtual import write_random
from tests.netcdf4.shown import find_dataset, interpret, opened, show

UNLIMITED = h5py.h5s.UNLIMITED
Place = Any
LIMITED = RegularSelection(start=(0,), stride=(1,), count=(4,), block=(1,))
ENDLESS = replace(LIMITED, count=(None,))
ONE_BLOCK = replace(LIMITED, count=(1,), block=(None,))
SQUARE = RegularSelection(start=(0, 0), stride=(1, 1), count=(None, None), block=(1, 1))


def write_source(path: Path, values: Any, name: str = "a", **options: Any) -> None:
    with h5py.File(path, "a") as file:
        file.create_dataset(name, data=values, **options)


def write_virtual(
    path: Path,
    shape: tuple[int, ...],
    mappings: list[tuple[Place, h5py.VirtualSource]],
    dtype: str = "i4",
    **options: Any,
) -> Path:
    layout = h5py.VirtualLayout(shape, dtype)
    for place, source in mappings:
        layout[place] = source
    with h5py.File(path, "w", libver="latest") as file:
        file.create_virtual_dataset("x", layout, **options)
    return path


def values_of(path: Path) -> np.ndarray[Any, Any]:
    """Return h5py's values, one by one.

    Asked for many at a time, the library leaves out fill values where sources overlap: it counts elements, and thinks
    that it has found them all.
    """
    with h5py.File(path) as file:
        dataset = file["x"]
        return np.array([dataset[place] for place in np.ndindex(dataset.shape)], dataset.dtype).reshape(dataset.shape)


def compare(path: Path, kind: type = object) -> Any:
    """Check all values of "x", and that they are stored as `kind`; return where."""
    with opened(path) as related:
        storage = interpret(related).storage
        shown = show(related)
    expected = values_of(path)
    assert shown.dtype == expected.dtype
    np.testing.assert_array_equal(shown, expected)
    assert isinstance(storage, kind)
    return storage


# --- by reference


@pytest.mark.parametrize("block", range(4))
def test_random_virtual_datasets_show_what_h5py_shows(tmp_path: Path, block: int) -> None:
    kinds = {type(compare(write_random(tmp_path, seed))) for seed in range(12 * block, 12 * block + 12)}
    assert kinds == {StoredChunks, ConvertedValues}


def test_sources_of_several_files_one_behind_the_other_are_referred_to(tmp_path: Path) -> None:
    for number in range(3):
        values = np.arange(24, dtype="i4").reshape(6, 4) + 100 * number
        write_source(tmp_path / f"s{number}.h5", values, chunks=(2, 4), compression="gzip")
    sources = [h5py.VirtualSource(f"s{number}.h5", "a", (6, 4)) for number in range(3)]
    path = write_virtual(tmp_path / "v.h5", (18, 4), [(slice(6 * n, 6 * n + 6), one) for n, one in enumerate(sources)])
    stored = compare(path, StoredChunks)
    assert stored.chunk_shape == (2, 4)
    assert stored.source.tolist() == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert [one.number for one in stored.filters] == [1]


def test_frames_without_chunks_are_one_chunk_each(tmp_path: Path) -> None:
    for number in range(4):
        write_source(tmp_path / f"s{number}.h5", np.arange(6, dtype="i4").reshape(2, 3) + number)
    sources = [h5py.VirtualSource(f"s{number}.h5", "a", (2, 3)) for number in range(4)]
    path = write_virtual(tmp_path / "v.h5", (4, 2, 3), list(enumerate(sources)))
    stored = compare(path, StoredChunks)
    assert stored.chunk_shape == (1, 2, 3)
    assert stored.nbytes.tolist() == [24] * 4


def test_plain_sources_of_unequal_length_are_cut_into_equal_chunks(tmp_path: Path) -> None:
    write_source(tmp_path / "s0.h5", np.arange(12, dtype="i4").reshape(6, 2))
    write_source(tmp_path / "s1.h5", np.arange(18, dtype="i4").reshape(9, 2))
    first, second = h5py.VirtualSource("s0.h5", "a", (6, 2)), h5py.VirtualSource("s1.h5", "a", (9, 2))
    path = write_virtual(tmp_path / "v.h5", (15, 2), [(slice(0, 6), first), (slice(6, 15), second)])
    assert compare(path, StoredChunks).chunk_shape == (3, 2)


def test_rows_of_a_plain_source_are_a_part_of_its_bytes(tmp_path: Path) -> None:
    write_source(tmp_path / "s.h5", np.arange(40, dtype="i4").reshape(10, 4))
    source = h5py.VirtualSource("s.h5", "a", (10, 4))
    path = write_virtual(tmp_path / "v.h5", (4, 4), [(slice(0, 2), source[7:9]), (slice(2, 4), source[1:3])])
    assert compare(path, StoredChunks).chunk_shape == (2, 4)


def test_a_chunk_that_ends_inside_the_virtual_dataset_is_not_shown_beyond_its_source(tmp_path: Path) -> None:
    """The chunk has room for four values; the source shows three, and the fourth is none of the reader's business."""
    with h5py.File(tmp_path / "s.h5", "w") as file:
        dataset = file.create_dataset("a", data=np.arange(4, dtype="i4"), chunks=(4,), maxshape=(None,))
        dataset.resize((3,))
    source = h5py.VirtualSource("s.h5", "a", (3,))
    compare(write_virtual(tmp_path / "v.h5", (8,), [(slice(0, 3), source)], fillvalue=9), ConvertedValues)
    compare(write_virtual(tmp_path / "w.h5", (3,), [(slice(0, 3), source)], fillvalue=9), StoredChunks)


def test_sources_may_differ_in_the_level_of_compression_only(tmp_path: Path) -> None:
    def written(name: str, options: list[dict[str, Any]]) -> Path:
        for number, one in enumerate(options):
            write_source(tmp_path / f"{name}{number}.h5", np.arange(8, dtype="i4"), chunks=(4,), **one)
        sources = [h5py.VirtualSource(f"{name}{number}.h5", "a", (8,)) for number in range(2)]
        return write_virtual(tmp_path / f"{name}.h5", (16,), [(slice(0, 8), sources[0]), (slice(8, 16), sources[1])])

    compare(written("level", [{"compression": 1}, {"compression": 9}]), StoredChunks)
    compare(written("filter", [{"compression": 1}, {"shuffle": True, "compression": 1}]), ConvertedValues)


def test_chunks_that_a_source_lacks_must_read_as_the_virtual_fill(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file.create_dataset("a", (8,), "i4", chunks=(4,), fillvalue=3)[:4] = 1
    source = h5py.VirtualSource("s.h5", "a", (8,))
    compare(write_virtual(tmp_path / "same.h5", (8,), [(slice(0, 8), source)], fillvalue=3), StoredChunks)
    compare(write_virtual(tmp_path / "other.h5", (8,), [(slice(0, 8), source)], fillvalue=4), ConvertedValues)


def test_a_virtual_dataset_of_virtual_datasets_refers_to_the_first_sources(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for number in range(4):
        write_source(tmp_path / "inner" / f"s{number}.h5", np.arange(4, dtype="i4") + number, chunks=(2,))
    for pair in range(2):
        sources = [h5py.VirtualSource(f"s{2 * pair + n}.h5", "a", (4,)) for n in range(2)]
        mappings = [(slice(0, 4), sources[0]), (slice(4, 8), sources[1])]
        write_virtual(tmp_path / "inner" / f"pair{pair}.h5", (8,), mappings)
    pairs = [h5py.VirtualSource(f"inner/pair{pair}.h5", "x", (8,)) for pair in range(2)]
    stored = compare(write_virtual(tmp_path / "v.h5", (2, 8), list(enumerate(pairs))), StoredChunks)
    assert stored.chunk_shape == (1, 2)
    assert len(set(stored.source.tolist())) == 4
    compare(write_virtual(tmp_path / "w.h5", (2, 4), [(n, one[::2]) for n, one in enumerate(pairs)]), ConvertedValues)


def test_the_same_file_and_array_types(tmp_path: Path) -> None:
    element = np.dtype(("i4", (3,)))
    with h5py.File(tmp_path / "v.h5", "w") as file:
        dataset = file.create_dataset("a", (4,), element, chunks=(2,))
        dataset[...] = np.arange(12, dtype="i4").reshape(4, 3)
        layout = h5py.VirtualLayout((4,), element)
        layout[:] = h5py.VirtualSource(".", "a", (4,), element)
        file.create_virtual_dataset("x", layout)
    with opened(tmp_path / "v.h5") as related:
        assert interpret(related).storage.source == 0
        np.testing.assert_array_equal(show(related), np.arange(12).reshape(4, 3))


# --- put together


@pytest.mark.parametrize(
    ("source", "virtual"),
    [("i8", "i4"), ("i8", "u1"), ("u8", "i8"), ("f8", "f4"), ("f8", "i4"), ("i4", ">f4"), ("f4", "u1"), (">i2", "<i2")],
)
def test_numbers_are_converted_as_the_library_does(tmp_path: Path, source: str, virtual: str) -> None:
    values = np.array([0, 1, 3, 250, 300], source)
    if np.dtype(source).kind == "i":
        values = np.concatenate([values, np.array([-1, -300], source)])
    if np.dtype(source).kind == "f":
        values = np.concatenate([values, np.array([2.7, -2.7, 1e30, -1e30, np.inf], source)])
    if np.dtype(source).itemsize == 8 and np.dtype(source).kind != "f":
        values = np.concatenate([values, np.array([np.iinfo(source).max, np.iinfo(source).min], source)])
    write_source(tmp_path / "s.h5", values.astype(source))
    sources = [(slice(0, len(values)), h5py.VirtualSource("s.h5", "a", values.shape))]
    compare(write_virtual(tmp_path / "v.h5", values.shape, sources, virtual), ConvertedValues)


def test_text_of_any_length_is_put_together(tmp_path: Path) -> None:
    write_source(tmp_path / "s.h5", ["one", "größer", ""], dtype=h5py.string_dtype())
    source = h5py.VirtualSource("s.h5", "a", (3,), h5py.string_dtype())
    path = write_virtual(tmp_path / "v.h5", (4,), [(slice(1, 4), source)], h5py.string_dtype())
    with opened(path) as related:
        assert show(related).tolist() == ["", "one", "größer", ""]


def test_irregular_selections_take_each_element_once_in_row_major_order(tmp_path: Path) -> None:
    write_source(tmp_path / "s.h5", np.arange(36, dtype="i4").reshape(6, 6))
    source = h5py.h5s.create_simple((6, 6))
    source.select_hyperslab((0, 1), (2, 2))
    source.select_hyperslab((1, 2), (3, 3), op=h5py.h5s.SELECT_OR)
    count = source.get_select_npoints()
    virtual = h5py.h5s.create_simple((5, 4))
    virtual.select_hyperslab((4, 1), (1, 2))
    virtual.select_hyperslab((0, 0), (3, 3), op=h5py.h5s.SELECT_OR)
    virtual.select_hyperslab((2, 3), (1, 1), op=h5py.h5s.SELECT_OR)
    assert count == virtual.get_select_npoints()
    write_low(tmp_path / "v.h5", (5, 4), [(virtual, b"s.h5", b"a", source)])
    compare(tmp_path / "v.h5", ConvertedValues)


def test_points_are_taken_in_their_own_order() -> None:
    region = resolve_selection(PointSelection(np.array([[2, 1], [0, 3], [1, 1]], np.uint64)), (4, 4))
    assert region.take(np.arange(16).reshape(4, 4), (0, 0)).tolist() == [9, 3, 5]


def test_irregular_selections_that_are_spread_too_far_are_unsupported() -> None:
    far = np.array([[0, 0], [1 << 31, 1 << 31]], np.uint64)
    with pytest.raises(Unsupported, match=r"a selection of points in a box of \(2147483649, 2147483649\) is too large"):
        resolve_selection(PointSelection(far), (1 << 32, 1 << 32))
    with pytest.raises(
        Unsupported, match=r"a selection of 2 blocks in a box of \(2147483649, 2147483649\) is too large"
    ):
        resolve_selection(BlockSelection(far, far), (1 << 32, 1 << 32))


def test_only_the_chunks_around_a_selection_are_read(tmp_path: Path) -> None:
    write_source(tmp_path / "s.h5", np.arange(400_000, dtype="i4"), chunks=(1000,))
    source = h5py.VirtualSource("s.h5", "a", (400_000,))
    path = write_virtual(tmp_path / "v.h5", (10,), [(slice(0, 10), source[123_456:123_476:2])])
    compare(path, ConvertedValues)
    with opened(path) as related:
        before = related.log.nbytes
        show(related)
        assert related.log.nbytes - before == 4000


# --- what is missing, broken or impossible


def test_missing_sources_read_as_fill_and_are_named(tmp_path: Path) -> None:
    write_source(tmp_path / "s.h5", np.arange(4, dtype="i4"), chunks=(4,))
    names = [("s.h5", "a"), ("none.h5", "a"), ("s.h5", "none")]
    mappings = [(number, h5py.VirtualSource(file, name, (4,))) for number, (file, name) in enumerate(names)]
    path = write_virtual(tmp_path / "v.h5", (3, 4), mappings, fillvalue=-5)
    compare(path, StoredChunks)
    with opened(path) as related:
        assert interpret(related).missing == ("'a' in 'none.h5'", "'none' in 's.h5'")


def test_a_fill_value_is_shown_even_if_it_is_never_written(tmp_path: Path) -> None:
    space = h5py.h5s.create_simple((4,))
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_fill_value(np.array(9, "i4"))
    plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    write_low(tmp_path / "v.h5", (4,), [(space, b"none.h5", b"a", space)], plist)
    assert compare(tmp_path / "v.h5", StoredChunks).address.size == 0
    assert values_of(tmp_path / "v.h5").tolist() == [9] * 4


@pytest.mark.parametrize("content", [b"", b"x" * 2000])
def test_a_source_file_that_is_not_hdf5_is_not_taken_for_missing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s.h5").write_bytes(content)
    path = write_virtual(tmp_path / "v.h5", (4,), [(slice(0, 4), h5py.VirtualSource("s.h5", "a", (4,)))])
    with pytest.raises(OSError, match="signature"):
        values_of(path)
    with opened(path) as related, pytest.raises(SourceError):
        interpret(related)


@pytest.mark.parametrize("extent", [2, 8])
def test_a_source_of_another_size_than_was_mapped_is_refused(tmp_path: Path, extent: int) -> None:
    write_source(tmp_path / "s.h5", np.arange(extent, dtype="i4"))
    path = write_virtual(tmp_path / "v.h5", (4,), [(slice(0, 4), h5py.VirtualSource("s.h5", "a", (4,)))])
    with h5py.File(path) as file, pytest.raises(OSError, match="number of elements"):
        file["x"][...]
    with opened(path) as related, pytest.raises(MalformedFile, match="4 elements are mapped"):
        interpret(related)


def test_types_that_cannot_be_converted_are_refused(tmp_path: Path) -> None:
    write_source(tmp_path / "s.h5", np.array([b"ab", b"c"]))
    path = write_virtual(tmp_path / "v.h5", (2,), [(slice(0, 2), h5py.VirtualSource("s.h5", "a", (2,)))])
    with opened(path) as related, pytest.raises(Unsupported, match="String of 2 bytes to FixedPoint"):
        interpret(related)


def test_selections_that_say_impossible_things_are_refused(tmp_path: Path) -> None:
    """Not even the library writes such; so they are put into a scanned file."""
    write_source(tmp_path / "s.h5", np.arange(4, dtype="i4"), chunks=(2,))
    path = write_virtual(tmp_path / "v.h5", (4,), [(slice(0, 4), h5py.VirtualSource("s.h5", "a", (4,)))])
    huge, one = 1 << 62, RegularSelection(start=(0,), stride=(1,), count=(1,), block=(4,))
    odd = [
        replace(one, start=(huge,)),
        replace(one, start=(0, 0), stride=(1, 1), count=(None, None), block=(1, 1)),
        replace(one, start=(0, 0), stride=(1, 1), count=(1, 1), block=(2, 2)),
        replace(one, stride=(huge,), count=(None,), block=(1,)),
        replace(one, stride=(0,), count=(4,), block=(1,)),
        PointSelection(np.array([[huge]], np.uint64)),
        BlockSelection(np.array([[3]], np.uint64), np.array([[huge]], np.uint64)),
    ]
    with opened(path) as related:
        dataset = find_dataset(related, "x")
        form = interpret_element(dataset.datatype)
        assert isinstance(dataset.layout, VirtualLayout)
        (mapping,) = dataset.layout.mappings
        for source, virtual in itertools.product([one, *odd], odd):
            layout = VirtualLayout((replace(mapping, source_selection=source, virtual_selection=virtual),))
            with suppress(H5ZarrError):
                located = locate(related.file, replace(dataset, layout=layout), form, related, (4,))
                assert isinstance(located.storage, ConvertedValues)
                assert located.storage.nbytes >= 4


@pytest.mark.parametrize(
    ("file", "source", "virtual", "complaint"),
    [
        ("s.h5", LIMITED, ENDLESS, "the mapping to 's.h5' is unlimited on one side only"),
        ("s.h5", ENDLESS, LIMITED, "the mapping to 's.h5' is unlimited on one side only"),
        ("s%b.h5", LIMITED, LIMITED, "numbered sources 's%b.h5' 'a' needs an unlimited selection in the virtual"),
        ("s%b.h5", ENDLESS, ENDLESS, "numbered sources 's%b.h5' 'a' needs an unlimited selection in the virtual"),
        ("s%b.h5", LIMITED, ONE_BLOCK, "an unlimited block is mapped to numbered sources"),
        ("s.h5", replace(LIMITED, stride=(0,)), LIMITED, "a selection has a stride of 0"),
        ("s.h5", ENDLESS, SQUARE, "a selection is unlimited along two axes"),
    ],
)
def test_mappings_that_say_impossible_things_are_malformed(
    tmp_path: Path, file: str, source: Any, virtual: Any, complaint: str
) -> None:
    write_source(tmp_path / "s.h5", np.arange(4, dtype="i4"))
    path = write_virtual(tmp_path / "v.h5", (4,), [(slice(0, 4), h5py.VirtualSource("s.h5", "a", (4,)))])
    with opened(path) as related:
        dataset = find_dataset(related, "x")
        assert isinstance(dataset.layout, VirtualLayout)
        (mapping,) = dataset.layout.mappings
        planted = replace(mapping, source_file=file, source_selection=source, virtual_selection=virtual)
        with pytest.raises(MalformedFile, match=complaint):
            resolve_mappings(related.file, replace(dataset, layout=VirtualLayout((planted,))), related)


def test_a_source_with_nan_does_not_become_integers(tmp_path: Path) -> None:
    write_source(tmp_path / "s.h5", np.array([1, np.nan]))
    path = write_virtual(tmp_path / "v.h5", (2,), [(slice(0, 2), h5py.VirtualSource("s.h5", "a", (2,)))])
    with opened(path) as related, pytest.raises(Unsupported, match="a source contains NaN, but the virtual dataset"):
        show(related)


def test_parts_are_not_assembled_from_more_than_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembling, "_MOST_NBYTES", 11)
    write_source(tmp_path / "s.h5", np.arange(4, dtype="i4"))
    source = h5py.VirtualSource("s.h5", "a", (4,))
    path = write_virtual(tmp_path / "v.h5", (2,), [(slice(0, 2), source[::2])])
    with opened(path) as related, pytest.raises(Unsupported, match="assembling them would read 12 bytes, more than 11"):
        show(related)


def test_a_virtual_dataset_that_shows_itself_is_refused(tmp_path: Path) -> None:
    space = h5py.h5s.create_simple((4,))
    write_low(tmp_path / "v.h5", (4,), [(space, b".", b"x", space)])
    with opened(tmp_path / "v.h5") as related, pytest.raises(Unsupported, match="nested more than"):
        show(related)


# --- without an end


def hyperslab(start: Any, stride: Any, count: Any, block: Any, maximum: Any = None) -> h5py.h5s.SpaceID:
    space = h5py.h5s.create_simple((12,) * len(start), maximum or (UNLIMITED,) * len(start))
    space.select_hyperslab(start, count, stride, block)
    return space


def write_low(path: Path, shape: Any, mappings: Any, plist: Any = None, maximum: Any = None) -> None:
    plist = plist or h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    for virtual, file, dataset, source in mappings:
        plist.set_virtual(virtual, file, dataset, source)
    with h5py.File(path, "w", libver="latest") as file:
        space = h5py.h5s.create_simple(shape, maximum or shape)
        h5py.h5d.create(file.id, b"x", h5py.h5t.STD_I32LE, space, plist)


def true_shape(path: Path) -> tuple[int, ...]:
    with opened(path) as related:
        return find_dataset(related, "x").dataspace.shape


@pytest.mark.parametrize("extent", [1, 4, 5, 9, 20])
@pytest.mark.parametrize(
    ("virtual", "source"),
    [
        (((0,), (1,), (1,), (UNLIMITED,)), ((0,), (1,), (1,), (UNLIMITED,))),
        (((3,), (4,), (UNLIMITED,), (2,)), ((0,), (1,), (1,), (UNLIMITED,))),
        (((1,), (1,), (1,), (UNLIMITED,)), ((1,), (3,), (UNLIMITED,), (1,))),
        (((0,), (5,), (UNLIMITED,), (3,)), ((0,), (2,), (UNLIMITED,), (2,))),
    ],
)
def test_the_extent_follows_from_a_source_that_has_grown(
    tmp_path: Path, virtual: Any, source: Any, extent: int
) -> None:
    path = tmp_path / "v.h5"
    write_source(tmp_path / "s.h5", np.arange(extent, dtype="i4"), chunks=(2,), maxshape=(None,))
    write_low(path, (2,), [(hyperslab(*virtual), b"s.h5", b"a", hyperslab(*source))], maximum=(UNLIMITED,))
    compare(path)
    assert true_shape(path) == values_of(path).shape


@pytest.mark.parametrize("present", [(), (0,), (0, 1, 2), (0, 1, 3), (1,)])
def test_numbered_sources_are_shown_up_to_the_first_that_is_missing(tmp_path: Path, present: tuple[int, ...]) -> None:
    for number in present:
        write_source(tmp_path / f"s%{number}.h5", np.arange(4, dtype="i4") + 10 * number, f"a{number}")
    blocks, path = hyperslab((1,), (4,), (UNLIMITED,), (4,)), tmp_path / "v.h5"
    mapping = (blocks, b"s%%%b.h5", b"a%b", h5py.h5s.create_simple((4,)))
    write_low(path, (2,), [mapping], maximum=(UNLIMITED,))
    compare(path)
    assert true_shape(path) == values_of(path).shape


def test_a_virtual_source_has_the_extent_that_its_file_states(tmp_path: Path) -> None:
    """The library does not look how far it has grown; its values are refused then, being neither new nor all old."""
    write_source(tmp_path / "s.h5", np.arange(7, dtype="i4"), chunks=(2,), maxshape=(None,))
    growing = (hyperslab((0,), (1,), (1,), (UNLIMITED,)),) * 2
    for name, stated in (("same", 7), ("older", 2)):
        inner = tmp_path / f"inner_{name}.h5"
        write_low(inner, (stated,), [(growing[0], b"s.h5", b"a", growing[1])], maximum=(UNLIMITED,))
        outer = (growing[0], inner.name.encode(), b"x", growing[1])
        write_low(tmp_path / f"{name}.h5", (1,), [outer], maximum=(UNLIMITED,))
        assert values_of(tmp_path / f"{name}.h5").shape == (stated,)
    assert compare(tmp_path / "same.h5", StoredChunks).chunk_shape == (2,)
    with opened(tmp_path / "older.h5") as related, pytest.raises(Unsupported, match="but is now \\(7,\\)"):
        interpret(related)


def test_names_are_spelled_out() -> None:
    assert [is_numbered(name) for name in ("a%b", "a%%b", "a", "%%%b")] == [True, False, False, True]
    assert spell("100%%_%b_%b.h5", 12) == "100%_12_12.h5"
    with pytest.raises(MalformedFile, match="specifier"):
        spell("50%")


def test_the_trap_shows_what_h5py_shows() -> None:
    path = SHARED / "traps" / "vds.h5"
    if not path.is_file():
        pytest.skip("the collection traps is not beside the project")
    compare(path)


def test_every_error_has_a_kind_and_a_remedy_or_a_place(tmp_path: Path) -> None:
    path = write_virtual(tmp_path / "v.h5", (4,), [(slice(0, 4), h5py.VirtualSource("http://far/s.h5", "a", (4,)))])
    with (
        opened(path) as related,
        pytest.raises(H5ZarrError, match="URL; h5zarr does not follow URLs in files") as caught,
    ):
        interpret(related)
    assert caught.value.kind == "source"
