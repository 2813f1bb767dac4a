"""Read h5zarr's own references in bulk: each line has one entry, and a million lines differ only in numbers.

A long run of lines with references is not given to a JSON parser. Its numbers are read at the expected positions, and
then written again by the functions that write references: they are correct only if that gives the same bytes. All other
lines are JSON objects when put in braces, and are decoded as such. If anything is not as h5zarr writes it, nothing is
returned, and a JSON parser reads the whole file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.containers.chunk_runs import Run, are_inside
from h5zarr.containers.json.chunk_text import SLAB_NBYTES, encode_chunk_entries
from h5zarr.zarr_model.chunk_keys import KeyLayout, are_plain
from h5zarr.zarr_model.digits import Positions, Text, decode_digits
from h5zarr.zarr_model.hierarchy import Json, Manifest

_HEAD = re.compile(rb'\{"version":1,\n("h5zarr":[^\n]*),\n"refs":\{\n')
_TAIL = b"\n}}\n"
_FEWEST = 64
"""For fewer lines, a JSON parser is faster than numpy."""

_KEY = re.compile(rb'"((?:[^"\\\n]|\\.)*)":\["')
_MARKED = re.compile(r"(.*)/c/([0-9]+(?:/[0-9]+)*)", re.DOTALL)
_PLAIN = re.compile(r"(.*)/([0-9]+(?:\.[0-9]+)*)", re.DOTALL)
_NEWLINE, _QUOTE, _BRACKET = b'\n"]'

Index: TypeAlias = npt.NDArray[np.int64]


class _NotOurs(Exception):
    """Something is not as h5zarr writes it."""


@dataclass(frozen=True, slots=True, eq=False)
class OwnLines:
    """The content of a file: the JSON of its provenance, entries by key, and those that were read in bulk."""

    provenance: Json
    entries: dict[str, Json]
    runs: tuple[Run, ...]


def decode_own_lines(content: bytes) -> OwnLines | None:
    """Return the content that h5zarr wrote, or None if this is anything else."""
    head = _HEAD.match(content)
    if head is None or not content.endswith(_TAIL):
        return None
    text = np.frombuffer(content, np.uint8)
    ends = _find_lines(text, head.end(), len(content) - len(_TAIL))
    entries: dict[str, Json] = {}
    runs = []
    try:
        provenance = _decode_object(head[1])
        if list(provenance) != ["h5zarr"]:
            return None
        at = head.end()
        for first, behind in _find_runs(text, ends):
            start = int(ends[first - 1]) + 1 if first else at
            entries |= _decode_object(content[at : start - 2])  # without the comma and the newline
            runs.append(_decode_run(content, start, ends[first:behind]))
            at = int(ends[behind - 1]) + 1
        entries |= _decode_object(content[at : -len(_TAIL)])
    except (_NotOurs, ValueError, RecursionError):
        return None
    return OwnLines(provenance["h5zarr"], entries, tuple(runs))


def _find_lines(text: Text, start: int, stop: int) -> Positions:
    """Return the positions of the newlines between `start` and `stop`, except the one after the last line."""
    found = []
    for at in range(start, stop, SLAB_NBYTES):
        found.append(at + np.flatnonzero(text[at : min(at + SLAB_NBYTES, stop)] == _NEWLINE))
    return np.concatenate([np.empty(0, np.int64), *found])


def _find_runs(text: Text, ends: Positions) -> Iterator[tuple[int, int]]:
    """Yield the first line of each long run of references, and the line after it. Their lines end in `],`."""
    is_reference = text[ends - 2] == _BRACKET
    edges = np.flatnonzero(np.diff(is_reference, prepend=False, append=False))
    for first, behind in edges.reshape(-1, 2).tolist():
        if behind - first >= _FEWEST:
            yield first, behind


def _decode_object(text: bytes) -> dict[str, Json]:
    """Return the entries of whole lines. Raises ValueError if they are invalid."""
    found: dict[str, Json] = json.loads("{" + text.decode() + "}")
    return found


def _decode_run(content: bytes, start: int, ends: Positions) -> Run:
    """Return the references on the lines that end at `ends`. The first starts at `start`."""
    layout = _find_layout(content, start)
    rows = [np.empty((len(ends), layout.rank), np.int64), *np.empty((2, len(ends)), np.int64)]
    source = np.empty(len(ends), np.int32)
    numbers: dict[str, int] = {}
    first = 0
    while first < len(ends):
        behind = max(first + 1, int(np.searchsorted(ends, start + SLAB_NBYTES)))
        begin = start - 2  # includes the comma and newline of the line before
        slab = _Slab(content[begin : int(ends[behind - 1]) + 1], ends[first:behind] - begin, layout)
        found = slab.decode()
        for column, part in zip(rows, (found.index, found.address, found.nbytes), strict=True):
            column[first:behind] = part
        table = np.array([numbers.setdefault(url, len(numbers)) for url in found.urls], np.int32)
        source[first:behind] = table[found.source]
        start = int(ends[behind - 1]) + 1
        first = behind
    index, address, nbytes = rows
    return Run(
        layout=layout,
        index=index,
        address=address,
        nbytes=nbytes,
        source=source if len(numbers) > 1 else 0,
        urls=tuple(numbers),
    )


def _find_layout(content: bytes, start: int) -> KeyLayout:
    """Return the key layout, guessed from the key at `start`. A wrong guess fits no array, or no other line."""
    if (found := _KEY.match(content, start)) is None:
        raise _NotOurs
    key = json.loads(f'"{found[1].decode()}"')
    if marked := _MARKED.fullmatch(key):
        return KeyLayout(f"/{marked[1]}", "c", "/", marked[2].count("/") + 1)
    if plain := _PLAIN.fullmatch(key):
        return KeyLayout(f"/{plain[1]}", "", ".", plain[2].count(".") + 1)
    raise _NotOurs


@dataclass(frozen=True, slots=True, eq=False)
class _Slab:
    """Lines with references, starting at the comma before the first one. `ends` are the positions of the newlines."""

    content: bytes
    ends: Positions
    layout: KeyLayout

    def decode(self) -> Run:
        """Return the references. Raises _NotOurs, or ValueError, unless they are as h5zarr writes them."""
        text = np.frombuffer(self.content, np.uint8)
        starts = np.concatenate([[2], self.ends[:-1] + 1])
        index, key_ends = self._decode_keys(text, starts)
        urls = key_ends + len('":[')
        found = self._decode_same(text, index, urls) or self._decode_different(text, index, urls)
        if found is None:
            raise _NotOurs
        return found

    def _decode_same(self, text: Text, index: Index, starts: Positions) -> Run | None:
        """Return the references if all have the URL of the first one, or None. The URL ends at the same position in
        all.
        """
        first, last = int(starts[0]), int(starts[-1])
        nbytes = self.content.index(b'",', first) + 1 - first
        one = self.content[first : first + nbytes]
        if not self.content.startswith(one, last):
            return None
        return self._decode_rest(text, index, self._inside(starts + nbytes), [one], 0)

    def _decode_different(self, text: Text, index: Index, starts: Positions) -> Run | None:
        """Return the references, each with its own URL, which ends with the last quote on its line; None if it does
        not.
        """
        quotes = np.flatnonzero(text == _QUOTE)
        ends = quotes[np.searchsorted(quotes, self.ends) - 1] + 1
        texts = [self.content[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        source = np.array([numbers[text] for text in texts], np.int32)
        return self._decode_rest(text, index, ends, list(numbers), source)

    def _decode_rest(
        self, text: Text, index: Index, url_ends: Positions, urls: list[bytes], source: int | npt.NDArray[np.int32]
    ) -> Run | None:
        """Return the references, or None unless writing them gives the same lines."""
        address, stops = decode_digits(text, self._inside(url_ends + 1))
        nbytes, _ = decode_digits(text, self._inside(stops + 1))
        names = tuple(json.loads(url.decode()) for url in urls)
        if not are_inside(address, nbytes) or not all(isinstance(name, str) for name in names):
            return None
        manifest = Manifest(index=index, address=address, nbytes=nbytes, source=source)
        if b"".join(encode_chunk_entries(self.layout.parts, manifest, names)) + b",\n" != self.content:
            return None
        return Run(layout=self.layout, index=index, address=address, nbytes=nbytes, source=source, urls=names)

    def _decode_keys(self, text: Text, starts: Positions) -> tuple[Index, Positions]:
        """Return the coordinates, and the positions after them."""
        index = np.empty((len(starts), self.layout.rank), np.int64)
        stops = starts + len(encode_basestring_ascii(self.layout.prefix)) - 2
        for axis in range(self.layout.rank):
            begins = self._inside(stops + 1)  # after the opening quote or the separator
            index[:, axis], stops = decode_digits(text, begins)
            if not are_plain(text, begins, stops):
                raise _NotOurs
        return index, stops

    def _inside(self, places: Positions) -> Positions:
        """Return `places`, none of them past the newline of its line."""
        return np.minimum(places, self.ends)
