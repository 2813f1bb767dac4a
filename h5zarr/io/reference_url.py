"""URLs as references should hold them: absolute, openable by others, and without secrets."""

from __future__ import annotations

import os
import re

from h5zarr.io.url import find_local_path

_CACHES = re.compile(r"^(?:simplecache|filecache|blockcache)::")
_USER_INFO = re.compile(r"(?<=://)[^/?#]*@")
_SECRET = re.compile(
    r"signature|credential|token|secret|password|passwd|api_?key|access_?key|^(?:sig|key|auth|se|sp|sv)$", re.IGNORECASE
)


def reference_url(url: str) -> tuple[str, bool]:
    """Return the URL to write into references, and whether something that looks secret was left out of it.

    Local paths become absolute; a cache in front of a URL is the concern of whoever reads. User names and passwords,
    and a query with a signature or a key in it, are left out.
    """
    url = _CACHES.sub("", url)
    if (path := find_local_path(url)) is not None:
        return os.path.abspath(path), False
    shown = _USER_INFO.sub("", url)
    address, mark, query = shown.partition("?")
    names = [part.partition("=")[0] for part in query.split("&")]
    if any(_SECRET.search(name) for name in names):
        return address, True
    return address + mark + query, shown != url
