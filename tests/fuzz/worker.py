"""Run cases in a process with limits on time and memory. The seed and its number determine a case.

Reads a task as JSON from standard input. A file has the number of the current case, in case this process dies. Writes a
line of JSON for each finding, and one at the end.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from h5zarr.errors import H5ZarrError
from tests.attempts import attempt
from tests.fuzz import seeds, targets
from tests.fuzz.mutating import mutate

# How many of a hundred cases each target gets.
SHARES = {"hdf5": 55, "classic": 10, "json": 17, "parquet": 5, "chunk": 13}


class Cases:
    """The cases of a seed. `folder` is for inputs that must be files."""

    def __init__(self, seed: int, folder: str) -> None:
        self._seed = seed
        self._folder = folder
        self._parquet = seeds.parquet_seeds(Path(folder, "made"))

    def run(self, number: int, only: str | None = None, *, keep: str | None = None) -> tuple[str, str, str | None]:
        """Run one case. Return its target, the name of the damaged input, and what is wrong. May raise anything."""
        chance = random.Random(f"{self._seed}/{number}")
        drawn = chance.choices(list(SHARES), list(SHARES.values()))[0]
        target = only or drawn
        self.under_way = target
        path = keep or os.path.join(self._folder, f"damaged.{target}")
        if target in ("hdf5", "classic"):
            seed = chance.choice(seeds.hdf5_seeds() if target == "hdf5" else seeds.classic_seeds())
            self.under_way = f"{target}, {seed.name}"
            return target, seed.name, targets.attack_file(mutate(seed, chance), path, number)
        if target == "json":
            return target, "", targets.attack_json(targets.damage_json(chance.choice(seeds.json_seeds()), chance), path)
        if target == "parquet":
            one = chance.choice(self._parquet)
            return target, one.name, targets.attack_parquet(targets.damage_parquet(one, chance), f"{path}.parquet")
        chunk = chance.choice(seeds.chunk_seeds())
        self.under_way = f"{target}, {chunk.name}"
        content, values = targets.damage_chunk(chunk, chance)
        if keep:
            Path(keep).write_bytes(content)
        return target, chunk.name, targets.attack_chunk(chunk, content, values)


def attempt_case(cases: Cases, number: int, only: str | None, seconds: float, counts: Counter[str]) -> str | None:
    """Return an unexpected failure, or None."""

    def run() -> str | None:
        try:
            target, _, wrong = cases.run(number, only)
        except H5ZarrError as error:
            counts[f"{cases.under_way.partition(',')[0]}: refused"] += 1
            return f"{error}" if targets.OUT_OF_MEMORY in str(error) else None
        counts[f"{target}: read"] += 1
        return wrong

    return attempt(run, seconds)


def warm_up(cases: Cases) -> None:
    """Create everything that is created once, so that it does not count towards the limits."""
    seeds.hdf5_seeds(), seeds.classic_seeds(), seeds.json_seeds(), seeds.chunk_seeds()
    counts: Counter[str] = Counter()
    for only in SHARES:
        for number in range(-25, 0):
            attempt_case(cases, number, only, 60, counts)


def limit_memory(megabytes: int) -> None:
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    bound = mapped + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))


def main() -> None:
    task: dict[str, Any] = json.load(sys.stdin)
    warnings.simplefilter("ignore")
    faulthandler.enable()
    folder = tempfile.mkdtemp(dir=task["folder"])
    counts: Counter[str] = Counter()
    done = slowest = 0
    try:
        cases = Cases(task["seed"], folder)
        warm_up(cases)
        limit_memory(task["megabytes"])
        progress = os.open(task["progress"], os.O_RDWR | os.O_CREAT)
        finish = time.monotonic() + task["budget"]
        for number in range(task["first"], task["last"]):
            if time.monotonic() > finish:
                break
            os.pwrite(progress, b"%020d" % number, 0)
            began = time.process_time()
            wrong = attempt_case(cases, number, task["only"], task["seconds"], counts)
            took = time.process_time() - began
            slowest = max(slowest, took)
            done += 1
            if wrong:
                print(json.dumps({"number": number, "what": cases.under_way, "wrong": wrong}), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"done": done, "counts": counts, "slowest": round(slowest, 2), "peak_megabytes": peak}))


if __name__ == "__main__":
    main()
