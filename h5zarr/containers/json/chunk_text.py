"""Encode the references of an array's chunks as JSON text, in bulk.

A slab of rows is a matrix of bytes in which all rows have the same layout. The common text is written once, numbers are
put into their columns, and blanks are removed from the finished slab. There is no Python loop over chunks: a million
take less than a tenth of a second, and the memory of a slab.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from json.encoder import encode_basestring_ascii

import numpy as np
import numpy.typing as npt

from h5zarr.zarr_model.digits import BLANK, Column, digit_groups, group_widths
from h5zarr.zarr_model.hierarchy import TO_THE_END, ChunkLocations

# Fits the L2 cache of common processors: half and double this are as fast, eight times is slower.
SLAB_NBYTES = 1 << 20
FEW = 64
NEGATIVE = "a chunk's coordinates, address and size are not negative"


@dataclass(frozen=True, slots=True)
class _Number:
    """A column of numbers, and the positions of their digit groups in a row, last digits first."""

    values: Column
    widths: tuple[int, ...]
    starts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Layout:
    """The layout of a row. `template` has the text that all rows share, and blanks for the rest."""

    template: bytes
    numbers: tuple[_Number, ...]
    url_start: int


def encode_chunk_entries(key_parts: Sequence[str], manifest: ChunkLocations, urls: Sequence[str]) -> Iterator[bytes]:
    """Yield the entries of all referenced chunks: `,\n"key":["url",address,nbytes]` for each.

    A chunk's key is its coordinates with `key_parts` before, between and after them. A whole file has only `["url"]`.
    """
    if not manifest.count:
        return
    # Only URLs that occur, because a part of a large cube has few of them. Without a URL, readers use the file they are
    # given.
    used, numbers = np.unique(np.broadcast_to(manifest.source, manifest.count), return_inverse=True)
    texts = [encode_basestring_ascii(url) if (url := urls[number]) else "null" for number in used.tolist()]
    if manifest.count <= FEW or (manifest.nbytes == TO_THE_END).any():
        yield _encode_few(key_parts, manifest, [texts[number] for number in numbers.tolist()])
        return
    table = np.array([text.encode() for text in texts])
    sources = numbers if len(texts) > 1 else None
    url = texts[0].encode() if sources is None else BLANK * table.itemsize
    layout = _plan(key_parts, manifest, url)
    for first, rows in _slabs(layout, manifest.count):
        part = slice(first, first + len(rows))
        if sources is not None:
            _set(rows, layout.url_start, table[sources[part]])
        for number in layout.numbers:
            groups = digit_groups(number.values[part], number.widths)
            for start, group in zip(number.starts, groups, strict=True):
                _set(rows, start, group)
        yield rows.tobytes().replace(BLANK, b"")


def _encode_few(key_parts: Sequence[str], manifest: ChunkLocations, urls: Sequence[str]) -> bytes:
    """Return the entries of whole files, or of a few chunks, for which the bulk setup takes too long.

    `urls` has the text of the URL of each chunk.
    """
    parts = [encode_basestring_ascii(part)[1:-1].replace("%", "%%") for part in key_parts]
    index, address, nbytes = manifest.index.T.tolist(), manifest.address.tolist(), manifest.nbytes.tolist()
    places = []
    for url, start, count in zip(urls, address, nbytes, strict=True):
        if count == TO_THE_END and start == 0:
            places.append(url)
        elif count < 0:
            raise ValueError(NEGATIVE)
        else:
            places.append(f"{url},{start},{count}")
    if min(map(min, (*index, address))) < 0:
        raise ValueError(NEGATIVE)
    entry = f',\n"{"%d".join(parts)}":[%s]'
    return "".join([entry % row for row in zip(*index, places, strict=True)]).encode()


def _plan(key_parts: Sequence[str], manifest: ChunkLocations, url: bytes) -> _Layout:
    """Return the layout of a row, with `url` or space for it, and space for the largest number in each column."""
    before = [encode_basestring_ascii(part)[1:-1].encode() for part in key_parts]
    template = bytearray(b',\n"')
    numbers = []

    def add(values: Column) -> None:
        if int(values.min()) < 0:
            raise ValueError(NEGATIVE)
        widths = group_widths(int(values.max()))
        end = len(template) + sum(widths)
        numbers.append(_Number(values, widths, tuple(end - sum(widths[: i + 1]) for i in range(len(widths)))))
        template.extend(BLANK * sum(widths))

    for axis, text in enumerate(before[:-1]):
        template += text
        add(manifest.index[:, axis])
    template += before[-1] + b'":['
    url_start = len(template)
    template += url + b","
    add(manifest.address)
    template += b","
    add(manifest.nbytes)
    template += b"]"
    return _Layout(bytes(template), tuple(numbers), url_start)


def _slabs(layout: _Layout, count: int) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    """Yield each slab with the number of its first row: one matrix, reused."""
    width = len(layout.template)
    height = min(count, max(1, SLAB_NBYTES // width))
    matrix = np.empty((height, width), np.uint8)
    matrix[:] = np.frombuffer(layout.template, np.uint8)
    for first in range(0, count, height):
        yield first, matrix[: min(height, count - first)]


def _set(rows: npt.NDArray[np.uint8], start: int, texts: npt.NDArray[np.generic]) -> None:
    """Write `texts`, one per row, into the rows, starting at byte `start`."""
    rows.view(_field(texts.dtype, start, rows.shape[1]))["text"][:, 0] = texts


@lru_cache(maxsize=1024)
def _field(dtype: np.dtype[np.generic], start: int, row_nbytes: int) -> np.dtype[np.void]:
    """Return a row type with a named text field. Cached: the arrays of a file have few different rows."""
    return np.dtype({"names": ["text"], "formats": [dtype], "offsets": [start], "itemsize": row_nbytes})
