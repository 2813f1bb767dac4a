"""Run a harness with atheris, guided by coverage: python -m tests.fuzz.guided hdf5 CORPUS -max_total_time=60

An empty directory CORPUS is filled with seeds. Other options are those of libFuzzer.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    import atheris

    with atheris.instrument_imports(include=["h5zarr"]):
        from tests.fuzz.harness import TARGETS
    target, corpus, *options = sys.argv[1:]
    fuzz, seeds_of = TARGETS[target]
    Path(corpus).mkdir(exist_ok=True, parents=True)
    if not any(Path(corpus).iterdir()):
        for number, content in enumerate(seeds_of()):
            Path(corpus, f"seed-{number}").write_bytes(content)
    atheris.Setup([sys.argv[0], *options, corpus], fuzz)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
