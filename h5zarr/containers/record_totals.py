"""What the records of an array have, in the metadata of a container: readers need not load them for that."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from h5zarr.containers.records import number_chunks, spans_of
from h5zarr.errors import MalformedFile
from h5zarr.zarr_model.hierarchy import ChunkLocations, Json, RecordTotals, sum_nbytes


def encode_totals(totals: Iterable[RecordTotals]) -> dict[str, Json]:
    """Return the totals of records as columns."""
    listed = list(totals)
    return {
        "counts": [one.count for one in listed],
        "nbytes": [one.nbytes for one in listed],
        "inlined": [one.inline_count for one in listed],
    }


def decode_totals(path: str, numbers: Sequence[int], described: Json) -> dict[int, RecordTotals]:
    """Return the totals of the records of an array, by number."""
    counts, nbytes, inlined = described["counts"], described["nbytes"], described["inlined"]
    if not all(type(one) is int and one >= 0 for one in (*counts, *nbytes, *inlined)):
        raise MalformedFile(f"{path}: the totals of its records are not numbers")
    rows = zip(numbers, counts, nbytes, inlined, strict=True)
    return {number: RecordTotals(*one) for number, *one in rows}


def encode_records(size: int, totals: Mapping[int, RecordTotals]) -> dict[str, Json]:
    """Return the size of records and their totals by number, ascending, as JSON."""
    return {"size": size, "records": spans_of(list(totals)), **encode_totals(totals.values())}


def decode_records(path: str, described: Json) -> tuple[int, dict[int, RecordTotals]]:
    """Return what `encode_records` encoded. Raises MalformedFile for anything else."""
    match described:
        case {"size": int(size), "records": [*spans], "counts": [*counts]} if size > 0:
            if sum(end - first for first, end in spans) == len(counts) and all(first >= 0 for first, _ in spans):
                numbers = [number for first, end in spans for number in range(first, end)]
                return size, decode_totals(path, numbers, described)
    raise MalformedFile(f"{path}: the totals of its records do not have h5zarr's form")


def count_records(chunks: ChunkLocations, grid: tuple[int, ...], size: int) -> dict[int, RecordTotals]:
    """Return what records of `size` chunks each have, given chunks in memory."""
    records = number_chunks(chunks.index, grid) // size
    order = np.argsort(records, kind="stable")
    numbers, begins = np.unique(records[order], return_index=True)
    parts = zip(numbers.tolist(), np.split(chunks.nbytes[order], begins)[1:], strict=True)
    found = {number: RecordTotals(len(part), sum_nbytes(part)) for number, part in parts}
    inlined = count_inline(chunks.inline, grid, size)
    return found | {number: found.get(number, RecordTotals()) + one for number, one in inlined.items()}


def count_inline(inline: Collection[tuple[int, ...]], grid: tuple[int, ...], size: int) -> dict[int, RecordTotals]:
    """Return the totals of the records of `size` chunks that have these inlined chunks."""
    index = np.array(list(inline), np.int64).reshape(len(inline), len(grid))
    numbers, counts = np.unique(number_chunks(index, grid) // size, return_counts=True)
    return {number: RecordTotals(0, 0, count) for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)}


class RecordTally:
    """Counts what the records of large arrays have, while their chunks are written.

    `layouts` has the shape of the grid and the size of records of each array, by path.
    """

    def __init__(self, layouts: Mapping[str, tuple[tuple[int, ...], int]]) -> None:
        self._layouts = layouts
        self._found: dict[str, dict[int, RecordTotals]] = {path: {} for path in layouts}

    def add(self, path: str, chunks: ChunkLocations) -> None:
        """Count chunks, unless the array is small."""
        if path in self._layouts:
            self._add(path, count_records(chunks, *self._layouts[path]))

    def add_inline(self, path: str, inline: Collection[tuple[int, ...]]) -> None:
        """Count inlined chunks, unless the array is small."""
        if path in self._layouts:
            self._add(path, count_inline(inline, *self._layouts[path]))

    def _add(self, path: str, totals: Mapping[int, RecordTotals]) -> None:
        found = self._found[path]
        for number, one in totals.items():
            found[number] = found.get(number, RecordTotals()) + one

    def to_json(self) -> dict[str, Json]:
        """Return what was counted, by path."""
        return self.encode(self._found)

    def encode(self, totals: Mapping[str, Mapping[int, RecordTotals]]) -> dict[str, Json]:
        """Return the totals of the records of these arrays."""
        return {path: encode_records(self._layouts[path][1], dict(sorted(one.items()))) for path, one in totals.items()}
