from __future__ import annotations

import asyncio
import pickle
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import default_buffer_prototype

import h5zarr
from h5zarr.commands.translate.translate import translate
from h5zarr.errors import ProblemWarning, SourceChanged, SourceError
from h5zarr.store import HierarchyStore, open_store
from tests.collections_of_files import SAMPLES
from tests.roundtrip.reading import open_group
from tests.servers import Faults, RangeServer

pytestmark = pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
VALUES = np.arange(64 * 4096, dtype="<i4").reshape(64, 4096)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "file.h5"
    with h5py.File(path, "w") as made:
        made.create_dataset("chunked", data=VALUES, chunks=(1, 4096))
        made.create_dataset("group/inner/zipped", data=VALUES, chunks=(8, 4096), compression="gzip", shuffle=True)
        made.create_dataset("group/scalar", data=5.5)
        made.create_dataset("group/sparse", shape=(10,), chunks=(2,), dtype="i2", fillvalue=-3)[4] = 1
        made.attrs["title"] = "test"
    return path


@pytest.fixture
def server(file: Path) -> Iterator[RangeServer]:
    with RangeServer({"/file.h5": file.read_bytes()}, latency=0.01) as started:
        yield started


@pytest.fixture
def far(server: RangeServer, file: Path, tmp_path: Path) -> HierarchyStore:
    """References on this machine to a file on the server."""
    translate(file, tmp_path / "refs.json", target_url=server.url("/file.h5"))
    return open_store(tmp_path / "refs.json")


def read_all(store: HierarchyStore) -> None:
    group = zarr.open_group(store, mode="r")
    assert group.attrs["title"] == "test"
    assert np.array_equal(group["chunked"][...], VALUES)
    assert np.array_equal(group["group/inner/zipped"][...], VALUES)
    assert group["group/scalar"][()] == 5.5
    assert group["group/sparse"][...].tolist() == [-3] * 4 + [1] + [-3] * 5


def test_zarr_reads_a_file_and_its_references_through_the_store(file: Path, far: HierarchyStore) -> None:
    read_all(h5zarr.open_store(file))
    read_all(far)


# A few that differ in how their values are kept: zarr takes its time, and `tests/read` reads all of them without it.
VARIED = (
    *("ocean.nc", "fill_types_latest.h5", "types_strings_vlen_latest.h5", "types_compound_latest.h5"),
    *("filters_standard_latest.h5", "filters_plugins.h5", "types_integers_odd_latest.h5", "filters_skipped_latest.h5"),
)


