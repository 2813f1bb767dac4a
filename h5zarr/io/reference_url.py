"""URLs as references should hold them: absolute, openable by others, and without secrets."""

from __future__ import annotations

import os
import re

from h5zarr.io.grammar import PROTOCOL, grammar_of, split_chain, strip_user
from h5zarr.io.quoting import settle_url
from h5zarr.io.url import find_local_path

_CACHES = re.compile(r"^(?:(?:simplecache|filecache|blockcache|cached)::)+")
_SECRET = re.compile(
    r"signature|credential|token|secret|passw|passphrase|api[_-]?key|access[_-]?key|account[_-]?key|authori[sz]ation|jwt"
    r"|^(?:sig|hmac|key|auth|pwd|code|ticket|session|se|sp|sv)$",
    re.IGNORECASE,
)


def reference_url(url: str) -> tuple[str, bool]:
    """Return the URL to write into references, and whether something that looks secret was left out of it.

    Local paths become absolute, and URLs of web servers are escaped; a cache in front of a URL is the concern of
    whoever reads. User names and passwords, and a query with a signature or a key in it, are left out.
    """
    if not os.path.lexists(url):
        url = _CACHES.sub("", url)
    if (path := find_local_path(url)) is not None:
        return os.path.abspath(path), False
    settled = settle_url(url)
    shown = hide_secrets(settled)
    return shown, shown != settled


def hide_secrets(url: str) -> str:
    """Return a URL without what looks secret. Unlike `display_url`, it leaves all that tells two files apart."""
    return "::".join(_without_secrets(link) if PROTOCOL.match(link) else link for link in split_chain(url))


def _without_secrets(link: str) -> str:
    """Return one link of a URL without user, password, and a query in which something looks secret.

    Where a "?" is part of names, only what has a value counts: somebody has put the query of a signed URL there.
    """
    link = strip_user(link)
    is_literal = grammar_of(link).query != "?"
    address, _, query = link.partition("?")
    if not query:
        return link
    parts = [part for part in re.split(r"[?&;#]", query) if "=" in part or not is_literal]
    return address if any(_SECRET.search(name) for name in _names(parts)) else link


def _names(parts: list[str]) -> list[str]:
    """Return the names of the parameters of a query."""
    from urllib.parse import unquote  # needed by few, and start-up time is paid by all

    return [unquote(part.partition("=")[0]) for part in parts]
