"""How much a filter may give, and what is said when it gives something else."""

from __future__ import annotations

from h5zarr.errors import MalformedFile


def most(nbytes: int) -> int:
    """Return how many bytes any filter may give, where the chunk has `nbytes` before all filters.

    What a later filter gives may be somewhat larger than the chunk: a checksum is four bytes, and a compressor that met
    noise has added its framing. None of those that HDF5 has adds more than an eighth.
    """
    return nbytes + nbytes // 8 + 4096


def check_room(given: int, nbytes: int, what: str) -> None:
    """Raise unless a filter may give `given` bytes. To be asked before they are allocated."""
    if given > most(nbytes):
        raise MalformedFile(f"{what} says that it holds {given} bytes, but the chunk has {nbytes}")