@pytest.mark.parametrize("name", VARIED)
def test_samples_are_read_as_through_references(name: str) -> None:
    path = SAMPLES / name
    translation = translate(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, their = zarr.open_group(open_store(path), mode="r"), open_group(translation)
        for name, node in translation.arrays().items():
            assert str(mine[name[1:]].metadata.to_dict()) == str(their[name[1:]].metadata.to_dict())
            try:
                expected = np.asarray(their[name[1:]][...])
            except Exception as error:
                with pytest.raises(type(error)):
                    mine[name[1:]][...]
                continue
            found = np.asarray(mine[name[1:]][...])
            assert found.dtype == expected.dtype
            assert found.tobytes() == expected.tobytes() or found.tolist() == expected.tolist(), node.data_type


def test_the_store_lists_what_it_holds(file: Path) -> None:
    store = open_store(file)

    async def collect(keys: Any) -> list[str]:
        return sorted([key async for key in keys])

    assert asyncio.run(collect(store.list_dir(""))) == ["chunked", "group", "zarr.json"]
    assert asyncio.run(collect(store.list_dir("group"))) == ["inner", "scalar", "sparse", "zarr.json"]
    assert asyncio.run(collect(store.list_dir("group/sparse/"))) == ["c", "zarr.json"]
    assert asyncio.run(collect(store.list_dir("group/sparse/c"))) == ["2"]
    assert asyncio.run(collect(store.list_prefix("group/s"))) == [
        *("group/scalar/c", "group/scalar/zarr.json", "group/sparse/c/2", "group/sparse/zarr.json")
    ]
    every = asyncio.run(collect(store.list()))
    assert len(every) == 64 + 8 + 1 + 1 + 7
    assert all(asyncio.run(store.exists(key)) for key in every)
    for key in (
        "group/sparse/c/0",
        "group/sparse/c/9",
        "group/c/0",
        "x",
        "x/zarr.json",
        "chunked/c/0",
        "chunked/c/a/0",
    ):
        assert not asyncio.run(store.exists(key))
        assert asyncio.run(store.get(key, default_buffer_prototype())) is None
    assert set(dict(zarr.open_group(store, mode="r").members(max_depth=None))) == {
        *("chunked", "group", "group/inner", "group/inner/zipped", "group/scalar", "group/sparse")
    }


def test_sizes_are_known_without_reading(far: HierarchyStore, server: RangeServer, file: Path, tmp_path: Path) -> None:
    h5zarr.combine([str(tmp_path / "refs.json")], tmp_path / "whole.parquet", merge=True)  # whose references come late
    for store in (far, open_store(tmp_path / "whole.parquet")):
        server.counts.gets.clear()
        sizes = asyncio.run(_sizes(store))
        assert server.counts.gets == []
        assert sizes["chunked/c/3/0"] == 4096 * 4
        for prefix in ("", "group", "group/inner/", "group/sparse", "chunked/c/3"):
            inside = f"{prefix.rstrip('/')}/" if prefix else ""
            expected = sum(size for key, size in sizes.items() if key.startswith(inside))
            assert asyncio.run(store.getsize_prefix(prefix)) == expected
        array = zarr.open_array(store, path="group/inner/zipped", mode="r")
        assert array.nbytes_stored() == asyncio.run(store.getsize_prefix("group/inner/zipped"))
        assert server.counts.gets == []
        assert sizes == asyncio.run(_lengths(store))
    for key in ("nothing", "group/sparse/c/0", "chunked/c/64/0"):
        with pytest.raises(FileNotFoundError, match=key):
            asyncio.run(far.getsize(key))


async def _sizes(store: HierarchyStore) -> dict[str, int]:
    return {key: await store.getsize(key) async for key in store.list()}


async def _lengths(store: HierarchyStore) -> dict[str, int]:
    return {key: len(await store.get(key) or b"") async for key in store.list()}


def test_parts_of_chunks_are_read_as_parts(far: HierarchyStore, server: RangeServer) -> None:
    chunk = VALUES[3].tobytes()
    requests = [RangeByteRequest(8, 16), OffsetByteRequest(16000), SuffixByteRequest(12), None]
    wanted = [("chunked/c/3/0", request) for request in requests]
    found = asyncio.run(far.get_partial_values(default_buffer_prototype(), wanted))
    assert [one.to_bytes() for one in found if one] == [chunk[8:16], chunk[16000:], chunk[-12:], chunk]


# --- requests


def test_chunks_that_are_asked_for_together_come_together(far: HierarchyStore, server: RangeServer) -> None:
    array = zarr.open_group(far, mode="r")["chunked"]
    with zarr.config.set({"async.concurrency": 64}):
        assert np.array_equal(array[...], VALUES)
    assert len(server.counts.gets) <= 3
    assert server.counts.heads == 0


def test_a_chunk_that_is_asked_for_by_many_at_once_is_fetched_once(far: HierarchyStore, server: RangeServer) -> None:
    async def ask() -> list[Any]:
        prototype = default_buffer_prototype()
        first = asyncio.gather(*(far.get("chunked/c/5/0", prototype) for _ in range(10)))
        await asyncio.sleep(0.005)
        return [*await first, *await asyncio.gather(*(far.get("chunked/c/5/0", prototype) for _ in range(3)))]

    assert {one.to_bytes() for one in asyncio.run(ask())} == {VALUES[5].tobytes()}
    assert len(server.counts.gets) <= 2


def test_a_reader_that_gives_up_leaves_the_others_alone(far: HierarchyStore) -> None:
    async def ask() -> Any:
        prototype = default_buffer_prototype()
        impatient = asyncio.create_task(far.get("chunked/c/5/0", prototype))
        patient = asyncio.create_task(far.get("chunked/c/5/0", prototype))
        await asyncio.sleep(0.002)
        impatient.cancel()
        return await patient

    assert asyncio.run(ask()).to_bytes() == VALUES[5].tobytes()


# --- threads, processes, faults


def test_the_loops_of_many_threads_share_a_store(far: HierarchyStore) -> None:
    async def ask() -> bool:
        prototype = default_buffer_prototype()
        found = await asyncio.gather(*(far.get(f"chunked/c/{n}/0", prototype) for n in range(64) for _ in range(10)))
        return all(one is not None and one.to_bytes() == VALUES[n // 10].tobytes() for n, one in enumerate(found))

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(lambda _: asyncio.run(ask()), range(12)))
    finally:
        sys.setswitchinterval(usual)


def test_the_store_can_be_sent_to_another_process(far: HierarchyStore) -> None:
    read_all(pickle.loads(pickle.dumps(far)))


def test_a_closed_store_opens_again_when_it_is_read(far: HierarchyStore) -> None:
    read_all(far)
    far.close()
    read_all(far)


def test_a_fault_in_the_middle_of_a_read_is_raised_with_url_and_range(
    server: RangeServer, file: Path, tmp_path: Path
) -> None:
    translate(file, tmp_path / "refs.json", target_url=server.url("/file.h5"))
    store = open_store(tmp_path / "refs.json", network={"timeout_seconds": 1, "attempts": 2})
    array = zarr.open_group(store, mode="r")["chunked"]
    server.faults = Faults(statuses=dict.fromkeys(range(1, 100), 500))
    with pytest.raises(SourceError, match=r"/file.h5: bytes \d+-\d+: the server answered HTTP 500"):
        array[...]
    server.faults = Faults()
    assert np.array_equal(array[...], VALUES)


def test_a_changed_source_is_an_error_and_not_a_value(far: HierarchyStore, server: RangeServer) -> None:
    server.files["/file.h5"] = bytes(len(server.files["/file.h5"]) + 1)
    with pytest.raises(SourceChanged, match="has changed"):
        zarr.open_group(far, mode="r")["chunked"][...]


def test_the_store_is_read_only(far: HierarchyStore) -> None:
    assert far.read_only
    assert not far.supports_writes
    told = "is read-only: it refers to files that it does not change"
    with pytest.raises(ValueError, match=f"<h5zarr.HierarchyStore of .*> {told}"):
        asyncio.run(far.set("a", default_buffer_prototype().buffer.from_bytes(b"")))
    with pytest.raises(ValueError, match=told):
        asyncio.run(far.delete("a"))
    with pytest.raises(ValueError, match=f"this store {told}"):
        far.with_read_only(False)
    assert far.with_read_only(True) == far
    assert far != 5
    assert "refs.json" in repr(far)


def test_what_the_store_leaves_out_is_named_in_a_warning() -> None:
    with pytest.warns(ProblemWarning, match=r"types_sequences_latest.h5:/.*") as caught:
        open_store(SAMPLES / "types_sequences_latest.h5")
    assert {one.filename for one in caught} == {__file__}
