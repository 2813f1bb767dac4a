"""Compare damaged files with h5py: h5zarr must return the same values, or refuse with a reason.

This is a worker like `tests.fuzz.worker`. libhdf5 may crash or hang on such files, which is not a finding here.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from h5zarr.commands.translate.translate import translate
from h5zarr.commands.verify.verify import Verification, verify
from h5zarr.errors import H5ZarrError
from tests.attempts import TooSlow, give_up
from tests.fuzz import seeds
from tests.fuzz.mutating import Seed, mutate
from tests.fuzz.worker import limit_memory

_MOST_ELEMENTS = 100_000
_SECONDS = 5.0
_MEGABYTES = 1000  # libhdf5 may take most of them
# Attributes that h5py cannot read, or not even list, have nothing to be compared with. Of names that are no UTF-8 it
# gives the bytes, and h5zarr the letters. A reference to an object that has no name is shown as one to nothing.
_UNREAD = re.compile(
    r"attribute .*(?:expected none$|is missing, expected <class .*NotCompared)|attribute b['\"]|reference is ''",
    re.DOTALL,
)
_BEGINNINGS = ("chunks", "fill", "filters", "numbers", "ocean", "strings", "types", "dimension", "layout", "attributes")


@cache
def all_seeds(folder: str) -> tuple[Seed, ...]:
    """Return files that h5py reads whole: some made for this, and samples with values."""
    made = []
    for libver in ("earliest", "v110", "latest"):
        path = Path(folder, f"small_{libver}.h5")
        seeds.write_small_hdf5(path, libver=libver)
        made.append(seeds.map_hdf5(path.name, path.read_bytes()))
    # The files made here contain a little of everything, so they get half of the cases.
    samples = [one for one in seeds.hdf5_seeds() if one.name.startswith(_BEGINNINGS) and len(one.content) < 30_000]
    return (*(made * (len(samples) // len(made) + 1)), *samples)


def compare(content: bytes, folder: str, counts: Counter[str]) -> str | None:
    """Return the first difference between references to a file and h5py."""
    path = os.path.join(folder, "damaged.h5")
    Path(path).write_bytes(content)
    try:
        done = translate(path, f"{path}.json")
        if any(_count(array.shape) > _MOST_ELEMENTS for array in done.arrays().values()):
            counts["too large"] += 1
            return None
        found = verify(f"{path}.json")
    except H5ZarrError:
        counts["refused"] += 1
        return None
    return _judge(found, [problem.path for problem in done.problems], counts)


def _judge(found: Verification, problems: list[str], counts: Counter[str]) -> str | None:
    """Return a difference for which no problem was reported."""
    for one in (*found.arrays, *found.groups):
        counts["compared"] += one.compared
        counts["not readable by h5py"] += bool(one.skipped)
        counts["not readable by references"] += bool(one.error)
        if any(path.partition("@")[0] == one.path for path in problems):
            counts["with problems"] += 1
            continue
        if differences := [text for text in one.differences if not _UNREAD.search(text)]:
            return f"{one.path}: {differences}"
    return None


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def attempt(content: bytes, folder: str, counts: Counter[str]) -> str | None:
    """Return a difference, or None. If h5py fails, there is nothing to compare."""
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    faulthandler.dump_traceback_later(3 * _SECONDS, exit=True)  # signals do not interrupt a loop in a library
    try:
        return compare(content, folder, counts)
    except TooSlow:
        counts["too slow"] += 1
    except Exception as error:  # of h5py or zarr, about a broken file
        counts[f"failed with {type(error).__name__}"] += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
    return None


def main() -> None:
    task: dict[str, Any] = json.load(sys.stdin)
    warnings.simplefilter("ignore")
    faulthandler.enable()
    signal.signal(signal.SIGALRM, give_up)
    folder = tempfile.mkdtemp(dir=task["folder"])
    counts: Counter[str] = Counter()
    done = 0
    slowest = 0.0
    try:
        known = all_seeds(folder)
        for seed in set(known):
            if wrong := attempt(seed.content, folder, Counter()):
                print(json.dumps({"number": -1, "what": f"{seed.name}, undamaged", "wrong": wrong}), flush=True)
        limit_memory(_MEGABYTES)
        progress = os.open(task["progress"], os.O_RDWR | os.O_CREAT)
        finish = time.monotonic() + task["budget"]
        for number in range(task["first"], task["last"]):
            if time.monotonic() > finish:
                break
            os.pwrite(progress, b"%020d" % number, 0)
            chance = random.Random(f"{task['seed']}/{number}")
            seed = chance.choice(known)
            began = time.process_time()
            if wrong := attempt(mutate(seed, chance), folder, counts):
                print(json.dumps({"number": number, "what": seed.name, "wrong": wrong}), flush=True)
            slowest = max(slowest, time.process_time() - began)
            done += 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps({"done": done, "counts": counts, "slowest": round(slowest, 2), "peak_megabytes": 0}))


if __name__ == "__main__":
    main()
