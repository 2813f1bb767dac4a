"""Every file that can be translated, through Parquet: readers see what they see through JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from h5zarr.commands.translate.translate import translate
from h5zarr.commands.translate.translation import Translation
from h5zarr.containers.parquet.parquet_writing import choose_record_size
from h5zarr.opening import open_hierarchy
from tests.collections_of_files import any_samples, translatable_shared
from tests.containers.hierarchies import assert_same
from tests.roundtrip.reading import open_group

pytest.importorskip("pyarrow.parquet")
pytest.importorskip("fastparquet")
from tests.containers.parquet.opening import lazy_group, lazy_mapper, lenient, same_values

_MOST_CHUNKS = 500  # which take zarr a second
_MOST_ARRAYS = 30  # of a file, which take fastparquet a tenth of one


def check_round_trips(
    path: Path, out: Path, *, versions: tuple[int, ...] = (3,), values: bool = False, most_arrays: int = _MOST_ARRAYS
) -> None:
    for version in versions:
        done = translate(path, out / "refs.parquet", zarr_format=version)
        if version == 3:
            check_hierarchy(done, out / "refs.parquet")
        check_references(done, out / "refs.parquet", most_arrays)
        if values:
            check_values(done, out / "refs.parquet")


def check_hierarchy(done: Translation, directory: Path) -> None:
    opened = open_hierarchy(directory)
    assert_same(done.hierarchy, opened.hierarchy)
    assert opened.hierarchy.problems == done.problems


def check_references(done: Translation, directory: Path, most_arrays: int) -> None:
    """Check that fsspec's reader finds the rows of each manifest, and nothing else; if there are many, of some."""
    mapper = lazy_mapper(directory)
    arrays = list(done.arrays().items())
    for path, node in arrays[:: -(-len(arrays) // most_arrays) or 1]:
        manifest = done.fitted.nodes[path].manifest
        assert manifest is not None
        grid = mapper._get_chunk_sizes(path[1:])
        size = choose_record_size(manifest.count)
        assert math.prod(grid) <= size or manifest.count < size
        if manifest.count + len(manifest.inline) == 0 or math.prod(grid) > size:
            continue
        with lenient():
            columns = mapper.open_refs(path[1:], 0)
        places = np.ravel_multi_index(tuple(manifest.index.T), grid) if node.shape else np.zeros(manifest.count, int)
        urls = [done.hierarchy.urls[number] for number in np.broadcast_to(manifest.source, manifest.count).tolist()]
        assert [columns["path"][place] for place in places.tolist()] == urls
        assert sum(one is not None for one in columns["path"].tolist()) == manifest.count
        assert np.array_equal(columns["offset"][places], manifest.address)
        assert np.array_equal(columns["size"][places], manifest.nbytes)
        raw = {place: content for place, content in enumerate(columns["raw"].tolist()) if content is not None}
        where = {int(np.ravel_multi_index(index, grid)) if index else 0: one for index, one in manifest.inline.items()}
        assert raw == where


def check_values(done: Translation, directory: Path) -> None:
    with lenient():
        expected, found = open_group(done), lazy_group(directory)
        for path in done.arrays():
            one, other = expected[path[1:]], found[path[1:]]
            assert json.dumps(dict(one.attrs)) == json.dumps(dict(other.attrs)), path
            values = [read(array) for array in (one, other)]
            assert same_values(*values), path


def read(array: Any) -> Any:
    """Return the values of an array, only the last ones if it has many chunks; or a mark for the error it raises."""
    key: Any = ...
    if array.nchunks > _MOST_CHUNKS:
        key = tuple(
            slice(max(0, length - 2 * chunk), None) for length, chunk in zip(array.shape, array.chunks, strict=True)
        )
    try:
        return np.asarray(array[key])
    except Exception as error:
        return np.array(f"{type(error).__name__}")


@pytest.mark.parametrize("path", any_samples())
def test_samples_have_the_same_values_through_parquet(path: Path, tmp_path: Path) -> None:
    check_round_trips(path, tmp_path, values=True)


@pytest.mark.parametrize("path", any_samples())
def test_samples_have_the_same_references_with_version_2(path: Path, tmp_path: Path) -> None:
    check_round_trips(path, tmp_path, versions=(2,))


@pytest.mark.parametrize("path", translatable_shared("corpus"))
def test_the_corpus_has_the_same_references_in_parquet(path: Path, tmp_path: Path) -> None:
    check_round_trips(path, tmp_path)


@pytest.mark.parametrize("path", translatable_shared("traps"))
def test_traps_have_the_same_references_in_parquet(path: Path, tmp_path: Path) -> None:
    check_round_trips(path, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("path", [*any_samples(), *translatable_shared("corpus"), *translatable_shared("traps")])
def test_every_file_has_the_same_values_through_parquet(path: Path, tmp_path: Path) -> None:
    check_round_trips(path, tmp_path, versions=(3, 2), values=True, most_arrays=10**9)
