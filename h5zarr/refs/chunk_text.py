"""The references of an array's chunks as JSON text, in bulk.

A slab of rows is a matrix of bytes in which all rows have the same layout. What is the same for every row is written
once, numbers are put into their columns, and blanks are taken out of the finished slab. There is no Python loop over
chunks: a million take less than a tenth of a second, and the memory of a slab.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from json.encoder import encode_basestring_ascii

import numpy as np
import numpy.typing as npt

from h5zarr.hierarchy import TO_THE_END, Manifest
from h5zarr.refs.digits import BLANK, Column, digit_groups, group_widths

# Fits the second-level cache of common processors: half and double this are as fast, eight times is slower.
SLAB_NBYTES = 1 << 20
FEW = 64
NEGATIVE = "a chunk's coordinates, address and size are not negative"


@dataclass(frozen=True, slots=True)
class _Number:
    """A column of numbers, and where the groups of their digits stand in a row: the last digits first."""

    values: Column
    widths: tuple[int, ...]
    starts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a row is made up. `template` has the text that all rows share, and blanks for the rest."""

    template: bytes
    numbers: tuple[_Number, ...]
    url_start: int


def encode_chunk_entries(key_parts: Sequence[str], manifest: Manifest, urls: Sequence[str]) -> Iterator[bytes]:
    r"""Yield the entries of all chunks that are referred to: `,\n"key":["url",address,nbytes]` for each.

    A chunk's key is its coordinates with `key_parts` before, between and behind them. That of a whole file has only
    `["url"]`.
    """
    if not manifest.count:
        return
    # Without a URL, readers take the file that they are told of.
    texts = [encode_basestring_ascii(url) if url else "null" for url in urls]
    if manifest.count <= FEW or (manifest.nbytes == TO_THE_END).any():
        yield _encode_few(key_parts, manifest, texts)
        return
    table = np.array([text.encode() for text in texts])
    sources = manifest.source if isinstance(manifest.source, np.ndarray) else None
    url = texts[int(manifest.source)].encode() if sources is None else BLANK * table.itemsize
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


def _encode_few(key_parts: Sequence[str], manifest: Manifest, urls: Sequence[str]) -> bytes:
    """Return the entries of a few chunks, for which the bulk takes longer to set up than to do, or of whole files."""
    parts = [encode_basestring_ascii(part)[1:-1].replace("%", "%%") for part in key_parts]
    sources = manifest.source
    numbers = sources.tolist() if isinstance(sources, np.ndarray) else [sources] * manifest.count
    index, address, nbytes = manifest.index.T.tolist(), manifest.address.tolist(), manifest.nbytes.tolist()
    places = []
    for number, start, count in zip(numbers, address, nbytes, strict=True):
        if count == TO_THE_END and start == 0:
            places.append(urls[number])
        elif count < 0:
            raise ValueError(NEGATIVE)
        else:
            places.append(f"{urls[number]},{start},{count}")
    if min(map(min, (*index, address))) < 0:
        raise ValueError(NEGATIVE)
    entry = f',\n"{"%d".join(parts)}":[%s]'
    return "".join([entry % row for row in zip(*index, places, strict=True)]).encode()


def _plan(key_parts: Sequence[str], manifest: Manifest, url: bytes) -> _Layout:
    """Return the layout of a row, with `url` or room for it, and room for the largest number in each column."""
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
    """Yield the number of a slab's first row, and the slab: one matrix, used again and again."""
    width = len(layout.template)
    height = min(count, max(1, SLAB_NBYTES // width))
    matrix = np.empty((height, width), np.uint8)
    matrix[:] = np.frombuffer(layout.template, np.uint8)
    for first in range(0, count, height):
        yield first, matrix[: min(height, count - first)]


def _set(rows: npt.NDArray[np.uint8], start: int, texts: npt.NDArray[np.generic]) -> None:
    """Put `texts`, one for each row, into the rows from byte `start` on."""
    rows.view(_field(texts.dtype, start, rows.shape[1]))["text"][:, 0] = texts


@lru_cache(maxsize=1024)
def _field(dtype: np.dtype[np.generic], start: int, row_nbytes: int) -> np.dtype[np.void]:
    """Return a type of rows in which a text has a name: the arrays of a file have few different rows."""
    return np.dtype({"names": ["text"], "formats": [dtype], "offsets": [start], "itemsize": row_nbytes})
