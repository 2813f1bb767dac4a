"""Inlined chunks of a reference file: among its entries, or in its Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from h5zarr.commands.validate.members import layout_of
from h5zarr.commands.validate.raw import RawNode, RawPart
from h5zarr.containers.chunk_runs import Index, decode_text
from h5zarr.containers.parquet.part_files import decode_part
from h5zarr.errors import SURPRISES, H5ZarrError, Unsupported
from h5zarr.zarr_model.chunk_keys import Below, match_keys
from h5zarr.zarr_model.grid import RegularGrid, decode_lengths
from h5zarr.zarr_model.hierarchy import Json

Load = Callable[[tuple[str, ...]], Mapping[str, bytes]]
"""Reads files by name, and returns the contents of those that exist."""

_MOST_PARTS = 1 << 16


def find_inline(node: RawNode, below: Below) -> dict[Index, bytes]:
    """Return the inlined chunks among the entries below an array, as far as they can be decoded."""
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
                continue  # which a rule reports
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReader:
    """Reads the Parquet files of references. `files` and `token` are h5zarr's record of the files it wrote."""

    load: Load
    record_size: int
    files: Mapping[str, Json] | None
    token: str | None

    def read(self, node: RawNode, grid_from: Mapping[str, Json]) -> tuple[tuple[RawPart, ...], dict[Index, bytes]]:
        """Return the state of an array's files, and the inlined chunks in them."""
        shape, chunks = decode_lengths(grid_from.get("shape")), decode_lengths(grid_from.get("chunks"))
        if shape is None or chunks is None or len(shape) != len(chunks) or 0 in chunks:
            return (), {}
        grid = RegularGrid(shape, chunks)
        parts: list[RawPart] = []
        inline: dict[Index, bytes] = {}
        for number in self._numbers(node, grid.chunk_count):
            part, found = self._read_part(node, number, grid)
            if part is not None:
                parts.append(part)
                inline |= found
        return tuple(parts), inline

    def _numbers(self, node: RawNode, count: int) -> Iterator[int]:
        """Yield the numbers of an array's files: the recorded ones, or all possible ones."""
        most = -(-count // self.record_size)
        listed = None if self.files is None else self.files.get(node.path[1:], [])
        spans = [[0, most]] if listed is None else listed
        total = 0
        for span in spans if isinstance(spans, list) else ():
            if isinstance(span, list) and len(span) == 2 and all(type(number) is int for number in span):
                total += max(0, span[1] - span[0])
                if total > _MOST_PARTS:
                    raise Unsupported(f"{node.path}: its references are in more than {_MOST_PARTS} files")
                yield from range(*span)

    def _read_part(self, node: RawNode, number: int, grid: RegularGrid) -> tuple[RawPart | None, dict[Index, bytes]]:
        name = f"{node.path[1:]}/refs.{number}.parq"
        first = number * self.record_size
        most = min(self.record_size, grid.chunk_count - first)
        if first < 0 or most <= 0:
            return RawPart(name, 0, error="the record lists chunks so far along the grid, but there are none"), {}
        content = self.load((name,)).get(name)
        if content is None:
            return (None if self.files is None else RawPart(name, most, error="it does not exist")), {}
        try:
            found = decode_part(content, most, name)
        except Unsupported:
            raise
        except (H5ZarrError, *SURPRISES) as error:
            return RawPart(name, most, error=str(error).removeprefix(f"{name} ")), {}
        if self.token is not None and found.token != self.token:
            return RawPart(name, most, error="it does not belong to .zmetadata, but to other references"), {}
        inline = {grid.index(first + place): one for place, one in found.rows.inline.items()}
        return RawPart(name, most, found.rows.count), inline
