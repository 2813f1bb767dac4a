"""One container of references, opened, or compared with what was written, in a process of its own.

    python benchmarks/container_readers.py open READER SMALL OUT PATIENCE
    python benchmarks/container_readers.py check COUNT OUT

prints, as JSON, what it took, or how many references were looked at and how many of them are right. All are looked at
where there are few, and else a sample that is the same for all tools. JSON and Parquet are looked at as fsspec would;
Icechunk shows no references: there the bytes of the chunks are compared, in a file that has marks at both ends of each.
"""

from __future__ import annotations

import json
import mmap
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from container_writers import SOURCE, URL, columns, measured

_ALL = 100_000
_SAMPLE = 50
_MARK_NBYTES = 8


def sample(count: int) -> list[int]:
    """The numbers of the chunks that are looked at, the first and the last among them."""
    picked = np.random.default_rng(2).integers(0, count, _SAMPLE).tolist()
    return sorted({0, count - 1, *picked})


def index_of(number: int) -> tuple[int, int, int]:
    return number // 100, number // 10 % 10, number % 10


def make_source(directory: Path, count: int) -> None:
    """Make the file that the references of an Icechunk repository lead to: holes, but for marks on the sample."""
    addresses, sizes = columns(count)
    with (directory / SOURCE).open("wb") as file:
        file.truncate(int(addresses[-1] + sizes[-1]))
        for number in sample(count):
            mark = number.to_bytes(_MARK_NBYTES, "big")
            for at in (addresses[number], addresses[number] + sizes[number] - _MARK_NBYTES):
                file.seek(int(at))
                file.write(mark)


def check(count: int, out: Path) -> dict[str, int]:
    """How many references were looked at, and how many are those that were given."""
    addresses, sizes = columns(count)
    numbers = sample(count) if count > _ALL or out.suffix == ".icechunk" else range(count)
    find = {".json": _find_json, ".parquet": _find_parquet, ".icechunk": _find_marks}[out.suffix]
    expected = [(int(addresses[number]), int(sizes[number])) for number in numbers]
    equal = sum(one == other for one, other in zip(find(out, numbers, expected), expected, strict=True))
    return {"checked": len(numbers), "equal": equal}


Place = tuple[int, int]


def _find_json(out: Path, numbers: Sequence[int], _: list[Place]) -> list[Place | None]:
    """Where the references are that stand in a text, which may be too large to be parsed."""
    if len(numbers) > _SAMPLE * 2:
        entries = json.loads(out.read_bytes())["refs"]
        found = [next((entries[key] for key in _keys(number) if key in entries), ["", 0, 0]) for number in numbers]
        return [(address, nbytes) if url == URL else None for url, address, nbytes in found]
    with out.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return [_find_text(content, number) for number in numbers]


def _keys(number: int) -> tuple[str, str]:
    one, two, three = index_of(number)
    return f"v/{one}.{two}.{three}", f"v/c/{one}/{two}/{three}"


def _find_text(content: mmap.mmap, number: int) -> Place | None:
    for key in _keys(number):
        for text in (key, key.replace("/", "\\/")):
            at = content.find(f'"{text}"'.encode())
            if at >= 0:
                entry = content[at : content.find(b"]", at) + 1].decode()
                url, address, nbytes = json.loads(re.sub(r"^[^:]*:", "", entry, count=1))
                return (address, nbytes) if url == URL else None
    return None


def _find_parquet(out: Path, numbers: Sequence[int], _: list[Place]) -> list[Place | None]:
    from fsspec.implementations.reference import LazyReferenceMapper

    mapper = LazyReferenceMapper(str(out))
    mapper.setup()
    places: list[Place | None] = []
    record, rows = -1, {}
    for number in numbers:
        if number // mapper.record_size != record:
            record = number // mapper.record_size
            rows = mapper.open_refs("v", record)
        row = number % mapper.record_size
        is_there = rows["path"][row] == URL
        places.append((int(rows["offset"][row]), int(rows["size"][row])) if is_there else None)
    return places


def _find_marks(out: Path, numbers: Sequence[int], expected: list[Place]) -> list[Place | None]:
    """The places that were given, where the chunk has its marks and its size; Icechunk does not tell more."""
    from zarr.core.buffer import default_buffer_prototype
    from zarr.core.sync import sync

    store = open_repository(str(out)).readonly_session("main").store

    async def get_all() -> list[Any]:
        keys = ["v/c/{}/{}/{}".format(*index_of(number)) for number in numbers]
        return [await store.get(key, default_buffer_prototype()) for key in keys]

    # Not `asyncio.run`: at the end of a process, it lets threads of Icechunk crash now and then (2.3, Python 3.13).
    found: list[Place | None] = []
    for number, place, chunk in zip(numbers, expected, sync(get_all()), strict=True):
        mark, content = number.to_bytes(_MARK_NBYTES, "big"), chunk.to_bytes() if chunk is not None else b""
        is_right = content.startswith(mark) and content.endswith(mark) and len(content) == place[1]
        found.append(place if is_right else None)
    return found


def open_repository(out: str) -> Any:
    """As documented: whoever opens a repository allows it to read the files."""
    import icechunk

    storage = icechunk.local_filesystem_storage(out)
    prefixes = icechunk.Repository.fetch_config(storage).virtual_chunk_containers
    access = getattr(icechunk.credentials, "LocalFileSystemAccess", None)
    allowed = icechunk.containers_credentials(dict.fromkeys(prefixes, access))
    return icechunk.Repository.open(storage, authorize_virtual_chunk_access=allowed)


def open_with_icechunk(out: str) -> Any:
    import xarray as xr

    store = open_repository(out).readonly_session("main").store
    return xr.open_dataset(store, engine="zarr", consolidated=False, decode_cf=False)


def open_with_fsspec(out: str) -> Any:
    """As anybody would without h5zarr: xarray, zarr and fsspec's reference file system."""
    import xarray as xr

    options = {"fo": out, "remote_protocol": "file"}
    return xr.open_dataset("reference://", engine="zarr", storage_options=options, decode_cf=False)


def open_with_engine(out: str) -> Any:
    import xarray as xr

    return xr.open_dataset(out, engine="h5zarr", decode_cf=False)


READERS: dict[str, Callable[[str], Any]] = {
    "fsspec": open_with_fsspec,
    "engine": open_with_engine,
    "icechunk": open_with_icechunk,
}


def open_one(reader: str, small: str, out: str, patience: float) -> dict[str, float]:
    """Open another container first, so that imports do not count."""
    READERS[reader](small).close()
    opened: list[Any] = []
    taken = measured(lambda: opened.append(READERS[reader](out)), patience)
    assert set(opened[0].variables) == {"v"}
    return taken


def main() -> None:
    warnings.simplefilter("ignore")
    what, *arguments = sys.argv[1:]
    if what == "check":
        print(json.dumps(check(int(arguments[0]), Path(arguments[1]))))
    else:
        reader, small, out, patience = arguments
        print(json.dumps(open_one(reader, small, out, float(patience))))


if __name__ == "__main__":
    main()
