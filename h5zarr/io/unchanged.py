"""Check that a file is still in the state that was recorded."""

from __future__ import annotations

from h5zarr.errors import SourceChanged
from h5zarr.io.source import Identity

_REMEDY = "Translate it again. If you know that its data have not moved, you can read it anyway with verify=False."


def check_unchanged(
    url: str, expected: Identity, found: Identity, *, since: str = "it was translated", remedy: str = _REMEDY
) -> None:
    """Raise SourceChanged unless `found` is the recorded state. `url` must be safe to show.

    Sizes are compared first. Then the first field that both states have decides: version, ETag, or modification time.
    The time comes last, because a copy of an object has the same content but another time.
    """
    if expected.nbytes != found.nbytes:
        what = f"it has {found.nbytes} bytes instead of {expected.nbytes}"
        raise source_changed(url, what, since=since, remedy=remedy)
    for name, before, now in (
        ("version", expected.version, found.version),
        ("ETag", expected.etag, found.etag),
        ("modification time", expected.mtime, found.mtime),
    ):
        if before is not None and now is not None:
            if before != now:
                raise source_changed(url, f"its {name} is {now} instead of {before}", since=since, remedy=remedy)
            return


def source_changed(url: str, what: str, *, since: str = "it was translated", remedy: str = _REMEDY) -> SourceChanged:
    """Return the error that says what has changed. `url` must be safe to show."""
    return SourceChanged(f"{url}: the file has changed since {since}: {what}", remedy=remedy)
