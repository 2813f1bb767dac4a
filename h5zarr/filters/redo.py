"""Filters applied, for the few chunks that must be stored again."""

from __future__ import annotations

from collections.abc import Sequence

from h5zarr.errors import H5ZarrError, MalformedFile
from h5zarr.filters.pipeline import Applied, unknown_filter


def redo_filters(content: bytes, filters: Sequence[Applied]) -> bytes:
    """Return `content` as the filters leave it, in the order of writing."""
    from h5zarr.filters.table import FILTERS

    for one in filters:
        if one.number not in FILTERS:
            raise unknown_filter(one)
        try:
            content = FILTERS[one.number].encode(content, one.values)
        except H5ZarrError:
            raise
        except Exception as error:  # of whatever library: client data are anybody's, and only reading checks them
            raise MalformedFile(f"filter {one.number} cannot be applied with its settings: {error}") from error
    return content
