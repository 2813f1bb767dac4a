"""Translates files, or damaged copies of them, and reports anything but a translation or an H5ZarrError.

It must be possible to write the translation, and its references must lie inside the file. Runs in its own process, with
a memory limit. Reads a task as JSON from standard input, like the worker of the scanner's tests.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import h5zarr.hdf5.checksum
from h5zarr.commands.translate.translate import translate
from h5zarr.commands.translate.translation import Translation
from tests.attempts import attempt
from tests.hdf5.hostile_worker import damaged


class Sink:
    """Accepts bytes, and discards them."""

    def write(self, data: bytes, /) -> None:
        pass


def translate_fully(path: str, number: int) -> str | None:
    """Return what is wrong with the translation of a file."""
    from h5zarr.containers.json.json_writing import write_json

    done = translate(path, zarr_format=2 if number % 4 == 0 else 3)
    write_json(done.fitted, done.provenance, Sink())
    return find_outside(done)


def find_outside(done: Translation) -> str | None:
    """Return the first array that refers to bytes outside the files."""
    sizes = np.array([os.path.getsize(url) for url in done.hierarchy.urls], np.int64)
    for path, array in done.arrays().items():
        manifest = array.manifest
        end = sizes[manifest.source]
        if not ((manifest.address >= 0) & (manifest.nbytes >= 0) & (manifest.address <= end - manifest.nbytes)).all():
            return f"{path} refers to bytes outside the file"
        grid = [-(-extent // chunk) for extent, chunk in zip(array.shape, array.chunk_shape, strict=True)]
        if not ((manifest.index >= 0) & (manifest.index < grid)).all():
            return f"{path} refers to chunks outside the array"
    return None


def limit_memory(files: list[str], megabytes: int) -> None:
    """Limit further allocations. Memory that the packages of filters map once does not count."""
    for number, name in enumerate(files):
        translate_fully(name, number)
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    bound = mapped + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))


def main() -> None:
    task: dict[str, Any] = json.load(sys.stdin)
    warnings.simplefilter("error")
    if not task["checksums"]:  # a hostile writer corrects checksums, so test the code behind them, too
        h5zarr.hdf5.checksum.check_checksum.__code__ = (lambda block, what, at: None).__code__
        h5zarr.hdf5.checksum.check_checksums.__code__ = (lambda blocks, signature, what, addresses: None).__code__
    limit_memory(task["first"], task["megabytes"])
    chance = random.Random(task["seed"])
    done, wrong = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for name in task["files"]:
            path = os.path.join(folder, os.path.basename(name)) if task["copies"] else name
            copies = damaged(Path(name).read_bytes(), task["copies"], chance) if task["copies"] else [("as it is", b"")]
            for what, copy in copies:
                if task["copies"]:
                    Path(path).write_bytes(copy)
                done += 1
                if problem := attempt(partial(translate_fully, path, done), task["seconds"]):
                    wrong.append(f"{os.path.basename(name)}, {what}: {problem}")
    json.dump({"done": done, "wrong": wrong[:20]}, sys.stdout)


if __name__ == "__main__":
    main()
