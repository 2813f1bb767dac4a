"""How sources are called, and whether they have changed."""

from __future__ import annotations

import os
import re

from h5zarr.commands.catalog.rows import writable
from h5zarr.errors import H5ZarrError, SourceChanged
from h5zarr.io.location import Location
from h5zarr.io.source import Identity
from h5zarr.io.unchanged import check_unchanged

_PLAIN = re.compile(r"(?:s3|gs|https?)://[\w.-]+(?::\d+)?(?:/(?!\.)[\w.=+,~-]*)+", re.ASCII)


def source_name(url: str) -> str:
    """Return the name of a source in the catalog, which is also its name in references."""
    if _is_plain(url):
        return writable(url)
    location = Location.parse(url)
    try:
        return writable(location.for_references()[0])
    except H5ZarrError:
        return writable(location.without_secrets())  # it cannot be opened either; reading it reports why


def _is_plain(url: str) -> bool:
    """Return whether a URL or path is certainly its own name. A closer look at a hundred thousand takes seconds."""
    if _PLAIN.fullmatch(url):
        return not os.path.lexists(url[: url.index("/")])  # if it exists, this is a local path
    return url.startswith("/") and os.path.normpath(url) == url


def is_same(before: Identity | None, now: Identity | None) -> bool:
    """Return whether a source is unchanged. If its state is unknown it is read again; reading reports why."""
    if before is None or now is None or before == now:
        return before == now
    try:
        check_unchanged("", before, now)
    except SourceChanged:
        return False
    return True
