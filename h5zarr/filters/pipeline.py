"""All filters of a chunk or a heap block undone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from h5zarr.errors import Unsupported


class Applied(Protocol):
    """One filter of a pipeline: its number, the name that the file gives it, and its client data."""

    @property
    def number(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def values(self) -> tuple[int, ...]: ...


class UnknownFilter(Unsupported):
    """No module here undoes the filter."""

    remedy = (
        "Read it with h5py and the filter's plugin, or copy the file with a filter that is known: h5repack -f GZIP=6"
    )


def undo_filters(content: bytes, filters: Sequence[Applied], mask: int, nbytes: int) -> bytes:
    """Return `content` as it was before the filters, whose whole result has `nbytes` bytes if nothing is wrong.

    Filters are in the order of writing; those whose bit is set in `mask` were skipped. The size is a bound for what is
    allocated: the result may be shorter, or slightly longer, which is the caller's to judge.
    """
    for position in reversed(range(len(filters))):
        if not mask >> position & 1:
            content = _undo(content, filters[position], nbytes)
    return content


def is_known(number: int) -> bool:
    """Return whether the filter can be undone here, given its packages."""
    from h5zarr.filters.table import FILTERS

    return number in FILTERS


def unknown_filter(applied: Applied) -> UnknownFilter:
    """Return the error that says that the filter cannot be undone, and why where that is known."""
    from h5zarr.filters.table import REFUSED

    reason = REFUSED.get(applied.number, "is not known")
    return UnknownFilter(f"filter {applied.number} ({applied.name or 'unnamed'}) {reason}")


def _undo(content: bytes, applied: Applied, nbytes: int) -> bytes:
    # Imported late: most files have no filtered metadata, and are scanned faster than this takes.
    from h5zarr.filters.table import FILTERS

    kind = FILTERS.get(applied.number)
    if kind is None:
        raise unknown_filter(applied)
    return kind.decode(content, applied.values, nbytes)
