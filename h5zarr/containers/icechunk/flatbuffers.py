"""Read the tables of a flatbuffers file, many at a time: columns of positions in the file.

https://flatbuffers.dev/internals. Positions outside the file are never read.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile

Places = npt.NDArray[np.int64]

_SLAB_NBYTES = 1 << 22
_MOST_LENGTHS = 64


class Tables:
    """The content of a file. `name` is for errors."""

    def __init__(self, content: bytes, name: str) -> None:
        self._content = content
        self._bytes = np.frombuffer(content, np.uint8)
        self.name = name

    @property
    def nbytes(self) -> int:
        return len(self._content)

    def root(self) -> Places:
        return self.follow(np.zeros(1, np.int64))

    def integers(self, at: Places, nbytes: int) -> Places:
        """Return the unsigned integers of `nbytes` bytes at some positions."""
        if len(at) and (int(at.min()) < 0 or int(at.max()) > self.nbytes - nbytes):
            raise MalformedFile(f"{self.name} points outside the file")
        if not (at & (nbytes - 1)).any():  # as flatbuffers aligns them
            found = self._words(nbytes)[at // nbytes].astype(np.int64)
        else:
            found = np.zeros(len(at), np.int64)
            for place in range(nbytes):
                found |= self._bytes[at + place].astype(np.int64) << 8 * place
        if (found < 0).any():
            raise MalformedFile(f"{self.name} has a number of more than 63 bits")
        return found

    def _words(self, nbytes: int) -> npt.NDArray[np.unsignedinteger]:
        """Return the file as unsigned integers of `nbytes` bytes."""
        count = self.nbytes // nbytes
        return np.frombuffer(self._content, np.dtype(f"<u{nbytes}"), count)

    def numbers(self, fields: Places, nbytes: int) -> Places:
        """Return the integers in some fields; 0 if a field is absent."""
        found = np.zeros(len(fields), np.int64)
        found[fields > 0] = self.integers(fields[fields > 0], nbytes)
        return found

    def follow(self, at: Places) -> Places:
        """Return the targets of the offsets at some positions."""
        return at + self.integers(at, 4)

    def fields(self, tables: Places, number: int) -> Places:
        """Return the positions of a field in some tables; 0 if it is absent."""
        back = self.integers(tables, 4)
        layouts = tables - np.where(back >= 1 << 31, back - (1 << 32), back)
        entry = 4 + 2 * number
        is_known = entry < self.integers(layouts, 2)
        offsets = np.zeros(len(tables), np.int64)
        offsets[is_known] = self.integers(layouts[is_known] + entry, 2)
        return np.where(offsets > 0, tables + offsets, 0)

    def elements(self, fields: Places) -> list[Places]:
        """Return the positions of the 4-byte elements of the vectors in some fields."""
        if (fields == 0).any():
            raise MalformedFile(f"{self.name} lacks a field that every manifest has")
        at = self.follow(fields)
        counts = self.integers(at, 4)
        if (at + 4 + 4 * counts > self.nbytes).any():
            raise MalformedFile(f"{self.name} ends within a list")
        return [start + 4 + 4 * np.arange(count) for start, count in zip(at.tolist(), counts.tolist(), strict=True)]

    def vectors(self, fields: Places) -> list[bytes]:
        """Return the bytes of the vectors or texts in some fields."""
        at = self.follow(fields)
        counts = self.integers(at, 4)
        return [self.bytes_at(start + 4, count) for start, count in zip(at.tolist(), counts.tolist(), strict=True)]

    def distinct(self, fields: Places) -> tuple[list[bytes], npt.NDArray[np.int32]]:
        """Return the different vectors or texts in some fields, and the number of the one in each field.

        Equal ones often follow each other, so neighbours are compared in bulk, and only the first of them is read.
        """
        at = self.follow(fields)
        counts = self.integers(at, 4)
        if (at + 4 + counts > self.nbytes).any():
            raise MalformedFile(f"{self.name} is truncated")
        is_first = self._differ_from_the_one_before(at + 4, counts)
        heads = np.flatnonzero(is_first)
        places = zip(at[heads].tolist(), counts[heads].tolist(), strict=True)
        contents = [self.bytes_at(start + 4, count) for start, count in places]
        numbers = {content: number for number, content in enumerate(dict.fromkeys(contents))}
        of_heads = np.array([numbers[content] for content in contents], np.int32)
        return list(numbers), of_heads[np.cumsum(is_first) - 1]

    def _differ_from_the_one_before(self, starts: Places, counts: Places) -> npt.NDArray[np.bool_]:
        """Return whether vectors differ from the one before. May be True for equal ones of uncommon lengths."""
        differ = np.ones(len(starts), np.bool_)
        alike = np.flatnonzero(counts[1:] == counts[:-1]) + 1
        lengths, times = np.unique(counts[alike], return_counts=True)
        for length in lengths[np.argsort(-times)[:_MOST_LENGTHS]].tolist():
            rows = alike[counts[alike] == length]
            if not length:
                differ[rows] = False
                continue
            windows = np.lib.stride_tricks.sliding_window_view(self._bytes, length)
            step = max(1, _SLAB_NBYTES // length)
            for first in range(0, len(rows), step):
                some = rows[first : first + step]
                differ[some] = (windows[starts[some]] != windows[starts[some - 1]]).any(axis=1)
        return differ

    def bytes_at(self, start: int, count: int) -> bytes:
        if start <= 0 or start + count > self.nbytes:
            raise MalformedFile(f"{self.name} is truncated")
        return self._content[start : start + count]
