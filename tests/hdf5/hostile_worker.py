"""Scans files, or damaged copies of them, and reports anything but a result or an H5ZarrError.

Runs in its own process with a memory limit, because it looks for crashes, hangs and huge allocations. Reads a task as
JSON from standard input: the files, a seed, how many damaged copies, and the limits.
"""

from __future__ import annotations

import json
import random
import resource
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import h5zarr.hdf5.checksum
from h5zarr.hdf5.file import read_file
from h5zarr.io.span import Span
from h5zarr.io.steps import run
from tests.attempts import attempt


def scan(content: bytes) -> None:
    view = memoryview(content)

    def read_many(spans: Sequence[Span]) -> list[memoryview]:
        assert all(0 <= address <= address + nbytes <= len(view) for address, nbytes in spans)
        return [view[address : address + nbytes] for address, nbytes in spans]

    run(read_file("damaged", len(content)), read_many)


def damaged(content: bytes, count: int, chance: random.Random) -> Iterator[tuple[str, bytes]]:
    """Yield damaged copies: cut off, bytes changed, and fields replaced by values that a hostile writer would use."""
    for _ in range(count):
        kind = chance.random()
        if kind < 0.2:
            nbytes = chance.randrange(len(content))
            yield f"cut at {nbytes}", content[:nbytes]
        elif kind < 0.7:
            changed = bytearray(content)
            places = [chance.randrange(len(content)) for _ in range(chance.choice((1, 1, 1, 2, 4, 8)))]
            for place in places:
                changed[place] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
            yield f"bytes {places} changed", bytes(changed)
        else:
            place, width = chance.randrange(len(content)), chance.choice((2, 4, 8))
            extremes = (b"\xff" * width, bytes(width), b"\xff" * (width - 1) + b"\x7f")
            field = chance.choice((*extremes, chance.randbytes(width)))
            yield f"{width} bytes at {place} are {field!r}", content[:place] + field + content[place + width :]


def main() -> None:
    task = json.load(sys.stdin)
    if not task["checksums"]:  # a hostile writer corrects checksums, so test the code behind them, too
        h5zarr.hdf5.checksum.check_checksum.__code__ = (lambda block, what, at: None).__code__
        h5zarr.hdf5.checksum.check_checksums.__code__ = (lambda rows, nbytes, what, addresses: None).__code__
    from numcodecs.jenkins import jenkins_lookup3  # noqa: F401  what it maps must not count

    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = mapped + task["megabytes"] * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    chance = random.Random(task["seed"])
    done, wrong = 0, []
    for name in task["files"]:
        content = Path(name).read_bytes()
        copies = damaged(content, task["copies"], chance) if task["copies"] else iter([("as it is", content)])
        for what, copy in copies:
            done += 1
            if problem := attempt(partial(scan, copy), task["seconds"]):
                wrong.append(f"{Path(name).name}, {what}: {problem}")
    json.dump({"done": done, "wrong": wrong[:20]}, sys.stdout)


if __name__ == "__main__":
    main()
