"""The loop that users of kerchunk write: one file after the other, in one process or in several.

    python benchmarks/kerchunk_loop.py LIST PROCESSES OUT

LIST has a URL on each line. It prints the seconds to the last output. The first file is done once before the clock
starts, so that what is imported and looked up with it does not count.
"""

from __future__ import annotations

import sys
import time
from multiprocessing import get_context
from pathlib import Path

import fsspec
import ujson
from kerchunk.hdf import SingleHdf5ToZarr


def translate(url: str, out: str) -> None:
    """Write the references of one file, in kerchunk's fastest way: nothing is inlined, and the connection is kept."""
    with fsspec.filesystem("http").open(url) as opened:
        references = SingleHdf5ToZarr(opened, url=url, inline_threshold=0).translate()
    with open(out, "w") as file:
        ujson.dump(references, file)


def prepare(url: str, out: str) -> None:
    """Translate a file, and keep the process busy for a moment, so that each does it before the clock starts."""
    translate(url, out)
    time.sleep(3)


def main() -> None:
    names, out, count = Path(sys.argv[1]).read_text().split(), Path(sys.argv[3]), int(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    work = [(url, str(out / f"{url.rpartition('/')[2]}.json")) for url in names]
    if count == 1:
        translate(*work[0])
        started = time.perf_counter()
        for url, place in work:
            translate(url, place)
    else:
        with get_context("spawn").Pool(count) as pool:
            pool.starmap(prepare, [work[0]] * count, chunksize=1)
            started = time.perf_counter()
            pool.starmap(translate, work, chunksize=1)
    print(time.perf_counter() - started)


if __name__ == "__main__":
    main()
