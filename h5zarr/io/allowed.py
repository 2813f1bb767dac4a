"""Decide which other files an input may make h5zarr read: allowed places, and files that cannot be a surprise.

A place is a directory, as a path or a URL, with everything below it: "/data", "s3://bucket/raw/", "sftp://".
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from h5zarr.errors import SourceRefused
from h5zarr.io.protocols import PROTOCOL, protocol_of, rules_of
from h5zarr.io.urls import display_url, find_local_path, find_named, split_chain, split_query

_DOTS = re.compile(r"(?:^|[/\\])(?:\.|%2e){2}(?:$|[/\\?#]|%2f|%5c)", re.IGNORECASE)


class NotAllowed(SourceRefused):
    """An input names a file that it may not make h5zarr read."""

    kind = "not allowed"
    remedy = "If you trust where the input comes from, allow the place: allow=[PLACE]."


def is_beside(url: str, other: str) -> bool:
    """Return whether `other` is in the directory of the file at `url`, or below it. Symbolic links are not resolved."""
    path = find_local_path(url)
    if path is not None:
        path = os.path.abspath(path)
        return any(is_below(other, os.path.dirname(one)) for one in (path, os.path.realpath(path)))
    links, others = split_chain(url), split_chain(other)
    place = find_named(links)
    if len(links) != len(others) or links[:place] + links[place + 1 :] != others[:place] + others[place + 1 :]:
        return False
    return is_below(others[place], split_query(links[place])[0].rpartition("/")[0] + "/")


def is_allowed(url: str, places: Sequence[str]) -> bool:
    """Return whether a file is below one of `places`."""
    return any(is_below(url, place) for place in places)


def is_below(url: str, place: str) -> bool:
    """Return whether the file at `url` is in the directory `place`, or below it. The last link of a chain counts."""
    *wrappers, link = split_chain(url)
    if any(not rules_of(one.partition("://")[0].lower()).is_wrapper for one in wrappers):
        return False
    path, directory = find_local_path(link), find_local_path(place)
    if path is not None or directory is not None:
        return path is not None and directory is not None and _is_path_below(path, directory)
    begin = place if place.endswith("/") else f"{place}/"
    match = PROTOCOL.match(begin)
    rest = split_query(link)[0]
    if match is None or protocol_of(rest) != match[1].lower():
        return False
    inside = rest.partition("://")[2]
    return inside.startswith(begin[match.end() :]) and not _DOTS.search(inside)


def _is_path_below(path: str, directory: str) -> bool:
    path, directory = os.path.abspath(path), os.path.abspath(directory)
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


def check_referred(url: str, references: str, places: Sequence[str]) -> None:
    """Raise NotAllowed if the references at `references` must not name the file at `url`.

    Local references may name any local file; remote references may not. Both may name files on the web and in buckets.
    Any other protocol is accepted only if the references were read with it. Files in `places` are always allowed.
    """
    if is_allowed(url, places):
        return
    links = split_chain(url)
    shown = display_url(url)
    is_local = find_local_path(references) is not None
    own = {"file"} if is_local else {link.partition("://")[0].lower() for link in split_chain(references)}
    for number, link in enumerate(links):
        is_last = number == len(links) - 1
        protocol = link.lower() if not is_last and "://" not in link else protocol_of(link)
        if is_last and find_local_path(link) is not None:
            protocol = "file"
        if not is_last and rules_of(protocol).is_wrapper:
            continue
        if rules_of(protocol).is_local:
            if not is_local and protocol not in own:
                raise NotAllowed(f"{shown}: remote references name a file on this machine")
        elif not rules_of(protocol).is_usual and protocol not in own:
            raise NotAllowed(f"{shown}: references name a file with the unusual protocol {protocol!r}")
        if not is_local and _DOTS.search(split_query(link)[0]):
            raise NotAllowed(f"{shown}: remote references name a file by a path that contains '..'")
