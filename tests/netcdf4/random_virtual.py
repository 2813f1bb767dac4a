"""Random virtual datasets: similar sources that are stacked, concatenated or partly selected; some are missing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

TYPES = ("<i4", ">i2", "<f8", "|u1", "<f4", "S3", "<i8")
VERSIONS = ("earliest", "latest", ("v110", "v110"))


@dataclass
class Draft:
    """How the sources of one virtual dataset are stored."""

    folder: Path
    random: np.random.Generator
    dtype: np.dtype[Any]
    chunk: tuple[int, ...]
    options: dict[str, Any]
    is_chunked: bool

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def number(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high))

    def source(self, name: str, shape: tuple[int, ...]) -> None:
        """Write a source completely, partly, without values, or not at all."""
        if self.chance(0.06):
            return
        options = dict(self.options)
        if self.is_chunked:
            options |= {"chunks": self.chunk, "maxshape": (None,) * len(shape)}
        values = self.random.integers(0, 200, shape)
        with h5py.File(self.folder / name, "w", libver=VERSIONS[self.number(0, 3)]) as file:
            dataset = file.create_dataset("a", shape, self.dtype, **options)
            first = 0 if self.chance(0.6) else self.number(0, shape[0] + 1)
            if first < shape[0]:
                dataset[first:] = values.astype("S3" if self.dtype.kind == "S" else self.dtype)[first:]


def write_random(folder: Path, seed: int) -> Path:
    """Return a file with a virtual dataset "x"; the same for the same seed."""
    for old in folder.iterdir():
        old.unlink()
    draft, fill = _draft(folder, np.random.default_rng(seed))
    make = (_joined, _stacked, _picked, _picked)[seed % 4]
    shape, mappings = make(draft, is_odd=seed % 4 == 3)
    layout = h5py.VirtualLayout(shape, draft.dtype)
    for number, source_shape, taken, shown in mappings:
        source = h5py.VirtualSource(f"s{number}.h5", "a", source_shape, dtype=draft.dtype)
        layout[shown] = source if taken is None else source[taken]
    path = folder / "virtual.h5"
    with h5py.File(path, "w", libver=VERSIONS[draft.number(0, 3)]) as file:
        file.create_virtual_dataset("x", layout, fillvalue=fill)
    return path


def _draft(folder: Path, random: np.random.Generator) -> tuple[Draft, int | None]:
    dtype = np.dtype(TYPES[random.integers(len(TYPES))])
    rank = int(random.integers(1, 4))
    chunk = tuple(random.integers(1, 4, rank).tolist())
    draft = Draft(folder, random, dtype, chunk, {}, bool(random.random() < 0.7))
    fill = None if dtype.kind == "S" or draft.chance(0.3) else draft.number(1, 3)
    if fill is not None:
        draft.options["fillvalue"] = 7 if draft.chance(0.2) else fill
    if draft.is_chunked:
        draft.options |= {"compression": "gzip"} if draft.chance(0.5) else {}
        draft.options |= {"shuffle": True} if draft.chance(0.3) else {}
        draft.options |= {"fletcher32": True} if draft.chance(0.2) else {}
    return draft, fill


def _joined(draft: Draft, *, is_odd: bool) -> tuple[tuple[int, ...], list[Any]]:
    """Concatenate sources along the first axis, with some gaps."""
    tail = tuple(draft.number(1, 4) * (n if draft.chance(0.7) else 1) for n in draft.chunk[1:])
    mappings, end = [], 0
    for number in range(draft.number(1, 5)):
        length = draft.chunk[0] * draft.number(1, 4) if draft.chance(0.7) else draft.number(1, 6)
        draft.source(f"s{number}.h5", (length, *tail))
        mappings.append((number, (length, *tail), None, (slice(end, end + length), *(slice(0, n) for n in tail))))
        end += length + (draft.chunk[0] if draft.chance(0.1) else 0)
    return (end + (draft.number(0, 3) if draft.chance(0.2) else 0), *tail), mappings


def _stacked(draft: Draft, *, is_odd: bool) -> tuple[tuple[int, ...], list[Any]]:
    """Stack sources of equal shape along a new axis at any position."""
    shape = tuple(n * draft.number(1, 4) + draft.number(0, 2) for n in draft.chunk)
    at, count = draft.number(0, len(shape) + 1), draft.number(1, 5)
    whole = [slice(0, n) for n in shape]
    for number in range(count):
        draft.source(f"s{number}.h5", shape)
    return (
        (*shape[:at], count, *shape[at:]),
        [(number, shape, None, (*whole[:at], number, *whole[at:])) for number in range(count)],
    )


def _picked(draft: Draft, *, is_odd: bool) -> tuple[tuple[int, ...], list[Any]]:
    """Place boxes of sources anywhere, possibly overlapping. Irregular ones take every second or third element."""
    shape = tuple(draft.number(2, 13) for _ in draft.chunk)
    mappings = []
    for number in range(draft.number(1, 5)):
        source_shape = tuple(draft.number(2, 13) for _ in draft.chunk)
        draft.source(f"s{number}.h5", source_shape)
        taken, shown = [], []
        for chunk, source_extent, extent in zip(draft.chunk, source_shape, shape, strict=True):
            step, stride = (draft.number(1, 4), draft.number(1, 3)) if is_odd else (1, 1)
            most = min((source_extent + step - 1) // step, (extent + stride - 1) // stride)
            length, whole = draft.number(1, most + 1), chunk if draft.chance(0.6) else 1
            length -= length % whole if length >= whole else 0
            first = draft.number(0, source_extent - (length - 1) * step)
            place = draft.number(0, extent - (length - 1) * stride)
            first, place = first - first % whole, place - place % whole
            taken.append(slice(first, first + (length - 1) * step + 1, step))
            shown.append(slice(place, place + (length - 1) * stride + 1, stride))
        mappings.append((number, source_shape, tuple(taken), tuple(shown)))
    return shape, mappings
