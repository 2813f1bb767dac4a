"""Translates classic files, or damaged copies of them, and reports anything but a sound result or an H5ZarrError.

The references of a sound result lie inside the file. Runs in its own process, with a memory limit. Reads a
task as JSON from standard input: the files, a seed, how many damaged copies (-1 for every truncation), and the limits.
"""

from __future__ import annotations

import json
import random
import resource
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from h5zarr.encode.encode import Encoding
from h5zarr.encode.inlining import Inlining
from h5zarr.formats import read_any
from h5zarr.io.span import Span
from h5zarr.io.steps import run
from h5zarr.netcdf3.classic_file import ClassicFile
from h5zarr.netcdf3.interpret import interpret_classic
from h5zarr.zarr_model.hierarchy import ArrayNode
from tests.attempts import attempt
from tests.hdf5.hostile_worker import damaged


def translate(content: bytes) -> None:
    view = memoryview(content)

    def read_many(spans: Sequence[Span]) -> list[memoryview]:
        assert all(0 <= address <= address + nbytes <= len(view) for address, nbytes in spans), "read beyond the end"
        return [view[address : address + nbytes] for address, nbytes in spans]

    file = run(read_any("damaged", len(content)), read_many)
    if not isinstance(file, ClassicFile):
        return
    for inlining in (Inlining(), Inlining.up_to(0)):
        encoding = Encoding(interpret_classic(file, "damaged"), inlining, 64)
        hierarchy = encoding.finish({path: node for step in encoding.steps.values() for path, node in
                                     run(step, read_many).items()})  # fmt: skip
        for path, node in hierarchy.nodes.items():
            if isinstance(node, ArrayNode) and node.manifest.count:
                end = node.manifest.address + node.manifest.nbytes
                assert node.manifest.address.min() >= file.header.nbytes, f"{path} refers to the header"
                assert end.max() <= len(content), f"{path} refers to what is not there"


def copies_of(content: bytes, count: int, chance: random.Random) -> Iterator[tuple[str, bytes]]:
    if count < 0:
        return ((f"cut at {nbytes}", content[:nbytes]) for nbytes in range(len(content)))
    return damaged(content, count, chance) if count else iter([("as it is", content)])


def main() -> None:
    task = json.load(sys.stdin)
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = mapped + task["megabytes"] * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    chance = random.Random(task["seed"])
    done, wrong = 0, []
    for name in task["files"]:
        for what, copy in copies_of(Path(name).read_bytes(), task["copies"], chance):
            done += 1
            if problem := attempt(partial(translate, copy), task["seconds"]):
                wrong.append(f"{Path(name).name}, {what}: {problem}")
    json.dump({"done": done, "wrong": wrong[:20]}, sys.stdout)


if __name__ == "__main__":
    main()
