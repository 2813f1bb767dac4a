"""Conditions: requests that a server is to answer of one state of a file, or not at all.

Every answer is compared with what is known of the file, too, since a server may take no notice of conditions. One that
heeds them sends no bytes of another state, even where its answers do not say of which state they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

from h5zarr.io.source import Identity

# RFC 9110, 8.8.3. A weak one never matches (13.1.1), and what is recorded in references may be anything.
_STRONG_ETAG = re.compile(r'"[!#-~]*"')
_GENERATION = re.compile(r"[0-9]{1,20}")
_HEADER = "If-Match"

T = TypeVar("T")


class Condition(NamedTuple):
    """What requests carry, once a state of the file is known.

    `options` are the header, argument or parameter, by the names that the file system uses; empty where nothing is
    asked. `broken` is what it means that a server refuses to answer.
    """

    options: Mapping[str, Any]
    broken: str


UNCONDITIONAL = Condition({}, "")


def find_condition(filesystem: Any, path: str, identity: Identity | None) -> Condition:
    """Return how to ask for the bytes of a file in the state `identity` alone; None is any."""
    if identity is None or (state := find_for(filesystem, _STATES)) is None:
        return UNCONDITIONAL
    return state(filesystem, path, identity)


def find_for(filesystem: Any, table: Mapping[str, T]) -> T | None:
    """Return what stands in `table` for a file system, whose package need not be installed; None for others."""
    return next((table[kind.__name__] for kind in type(filesystem).__mro__ if kind.__name__ in table), None)


def _state_http(filesystem: Any, path: str, identity: Identity) -> Condition:
    """Return the header, unless there is one in the storage options: who gave it wants that one."""
    given = (filesystem.kwargs.get("headers"), filesystem.client_kwargs.get("headers"))
    if any(str(name).lower() == _HEADER.lower() for headers in given for name in dict(headers or {})):
        return UNCONDITIONAL
    return _match_etag(identity, lambda etag: {_HEADER: etag})


def _state_s3(filesystem: Any, path: str, identity: Identity) -> Condition:
    """Return the ETag, also where the object has versions: to go on with the old one would hide that there is a new."""
    if "IfMatch" in filesystem.s3_additional_kwargs:
        return UNCONDITIONAL
    return _match_etag(identity, lambda etag: {"IfMatch": etag})


def _state_gcs(filesystem: Any, path: str, identity: Identity) -> Condition:
    """Return the generation, which is the condition that Google's JSON API documents for the content of objects.

    It is compared with the current one; a generation that the URL chooses need not be that, and never changes.
    """
    generation = identity.version or ""
    if filesystem.split_path(path)[2] or not _GENERATION.fullmatch(generation):
        return UNCONDITIONAL
    return Condition({"ifGenerationMatch": generation}, f"its version is no longer {generation}")


def _state_azure(filesystem: Any, path: str, identity: Identity) -> Condition:
    """Return the ETag, unless the URL chooses a version, which never changes."""
    if filesystem.split_path(path)[2]:
        return UNCONDITIONAL
    from azure.core import MatchConditions  # here, where its file system is in use

    return _match_etag(identity, lambda etag: {"etag": etag, "match_condition": MatchConditions.IfNotModified})


def _match_etag(identity: Identity, options: Callable[[str], Mapping[str, Any]]) -> Condition:
    etag = identity.etag or ""
    return Condition(options(etag), f"its ETag is no longer {etag}") if _STRONG_ETAG.fullmatch(etag) else UNCONDITIONAL


State: TypeAlias = Callable[[Any, str, Identity], Condition]
_STATES: dict[str, State] = {
    "HTTPFileSystem": _state_http,
    "S3FileSystem": _state_s3,
    "GCSFileSystem": _state_gcs,
    "AzureBlobFileSystem": _state_azure,
}
