"""Filters applied, for the few chunks that must be stored again."""

from __future__ import annotations

from collections.abc import Sequence

from h5zarr.filters.pipeline import Applied, unknown_filter


def redo_filters(content: bytes, filters: Sequence[Applied]) -> bytes:
    """Return `content` as the filters leave it, in the order of writing."""
    from h5zarr.filters.table import FILTERS

    for one in filters:
        if one.number not in FILTERS:
            raise unknown_filter(one)
        content = FILTERS[one.number].encode(content, one.values)
    return content
