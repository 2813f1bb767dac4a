"""Run many fuzz cases: python -m tests.fuzz --count 100000 --seed 7"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile

from tests.fuzz.running import DIFFERENTIAL, Summary, run_cases
from tests.fuzz.worker import SHARES, Cases


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="how many damaged copies (default 100,000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first case")
    parser.add_argument("--only", choices=SHARES, help="one target only")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after this time (default 60)")
    parser.add_argument("--differential", action="store_true", help="compare with h5py what can be read")
    parser.add_argument("--one", type=int, metavar="N", help="do one case here, and let what it raises be seen")
    parser.add_argument("--keep", metavar="FILE", help="with --one: where to put the damaged file")
    chosen = parser.parse_args()
    if chosen.one is not None:
        with tempfile.TemporaryDirectory() as folder:
            print(Cases(chosen.seed, folder).run(chosen.one, chosen.only, keep=chosen.keep))
        return 0
    module = DIFFERENTIAL if chosen.differential else "tests.fuzz.worker"
    choices = {"seed": chosen.seed, "first": chosen.first, "only": chosen.only, "budget": 60 * chosen.minutes}
    summary = run_cases(chosen.count, module=module, tell=_tell, **choices)
    for finding in summary.findings[:50]:
        print(json.dumps(finding))
    print(summary)
    return 1 if summary.findings else 0


def _tell(summary: Summary) -> None:
    sys.stderr.write(f"{summary}\n")


if __name__ == "__main__":
    sys.exit(main())
