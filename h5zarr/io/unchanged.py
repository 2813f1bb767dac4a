"""Is a file still the one that was recorded?"""

from __future__ import annotations

from h5zarr.errors import SourceChanged
from h5zarr.io.source import Identity

_REMEDY = (
    "Translate it again; or read it all the same with verify=False, if you know that its data are where they were."
)


def check_unchanged(
    url: str, expected: Identity, found: Identity, *, since: str = "it was translated", remedy: str = _REMEDY
) -> None:
    """Raise SourceChanged unless `found` is the state that was recorded; `url` is safe to show.

    Size first; then what the server says of the content; then, where it says nothing, the time of the last change. A
    copy of an object has the content of the original, but not its time.
    """
    if expected.nbytes != found.nbytes:
        what = f"it has {found.nbytes} bytes, and had {expected.nbytes}"
        raise source_changed(url, what, since=since, remedy=remedy)
    for name, before, now in (
        ("version", expected.version, found.version),
        ("ETag", expected.etag, found.etag),
        ("time of change", expected.mtime, found.mtime),
    ):
        if before is not None and now is not None:
            if before != now:
                raise source_changed(url, f"its {name} is {now}, and was {before}", since=since, remedy=remedy)
            return


def source_changed(url: str, what: str, *, since: str = "it was translated", remedy: str = _REMEDY) -> SourceChanged:
    """Return the error that says what is different; `url` is safe to show."""
    return SourceChanged(f"{url}: the file has changed since {since}: {what}", remedy=remedy)
