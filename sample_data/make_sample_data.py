"""Write the sample files and the table of them in README.md.

    python sample_data/make_sample_data.py            # all files, beside this script
    python sample_data/make_sample_data.py links_*    # only these
    python sample_data/make_sample_data.py --list     # names and themes, nothing is written

Needs h5py (made with 3.16, libhdf5 2.0) and numpy. What needs hdf5plugin or netCDF4 is skipped, with a
message, where they are missing.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from pathlib import Path

from recipes import SAMPLES, SECTIONS, Unavailable

HERE = Path(__file__).parent

INTRODUCTION = """\
# Sample data

Small files, each with one theme, that together cover the HDF5 and the netCDF classic file formats. All are made by
`make_sample_data.py`; the recipes are in `recipes/`, one module per section below. With the same versions of the
libraries the bytes come out the same every time. Do not edit this page: the script writes it.
"""


def write_samples(folder: Path, patterns: list[str]) -> int:
    """Write the files whose names match any pattern (or all), and return how many had to be skipped."""
    skipped = 0
    for sample in SAMPLES.values():
        if patterns and not any(fnmatch.fnmatch(sample.name, pattern) for pattern in patterns):
            continue
        try:
            path = sample.write(folder)
        except Unavailable as reason:
            skipped += 1
            print(f"skipped {sample.name}: {reason}", file=sys.stderr)
        else:
            print(f"{path.stat().st_size:8,} {sample.name}")
    return skipped


def table(folder: Path) -> str:
    """Return README.md: for each section a table of its files, their sizes and themes."""
    parts = [INTRODUCTION]
    for module in SECTIONS:
        parts.append(f"\n## {module.__doc__}\n\n| file | bytes | what it exercises |\n|---|---:|---|\n")
        section = module.__name__.rpartition(".")[2]
        for sample in sorted(SAMPLES.values(), key=lambda sample: sample.name):
            if sample.section == section:
                parts.append(f"| `{sample.name}` | {size_of(folder / sample.name)} | {sample.theme} |\n")
                for companion in sample.companions:
                    parts.append(f"| `{companion}` | {size_of(folder / companion)} | belongs to `{sample.name}` |\n")
    return "".join(parts)


def size_of(path: Path) -> str:
    return f"{path.stat().st_size:,}" if path.exists() else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the sample files and the table of them in README.md.")
    parser.add_argument("patterns", nargs="*", metavar="pattern", help="names of files to write; all, if not given")
    parser.add_argument("--folder", type=Path, default=HERE, help="where to write (default: beside this script)")
    parser.add_argument("--list", action="store_true", help="print names and themes only")
    arguments = parser.parse_args()
    if arguments.list:
        for sample in SAMPLES.values():
            print(f"{sample.name}: {sample.theme}")
        return
    arguments.folder.mkdir(parents=True, exist_ok=True)
    write_samples(arguments.folder, arguments.patterns)
    (arguments.folder / "README.md").write_text(table(arguments.folder), encoding="utf-8")


if __name__ == "__main__":
    main()
