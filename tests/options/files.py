"""Small files for the tests of options, and a server that has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

import h5zarr
from tests.options.bench import Bench
from tests.servers import Counts, Faults, RangeServer

READ_FILES = ("translate", "combine", "inspect", "index", "check", "translate_many", "scan")
DROP_INS = ("SingleHdf5ToZarr", "NetCDF3ToZarr", "Parser")
READ_REFERENCES = ("convert", "verify", "validate", "open_store", "open_dataset", "open_datatree", "open_groups")


def make_file(path: Path) -> Path:
    """Write a file with a long array, a short one, and another in a nested group."""
    with h5py.File(path, "w") as file:
        file["long"] = np.arange(4000, dtype="<i4")
        file["short"] = np.arange(10, dtype="<i4")
        file["g/h/deep"] = np.arange(10, dtype="<i4")
    return path


def make_linked(folder: Path) -> Path:
    """Write a file that links to one in another directory."""
    for name in ("here", "there"):
        (folder / name).mkdir()
    with h5py.File(folder / "there" / "other.h5", "w") as file:
        file["values"] = np.arange(10)
    with h5py.File(folder / "here" / "file.h5", "w") as file:
        file["own"] = np.arange(10)
        file["far"] = h5py.ExternalLink(str(folder / "there" / "other.h5"), "values")
    return folder / "here" / "file.h5"


def make_ragged(path: Path) -> Path:
    """Write a file with an array that references cannot hold."""
    with h5py.File(path, "w") as file:
        file["plain"] = np.arange(10)
        file["ragged"] = np.array([np.arange(2), np.arange(3)], h5py.vlen_dtype(np.dtype("i4")))
    return path


@dataclass(frozen=True)
class Served:
    """A server with a file, references to it, and an index of it."""

    server: RangeServer
    base: str

    def place(self, command: str) -> str:
        """Return the URL of what a command reads."""
        name = (
            "file.h5" if command in (*READ_FILES, *DROP_INS) else "refs.json" if command in READ_REFERENCES else "index"
        )
        return f"{self.base}/{name}"


@contextmanager
def serve(bench: Bench, base: str = "", faults: Faults | None = None) -> Iterator[Served]:
    """Serve the files over HTTP. `base` is the URL of their directory, if they have others than those of the server."""
    path = make_file(bench.folder / "file.h5")
    with RangeServer({"/bucket/file.h5": path.read_bytes()}) as server:
        served = Served(server, base or server.url("/bucket"))
        refs = bench.folder / "refs.json"
        h5zarr.translate(path, refs, inline_bytes=0, target_url=served.place("translate"))
        server.files["/bucket/refs.json"] = refs.read_bytes()
        server.counts = Counts()
        server.faults = faults or Faults()
        yield served
