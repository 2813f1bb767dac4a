"""What the user may choose about the encoding."""

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

    That is about what the metadata of an array take anyway, so that files of many small arrays do not grow much, while
    a hundred scalars are loaded with 2 requests instead of 102. More would burden those who do not want the values.
    """

    coordinate_nbytes: int = 256 * KIB
    """The same for an array of one axis that is named like its dimension: readers load those when they open.

    So they are moved in any case, and inlining costs only the third that base64 adds: up to 900 kB that is less than a
    request. A year of hours takes 70 kB as doubles: a file with that opens with 4 requests, and with 24 if the limit is
    64 KiB. A coordinate that has a chunk for each of 5,000 steps is loaded in 0.1 s instead of 20 s.
    """

    converted_nbytes: int = 1 * MIB
    """The same for an array whose elements must be converted, so that readers need no codec of h5zarr for it.

    Arrays that are to be joined are left to the codec. Of those, ones that must be taken out of chunks which are longer
    than they are themselves may take as much.
    """

    total_nbytes: int = 64 * MIB
    """What all arrays together may take. What must be inlined, and does not fit any more, is a problem."""

    @classmethod
    def up_to(cls, nbytes: int) -> Inlining:
        """Return the choice to inline arrays up to a size, of every kind; 0 is only what cannot be referred to."""
        return cls(array_nbytes=nbytes, coordinate_nbytes=nbytes, converted_nbytes=nbytes)


class InlineTooLarge(Unrepresentable):
    """There is no way but to inline the values, and they are more than may be inlined."""

    remedy = "Allow more with --max-inline-bytes, or leave the array out with --exclude."


class Budget:
    """What may still be inlined."""

    def __init__(self, inlining: Inlining) -> None:
        self.inlining = inlining
        self._left = inlining.total_nbytes

    def allows(self, nbytes: int) -> bool:
        """Take `nbytes` from what is left, if there is as much."""
        if nbytes > self._left:
            return False
        self._left -= nbytes
        return True

    def give_back(self, nbytes: int) -> None:
        """Add `nbytes` to what is left: they were taken, and then nothing came of it."""
        self._left += nbytes

    def require(self, nbytes: int, why: str) -> None:
        """Take `nbytes` from what is left; raise where there is not as much."""
        if not self.allows(nbytes):
            raise InlineTooLarge(f"{why}, which takes {nbytes} bytes where {self._left} may still be inlined")
