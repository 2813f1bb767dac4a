"""URLs: which of them are local files, and how to show one without its secrets."""

from __future__ import annotations

import os
import re

# One letter before a colon is a Windows drive.
_PROTOCOL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+://")
# Before the host; a password that should have been quoted, and is not, may have a slash or a question mark in it.
_USER_INFO = re.compile(r"(?<=://)(?:[^/?]*|(?!arn:)[^/?#:@]*:(?!\d*(?:[/?#]|$)).*)@", re.DOTALL)
# Azure writes the container there: abfs://container@account.dfs.core.windows.net/path.
_CONTAINER = re.compile(r"(?:abfss?|adl|az|wasbs?)://[^/?:@]*@", re.IGNORECASE)
_FILE_URL = re.compile(r"(?:file|local)://(?:localhost(?=/))?", re.IGNORECASE)
_DRIVE_AFTER_SLASH = re.compile(r"/[A-Za-z]:[/\\]")


def find_local_path(url: str) -> str | None:
    """Return the local path that `url` names, or None if it names something for fsspec.

    A path is taken as it is written. Only where no such file exists is a leading ~ expanded, or a file:// URL read
    with its percent signs decoded: both readings of "%20" are in use.
    """
    if os.path.lexists(url):
        return url
    if "::" in url:
        return None
    if match := _FILE_URL.match(url):
        path = url[match.end() :]
        if os.name == "nt" and _DRIVE_AFTER_SLASH.match(path):
            path = path[1:]
        if os.path.lexists(path):
            return path
        from urllib.parse import unquote  # needed by few, and start-up time is paid by all

        return unquote(path)
    if _PROTOCOL.match(url):
        return None
    return os.path.expanduser(url)


def display_url(url: str) -> str:
    """Return `url` without what may be secret: user, password and query, in every link of a chain."""
    return "::".join(without_user(link).split("?", 1)[0] for link in url.split("::"))


def without_user(link: str) -> str:
    """Return one URL without user and password."""
    return link if _CONTAINER.match(link) else _USER_INFO.sub("", link, count=1)
