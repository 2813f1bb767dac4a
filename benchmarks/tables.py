"""Tables in Markdown, and what machine they were measured on."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Iterable, Sequence

PACKAGES = (
    "h5zarr",
    "numpy",
    "h5py",
    "kerchunk",
    "virtualizarr",
    "icechunk",
    "pyarrow",
    "zarr",
    "xarray",
    "fsspec",
    "aiohttp",
)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a Markdown table: first column to the left, the others to the right."""
    lines = [tuple(row) for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(columns, *lines, strict=True)]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        return "| " + " | ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]) + " |"

    print(f"\n### {title}\n")
    print(line(columns))
    print("|" + "|".join([":" + "-" * (widths[0] + 1), *("-" * (width + 1) + ":" for width in widths[1:])]) + "|")
    for cells in lines:
        print(line(cells))
    print(flush=True)


def print_machine() -> None:
    """Print date, machine and versions, without which the figures mean nothing."""
    versions = ", ".join(f"{name} {version}" for name in PACKAGES if (version := _version(name)))
    today = datetime.date.today().isoformat()
    print(f"{today}; {platform.system()} {platform.machine()}, {os.cpu_count()} cores; ", end="")
    print(f"Python {platform.python_version()}, {versions}", flush=True)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
