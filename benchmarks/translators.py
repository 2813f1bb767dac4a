"""One translation of one file by one tool, measured in a process of its own.

    python benchmarks/translators.py TOOL FILE OUT

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
    from h5zarr.translating import translate

    for name in ("h5zarr.io.local", "numcodecs.checksum32"):  # which it imports when it needs them
        importlib.import_module(name)

    def work() -> Keep:
        translate(source, out)
        return _nothing

    return work


def prepare_kerchunk(source: str, out: str) -> Callable[[], Keep]:
    """In its fastest way: libhdf5 opens the file itself, ujson writes, and no chunk is inlined.

    By default it inlines every chunk of less than 500 bytes, and reads each by itself: that takes longer.
    """
    import h5py
    import ujson
    from kerchunk.hdf import SingleHdf5ToZarr

    def work() -> Keep:
        with h5py.File(source, "r") as opened:
            references = SingleHdf5ToZarr(opened, url=source, inline_threshold=0).translate()
        with open(out, "w") as file:
            ujson.dump(references, file)
        return _nothing

    return work


def prepare_virtualizarr(source: str, out: str) -> Callable[[], Keep]:
    """Its parser only, without writing anything."""
    import numpy as np
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr.parsers import HDFParser

    def work() -> Keep:
        store = HDFParser()(f"file://{source}", ObjectStoreRegistry({"file://": LocalStore()}))

        def keep() -> None:
            columns: dict[str, Any] = {}
            waiting = [("", store._group)]
            while waiting:
                path, group = waiting.pop()
                waiting += [(f"{path}{name}/", child) for name, child in group.groups.items()]
                for name, array in group.arrays.items():
                    manifest = array.manifest
                    stored = manifest._paths != ""
                    columns[f"{path}{name}"] = np.stack(
                        [np.where(stored, manifest._offsets, 0), np.where(stored, manifest._lengths, 0)]
                    )
            with open(out, "wb") as file:
                np.savez(file, **columns)

        return keep

    return work


TOOLS: dict[str, Callable[[str, str], Callable[[], Keep]]] = {
    "h5zarr": prepare_h5zarr,
    "kerchunk": prepare_kerchunk,
    "VirtualiZarr": prepare_virtualizarr,
}
PACKAGES = {"kerchunk": ("kerchunk", "ujson"), "VirtualiZarr": ("virtualizarr", "obstore", "obspec_utils")}


def is_installed(tool: str) -> bool:
    """Whether all packages that a tool needs are there."""
    return all(importlib.util.find_spec(package) for package in PACKAGES.get(tool, ()))


def translate_with(tool: str, source: Path, out: Path) -> Cost:
    """What one translation took in a fresh process. Raises CalledProcessError if it failed."""
    command = [sys.executable, __file__, tool, str(source.resolve()), str(out)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
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
