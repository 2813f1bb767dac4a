"""One translation of one file by one tool, measured in a process of its own.

    python benchmarks/translators.py TOOL FILE_OR_URL OUT

prints what it took, as JSON. The clock runs from the open packages to the finished output: imports do not count. What
the output says about chunks is then put into OUT, where the output itself is no file.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

Keep: TypeAlias = Callable[[], None]
"""Puts what was found into the output, after the clock has stopped."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds by the clock and of the processor; bytes of the largest resident set, of the whole process."""

    seconds: float
    processor: float
    peak_nbytes: int


def prepare_h5zarr(source: str, out: str) -> Callable[[], Keep]:
    from h5zarr.commands.translate.translate import translate

    # Which it imports when it needs them.
    for name in ("h5zarr.io.remote" if _is_url(source) else "h5zarr.io.local", "numcodecs.checksum32"):
        importlib.import_module(name)
    if _is_url(source):
        import fsspec

        fsspec.get_filesystem_class("http")

    def work() -> Keep:
        translate(source, out)
        return _nothing

    return work


def prepare_kerchunk(source: str, out: str, **opening: Any) -> Callable[[], Keep]:
    """In its fastest way: libhdf5 opens a local file itself, ujson writes, and no chunk is inlined.

    By default it inlines every chunk of less than 500 bytes, and reads each by itself: that takes longer.
    """
    import fsspec
    import h5py
    import ujson
    from kerchunk.hdf import SingleHdf5ToZarr

    filesystem = fsspec.filesystem("http") if _is_url(source) else None

    def work() -> Keep:
        with filesystem.open(source, **opening) if filesystem else h5py.File(source, "r") as opened:
            references = SingleHdf5ToZarr(opened, url=source, inline_threshold=0).translate()
        with open(out, "w") as file:
            ujson.dump(references, file)
        return _nothing

    return work


def prepare_kerchunk_blocks(source: str, out: str) -> Callable[[], Keep]:
    """With a cache of 8 MB blocks, instead of reading ahead 5 MB from wherever libhdf5 asks."""
    return prepare_kerchunk(source, out, block_size=8 * 1024 * 1024, cache_type="blockcache")


def prepare_virtualizarr(source: str, out: str) -> Callable[[], Keep]:
    """Its parser only, without writing anything."""
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import HTTPStore, LocalStore
    from virtualizarr.parsers import HDFParser

    def work() -> Keep:
        if _is_url(source):
            base = source.rpartition("/")[0]
            store: Any = HTTPStore.from_url(base, client_options={"allow_http": True})
            manifests = HDFParser()(source, ObjectStoreRegistry({base: store}))
        else:
            manifests = HDFParser()(f"file://{source}", ObjectStoreRegistry({"file://": LocalStore()}))
        return lambda: _keep_manifests(manifests, out)

    return work


def prepare_async_hdf5(source: str, out: str) -> Callable[[], Keep]:
    """As the store of manifests that it makes for VirtualiZarr, which has no attributes of variables."""
    import asyncio

    from async_hdf5.virtualizarr import open_virtual_hdf5
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import HTTPStore

    def work() -> Keep:
        base, _, name = source.rpartition("/")
        store: Any = HTTPStore.from_url(base, client_options={"allow_http": True})
        registry = ObjectStoreRegistry({base: store})
        manifests = asyncio.run(open_virtual_hdf5(name, store=store, url=source, registry=registry))
        return lambda: _keep_manifests(manifests, out)

    return work


def _is_url(source: str) -> bool:
    return "://" in source


def _keep_manifests(store: Any, out: str) -> None:
    """Save where the chunks are by a store of VirtualiZarr's manifests."""
    import numpy as np

    columns: dict[str, Any] = {}
    waiting = [("", store._group)]
    while waiting:
        path, group = waiting.pop()
        waiting += [(f"{path}{name}/", child) for name, child in group.groups.items()]
        for name, array in group.arrays.items():
            manifest = array.manifest
            stored = manifest._paths != ""
            places = np.where(stored, manifest._offsets, 0), np.where(stored, manifest._lengths, 0)
            columns[f"{path}{name}"] = np.stack(places)
    with open(out, "wb") as file:
        np.savez(file, **columns)


TOOLS: dict[str, Callable[[str, str], Callable[[], Keep]]] = {
    "h5zarr": prepare_h5zarr,
    "kerchunk": prepare_kerchunk,
    "kerchunk, 8 MB blocks": prepare_kerchunk_blocks,
    "VirtualiZarr": prepare_virtualizarr,
    "async-hdf5": prepare_async_hdf5,
}
_MANIFESTS = ("virtualizarr", "obstore", "obspec_utils")
PACKAGES = {
    "kerchunk": ("kerchunk", "ujson"),
    "kerchunk, 8 MB blocks": ("kerchunk", "ujson"),
    "VirtualiZarr": _MANIFESTS,
    "async-hdf5": ("async_hdf5", *_MANIFESTS),
}


def is_installed(tool: str) -> bool:
    """Whether all packages that a tool needs are there."""
    return all(importlib.util.find_spec(package) for package in PACKAGES.get(tool, ()))


def translate_with(tool: str, source: str, out: Path, timeout: float | None = None) -> Cost:
    """What one translation took in a fresh process. Raises CalledProcessError if it failed, or TimeoutExpired."""
    command = [sys.executable, __file__, tool, source, str(out)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=timeout)
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


def _nothing() -> None:
    pass


def _peak_nbytes() -> int:
    """The largest resident set of this process so far.

    Not by `getrusage` where the system tells: its peak outlives `exec`, and is then that of the process before.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    tool, source, out = sys.argv[1:]
    work = TOOLS[tool](source, out)
    start, processor = time.perf_counter(), time.process_time()
    keep = work()
    cost = Cost(time.perf_counter() - start, time.process_time() - processor, _peak_nbytes())
    keep()
    print(json.dumps(asdict(cost)))


if __name__ == "__main__":
    main()
