"""Filters 32022, 32023 and 32032: BitGroom, Granular BitRound and BitRound, which round values when they are written.

Nothing has to be undone, so readers need no codec.
"""

from __future__ import annotations

from h5zarr.filters.toolkit import Values


def decode(content: bytes, values: Values, nbytes: int) -> bytes:
    """Return the content unchanged."""
    return content


def encode(content: bytes, values: Values) -> bytes:
    """Return the content unchanged: the values that were read are rounded already."""
    return content


def to_codec(values: Values, nbytes: int | None) -> None:
    """Return None: reading needs no codec."""
