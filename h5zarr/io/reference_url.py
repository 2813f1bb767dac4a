"""URLs as references should hold them: absolute, openable by others, and without secrets."""

from __future__ import annotations

import os
import re

from h5zarr.io.url import find_local_path, without_user

_CACHES = re.compile(r"^(?:simplecache|filecache|blockcache)::")
_SECRET = re.compile(
    r"signature|credential|token|secret|passw|passphrase|api[_-]?key|access[_-]?key|account[_-]?key|authori[sz]ation|jwt"
    r"|^(?:sig|hmac|key|auth|pwd|code|ticket|session|se|sp|sv)$",
    re.IGNORECASE,
)


def reference_url(url: str) -> tuple[str, bool]:
    """Return the URL to write into references, and whether something that looks secret was left out of it.

    Local paths become absolute; a cache in front of a URL is the concern of whoever reads. User names and passwords,
    and a query with a signature or a key in it, are left out.
    """
    url = _CACHES.sub("", url)
    if (path := find_local_path(url)) is not None:
        return os.path.abspath(path), False
    shown = "::".join(map(without_user, url.split("::")))
    address, mark, query = shown.partition("?")
    if any(_SECRET.search(name) for name in _names(query)):
        return address, True
    return address + mark + query, shown != url


def _names(query: str) -> list[str]:
    """Return the names of the parameters in a query."""
    from urllib.parse import unquote  # needed by few, and start-up time is paid by all

    return [unquote(part.partition("=")[0]) for part in re.split(r"[?&;#]", query)]
