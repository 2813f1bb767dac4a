"""Draw the memory that making a cube takes, against the number of files.

    python benchmarks/memory_of_cubes.py docs/memory-of-cubes.svg [--below DIRECTORY]

Cubes in Parquet, of the shape of GPM IMERG (84 chunks in each file), from the shards of an index; see `living.py`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from files import default_directory
from large_archives import GRANULES
from living import Bench

COUNTS = (10_000, 50_000, 100_000, 473_328)
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 300, 70, 45


def measure(below: Path) -> list[tuple[int, float, float]]:
    """Return the number of files, the seconds, and the peak of the memory in megabytes."""
    found = []
    for count in COUNTS:
        bench = Bench(replace(GRANULES, count=count), below)
        bench.renew()
        cube = bench.place("parquet")
        taken, checked = bench.run("update", cube), bench.check(cube)
        if isinstance(taken, str) or checked["equal"] != checked["checked"]:
            raise SystemExit(f"{count} files: {taken}, {checked}")
        found.append((count, taken["seconds"], taken["peak_nbytes"] / 1e6))
        print(f"{count:,} files: {taken['seconds']:.1f} s, {taken['peak_nbytes'] / 1e6:.0f} MB", flush=True)
    return found


def draw(points: Sequence[tuple[int, float, float]]) -> str:
    """Return the figure as SVG, whose colours follow the page."""
    most_files, most_memory = 500_000, 1_200

    def place(files: float, memory: float) -> tuple[float, float]:
        x = _LEFT + files / most_files * (_WIDTH - _LEFT - 20)
        return round(x, 1), round(_HEIGHT - _BOTTOM - memory / most_memory * (_HEIGHT - _BOTTOM - 20), 1)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"',
        'font-family="sans-serif" font-size="13">',
        "<style>text{fill:#444}.g{stroke:#8884}.l{stroke:#1f77b4;fill:none;stroke-width:2}.p{fill:#1f77b4}"
        "@media(prefers-color-scheme:dark){text{fill:#ccc}}</style>",
    ]
    for memory in range(0, most_memory + 1, 300):
        (x, y), (end, _) = place(0, memory), place(most_files, memory)
        lines.append(f'<line class="g" x1="{x}" y1="{y}" x2="{end}" y2="{y}"/>')
        lines.append(f'<text x="{x - 8}" y="{y + 4}" text-anchor="end">{memory} MB</text>')
    for files in range(0, most_files + 1, 100_000):
        x, y = place(files, 0)
        lines.append(f'<text x="{x}" y="{y + 20}" text-anchor="middle">{files:,}</text>')
    x, y = place(most_files / 2, 0)
    lines.append(f'<text x="{x}" y="{y + 38}" text-anchor="middle">files of 84 chunks each</text>')
    places = [place(files, memory) for files, _, memory in points]
    lines.append('<polyline class="l" points="' + " ".join(f"{x},{y}" for x, y in places) + '"/>')
    for (x, y), (_, seconds, memory) in zip(places, points, strict=True):
        lines.append(f'<circle class="p" cx="{x}" cy="{y}" r="4"/>')
        lines.append(f'<text x="{x - 6}" y="{y - 10}" text-anchor="end">{memory:.0f} MB, {seconds:.0f} s</text>')
    return "\n".join([*lines, "</svg>\n"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--below", type=Path, default=default_directory())
    arguments = parser.parse_args()
    arguments.out.write_text(draw(measure(arguments.below)))


if __name__ == "__main__":
    main()
