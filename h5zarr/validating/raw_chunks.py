"""The chunks that a reference file has itself: which of its entries they are, or in which of its Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from h5zarr.errors import H5ZarrError, Unsupported
from h5zarr.hdf5.guard import SURPRISES
from h5zarr.hierarchy import Json
from h5zarr.refs.chunk_entries import Index, decode_text
from h5zarr.refs.chunk_keys import Below
from h5zarr.refs.parquet_files import decode_part
from h5zarr.validating.keys import match_keys
from h5zarr.validating.members import layout_of, lengths
from h5zarr.validating.raw import RawNode, RawPart

Load = Callable[[tuple[str, ...]], Mapping[str, bytes]]
"""Reads files by their names, and returns the contents of those that are there."""

_MOST_PARTS = 1 << 16


def find_inline(node: RawNode, below: Below) -> dict[Index, bytes]:
    """Return the bytes of the chunks among the entries below an array, as far as they can be understood."""
    layout = layout_of(node)
    found: dict[Index, bytes] = {}
    if layout is None:
        return found
    texts = [(key, value) for key, value in zip(below.keys, below.values, strict=True) if isinstance(value, str)]
    for (_, value), index in zip(texts, match_keys(layout, [key for key, _ in texts]), strict=True):
        if index is not None:
            try:
                found[index] = decode_text(value)
            except ValueError:
                continue  # which a rule tells
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReader:
    """Reads the files of references in Parquet. `files` and `token` are what h5zarr says of those that it wrote."""

    load: Load
    record_size: int
    files: Mapping[str, Json] | None
    token: str | None

    def read(self, node: RawNode, grid_from: Mapping[str, Json]) -> tuple[tuple[RawPart, ...], dict[Index, bytes]]:
        """Return how the files of an array are, and the bytes of the chunks in them."""
        shape, chunks = lengths(grid_from.get("shape")), lengths(grid_from.get("chunks"))
        if shape is None or chunks is None or len(shape) != len(chunks) or 0 in chunks:
            return (), {}
        grid = tuple(-(-length // chunk) for length, chunk in zip(shape, chunks, strict=True))
        parts: list[RawPart] = []
        inline: dict[Index, bytes] = {}
        for number in self._numbers(node, prod(grid)):
            part, found = self._read_part(node, number, grid)
            if part is not None:
                parts.append(part)
                inline |= found
        return tuple(parts), inline

    def _numbers(self, node: RawNode, count: int) -> Iterator[int]:
        """Yield the numbers of an array's files: those that are said to be there, or all that there can be."""
        most = -(-count // self.record_size)
        told = None if self.files is None else self.files.get(node.path[1:], [])
        spans = [[0, most]] if told is None else told
        total = 0
        for span in spans if isinstance(spans, list) else ():
            if isinstance(span, list) and len(span) == 2 and all(type(number) is int for number in span):
                total += max(0, span[1] - span[0])
                if total > _MOST_PARTS:
                    raise Unsupported(f"{node.path}: its references are in more than {_MOST_PARTS} files")
                yield from range(*span)

    def _read_part(
        self, node: RawNode, number: int, grid: tuple[int, ...]
    ) -> tuple[RawPart | None, dict[Index, bytes]]:
        name = f"{node.path[1:]}/refs.{number}.parq"
        first = number * self.record_size
        most = min(self.record_size, prod(grid) - first)
        if first < 0 or most <= 0:
            return RawPart(name, 0, error="it is said to have chunks, and there are none so far along the grid"), {}
        content = self.load((name,)).get(name)
        if content is None:
            return (None if self.files is None else RawPart(name, most, error="it is not there")), {}
        try:
            found = decode_part(content, most, name)
        except Unsupported:
            raise
        except (H5ZarrError, *SURPRISES) as error:
            return RawPart(name, most, error=str(error).removeprefix(f"{name} ")), {}
        if self.token is not None and found.token != self.token:
            return RawPart(name, most, error="it does not belong to .zmetadata, but to other references"), {}
        inline = {_index(first + place, grid): one for place, one in found.rows.inline.items()}
        return RawPart(name, most, found.rows.count), inline


def _index(number: int, grid: tuple[int, ...]) -> Index:
    return tuple(int(one) for one in np.unravel_index(number, grid)) if grid else ()
