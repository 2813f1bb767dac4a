"""Trace the hops of a command: the calls from one room of the package into another."""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import CO_GENERATOR
from pathlib import Path
from types import FrameType
from typing import Any

import h5zarr
from tests.test_architecture import PACKAGE, room_of

# Value types that all rooms use. Calls of their methods are not hops.
VOCABULARY = {
    *("__init__", "errors", "limits", "display", "patterns", "tree", "netcdf_names"),
    "signatures",  # a table of facts about files
}
VALUES = {
    *("zarr_model/hierarchy.py", "zarr_model/grid.py", "containers/container.py"),
    *(
        "hdf5/scope.py",
        "io/access.py",
        "io/location.py",
        "io/network.py",
        "io/protocols.py",
        "io/span.py",
        "io/urls.py",
    ),
}


def hops(work: Callable[[], Any]) -> list[str]:
    """Return, in order, the first call of each room into each other room, as "caller -> module: function".

    Steps are generators, which `io` only resumes: that is not a hop.
    """
    found: dict[tuple[str, str], str] = {}
    rooms: list[str | None] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            path = Path(frame.f_code.co_filename)
            here = room_of(path) if path.is_relative_to(PACKAGE) else None
            if here is not None:
                place = str(path.relative_to(PACKAGE))
                caller = next((room for room in reversed(rooms) if room is not None), None)
                is_hop = caller is not None and caller != here and here not in VOCABULARY and place not in VALUES
                is_resumed = caller == "io" and bool(frame.f_code.co_flags & CO_GENERATOR)
                if is_hop and caller not in VOCABULARY and not is_resumed and frame.f_code.co_name != "__del__":
                    assert caller is not None
                    found.setdefault((caller, here), f"{caller} -> {place}: {frame.f_code.co_name}")
            rooms.append(here)
        elif event == "return" and rooms:
            rooms.pop()

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return list(found.values())


def hops_of_a_translation(source: Path, out: Path) -> list[str]:
    """Return the hops of a second translation to a new output: the first one imports what it needs."""
    from h5zarr.cli import main

    words = ["translate", str(source), str(out), "--quiet"]
    main(words)
    out.unlink()
    return hops(lambda: main(words))


def hops_of_a_read(source: Path) -> list[str]:
    """Return the hops from a Zarr store over references to the bytes of a chunk."""
    import xarray

    def read() -> None:
        with xarray.open_dataset(source, engine="h5zarr") as dataset:
            dataset["sst"][0].load()

    read()
    return hops(read)


if __name__ == "__main__":
    ocean, out = PACKAGE.parent / "sample_data" / "ocean.nc", Path(sys.argv[1])
    for title, lines in (("translation", hops_of_a_translation(ocean, out)), ("read", hops_of_a_read(out))):
        print(f"{title}: {len(lines)} hops, h5zarr {h5zarr.__version__}", *lines, sep="\n  ")
