"""Limits for inlining data into references."""

from __future__ import annotations

from dataclasses import dataclass

from h5zarr.errors import Unrepresentable

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Inlining:
    """How much of the data the references carry themselves, so that opening them needs no further request.

    The numbers come from `benchmarks/open_remote.py`: files and references behind 30 ms and 10 MB/s.
    """

    array_nbytes: int = 1 * KIB
    """An array whose stored chunks take at most this much in all is inlined.

    The metadata of an array take about as much, so files of many small arrays do not grow much, and a hundred scalars
    load with 2 requests instead of 102. A higher limit would slow down users who do not need the values.
    """

    coordinate_nbytes: int = 256 * KIB
    """The same for coordinates: one-dimensional arrays named like their dimension, which readers load when they open.

    These bytes are transferred anyway, so inlining costs only the third that base64 adds. Up to 900 kB, that is less
    than a request. A year of hours takes 70 kB as doubles: such a file opens with 4 requests, and with 24 if the limit
    is 64 KiB. A coordinate with one chunk for each of 5,000 steps loads in 0.1 s instead of 20 s.
    """

    converted_nbytes: int = 1 * MIB
    """The same for arrays whose elements must be converted: readers then need no h5zarr codec.

    Joinable arrays keep the codec. The limit also applies to joinable arrays that are shorter than their chunk and have
    to be taken out of it.
    """

    total_nbytes: int = 64 * MIB
    """The limit for all arrays together. An array that can only be inlined and does not fit becomes a problem."""

    @classmethod
    def up_to(cls, nbytes: int) -> Inlining:
        """Return options that inline arrays of every kind up to a size; 0 inlines only what cannot be referenced."""
        return cls(array_nbytes=nbytes, coordinate_nbytes=nbytes, converted_nbytes=nbytes)


class InlineTooLarge(Unrepresentable):
    """The values can only be inlined, and exceed the limit."""

    remedy = "Allow more with max_inline_bytes=NUMBER, or leave the array out with exclude=[PATH]."


class Budget:
    """How many bytes may still be inlined."""

    def __init__(self, inlining: Inlining) -> None:
        self.inlining = inlining
        self._left = inlining.total_nbytes

    def allows(self, nbytes: int) -> bool:
        """Take `nbytes` from the budget if they fit. Return whether they did."""
        if nbytes > self._left:
            return False
        self._left -= nbytes
        return True

    def give_back(self, nbytes: int) -> None:
        """Return `nbytes` that were taken and not used."""
        self._left += nbytes

    def require(self, nbytes: int, why: str) -> None:
        """Take `nbytes` from the budget. Raises InlineTooLarge if they do not fit."""
        if not self.allows(nbytes):
            raise InlineTooLarge(f"{why}, which takes {nbytes} bytes, but only {self._left} may still be inlined")
