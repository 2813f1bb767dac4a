"""Chunks of cubes are joined and written without having them in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h5zarr.containers.container import Output
from h5zarr.containers.fitting import fit
from h5zarr.containers.late_manifest import LateManifest
from h5zarr.containers.parquet.parquet_output import open_directory
from h5zarr.containers.parquet.parquet_writing import write_parquet
from h5zarr.containers.parquet.part_files import decode_part
from h5zarr.containers.provenance import Provenance
from h5zarr.errors import MalformedFile
from h5zarr.io.location import Location
from h5zarr.opening import open_hierarchy
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, ChunkLocations, GroupNode, Hierarchy, Manifest
from h5zarr.zarr_model.joined_manifest import JoinedManifest, Window, is_late
from tests.containers.hierarchies import ONE_BYTE

URLS = tuple(f"/data/{number}.nc" for number in range(4))


def node_of(manifest: ChunkLocations, grid: tuple[int, ...]) -> ArrayNode:
    return ArrayNode(
        grid=RegularGrid(grid, (1,) * len(grid)),
        data_type="int8",
        codecs=(ONE_BYTE,),
        fill_value=0,
        dimension_names=("t", "x")[: len(grid)],
        attributes={},
        manifest=manifest,
    )


def stored(manifest: ChunkLocations, grid: tuple[int, ...], out: Path, size: int) -> ChunkLocations:
    """Write an array to Parquet, and return its chunks, which are read when they are needed."""
    nodes = {"/": GroupNode(attributes={}), "/v": node_of(manifest, grid)}
    with open_directory(Output(location=Location.parse(out))) as directory:
        write_parquet(fit(Hierarchy(nodes=nodes, urls=URLS)), Provenance("1"), directory, record_size=size)
    node = open_hierarchy(out).hierarchy.nodes["/v"]
    assert isinstance(node, ArrayNode)
    return node.manifest


def random_manifest(grid: tuple[int, ...], seed: int, share: float, inlined: float = 0.0) -> Manifest:
    """Return chunks of a share of the grid, at random addresses of random files; some of them inlined."""
    random = np.random.default_rng(seed)
    places = np.argwhere(random.random(grid) < share)
    held = random.random(len(places)) < inlined
    inline = {tuple(index): bytes([number]) for number, index in enumerate(places[held].tolist())}
    places = places[~held]
    count = len(places)
    return Manifest(
        inline=inline,
        index=places.astype(np.int64),
        address=random.integers(0, 10**6, count) + 1,
        nbytes=random.integers(1, 10**5, count),
        source=random.integers(0, len(URLS), count).astype(np.int32),
    )


def rows_of(manifest: ChunkLocations) -> list[tuple[object, ...]]:
    sources = np.broadcast_to(np.asarray(manifest.source), manifest.count).tolist()
    columns = manifest.address.tolist(), manifest.nbytes.tolist(), sources
    found = list(zip(map(tuple, manifest.index.tolist()), *columns, strict=True))
    return sorted([*found, *[(index, 0, 0, content) for index, content in manifest.inline.items()]], key=itemgetter(0))


def expected_rows(parts: Sequence[tuple[Manifest, int, int]]) -> list[tuple[object, ...]]:
    """Return the rows of parts that follow each other: `first` and `end` along the first axis of each."""
    found, position = [], 0
    for manifest, first, end in parts:
        found += [
            ((index[0] - first + position, *index[1:]), *rest)
            for index, *rest in rows_of(manifest)
            if first <= index[0] < end
        ]
        position += end - first
    return found


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 9), st.integers(0, 8), st.integers(1, 9), st.sampled_from([0.0, 0.3, 1.0]), st.booleans()
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([(), (1,), (3,)]),
    st.integers(1, 7),
    st.sampled_from([0, 2]),
    st.sampled_from([0.0, 0.2]),
)
def test_parts_of_stored_arrays_are_joined_as_in_memory(
    tmp_path_factory: pytest.TempPathFactory,
    shares: list[tuple[int, int, int, float, bool]],
    others: tuple[int, ...],
    size: int,
    more: int,
    inlined: float,
) -> None:
    folder = tmp_path_factory.mktemp("streamed")
    parts, windows, position = [], [], 0
    for number, (length, first, count, share, is_stored) in enumerate(shares):
        grid = (length, *others)
        first = min(first, length - 1)
        end = min(length, first + count)
        manifest = random_manifest(grid, number, share, inlined)
        chunks = stored(manifest, grid, folder / f"{number}.parquet", size) if is_stored else manifest
        parts.append((manifest, first, end))
        windows.append(Window(chunks=chunks, grid=grid, first=first, end=end, position=position))
        position += end - first
    joined, expected = JoinedManifest(windows), expected_rows(parts)
    assert joined.count + joined.inline_count == len(expected)
    assert joined.referenced_nbytes == sum(int(row[2]) for row in expected)  # type: ignore[call-overload]
    assert rows_of(joined) == expected
    written = stored(joined, (position, *others), folder / "joined.parquet", size + more)
    assert (written.count, written.inline_count) == (joined.count, joined.inline_count)
    assert rows_of(written) == expected


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_a_part_of_a_joined_array_is_cut_out(first: int, end: int, edge: int) -> None:
    one, other = random_manifest((edge, 2), 1, 0.7), random_manifest((10 - edge, 2), 2, 0.7)
    joined = JoinedManifest(
        [
            Window(chunks=one, grid=(edge, 2), first=0, end=edge),
            Window(chunks=other, grid=(10 - edge, 2), first=0, end=10 - edge, position=edge),
        ]
    )
    whole = expected_rows([(one, 0, edge), (other, 0, 10 - edge)])
    kept = [((index[0] - first, index[1]), *rest) for index, *rest in whole if first <= index[0] < end]  # type: ignore[index]
    assert rows_of(joined.window(first, end)) == kept


def test_files_get_other_numbers() -> None:
    manifest = random_manifest((4, 2), 3, 1.0)
    window = Window(chunks=manifest, grid=(4, 2), first=0, end=4)
    moved = JoinedManifest(JoinedManifest([window]).placed(0, 3))
    assert (np.asarray(moved.source) == np.asarray(manifest.source) + 3).all()
    table = np.array([-1, -1, -1, 3, 2, 1, 0], np.int32)
    assert (np.asarray(moved.renumbered(table).source) == 3 - np.asarray(manifest.source)).all()
    with pytest.raises(MalformedFile, match="a chunk is in a file that is not among the sources"):
        list(moved.renumbered(np.full(7, -1, np.int32)).slabs())


def test_records_that_do_not_change_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An update of a large cube writes most records as they are. Only the name of their container changes."""
    chunks = stored(random_manifest((40, 3), 1, 0.9), (40, 3), tmp_path / "old.parquet", 6)
    assert isinstance(chunks, LateManifest)
    assert is_late(chunks)
    read: list[int] = []
    original = LateManifest.read_records

    def read_records(self: LateManifest, numbers: Sequence[int]) -> Sequence[Manifest]:
        read.extend(numbers)
        return original(self, numbers)

    monkeypatch.setattr(LateManifest, "read_records", read_records)
    new = random_manifest((2, 3), 2, 1.0)
    windows = [
        Window(chunks=chunks, grid=(40, 3), first=0, end=11),
        Window(chunks=new, grid=(2, 3), first=0, end=2, position=11),
        Window(chunks=chunks, grid=(40, 3), first=13, end=40, position=13),
    ]
    written = stored(JoinedManifest(windows), (40, 3), tmp_path / "new.parquet", 6)
    assert sorted(read) == [5, 6]
    monkeypatch.undo()
    assert written.count == JoinedManifest(windows).count
    assert rows_of(written) == rows_of(JoinedManifest(windows))
    old, copied = ((tmp_path / name / "v/refs.2.parq").read_bytes() for name in ("old.parquet", "new.parquet"))
    assert old != copied
    assert decode_part(copied, 6, "v").token != decode_part(old, 6, "v").token


def test_totals_that_are_not_true_are_noticed(tmp_path: Path) -> None:
    chunks = stored(random_manifest((6, 2), 1, 1.0), (6, 2), tmp_path / "v.parquet", 4)
    assert isinstance(chunks, LateManifest)
    assert chunks.known is not None
    few = {number: replace(one, count=one.count - 1) for number, one in chunks.known.totals.items()}
    chunks.known = replace(chunks.known, totals=few)
    with pytest.raises(MalformedFile, match="a record has more chunks, or fewer, than recorded"):
        chunks.read_records([0])
    with pytest.raises(MalformedFile, match="there are more chunks, or fewer, than recorded"):
        _ = chunks.address


def test_chunks_of_a_cube_that_are_not_in_order_are_refused(tmp_path: Path) -> None:
    manifest = random_manifest((6, 1), 1, 1.0)
    window = Window(chunks=manifest, grid=(6, 1), first=0, end=6)
    twice = JoinedManifest([window, replace(window, position=3)])
    with pytest.raises(MalformedFile, match="the chunks of a cube are not in order"):
        stored(twice, (9, 1), tmp_path / "v.parquet", 4)
