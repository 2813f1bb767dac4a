"""The state of a source file when it was read, as references record it."""

from __future__ import annotations

from dataclasses import dataclass

from h5zarr.errors import MalformedFile
from h5zarr.io.location import Location
from h5zarr.io.source import Identity
from h5zarr.zarr_model.hierarchy import Json

_TEXT = (str, type(None))


@dataclass(frozen=True, slots=True)
class SourceState:
    """The state of a file when it was read. `url` may contain secrets, which are removed on writing."""

    url: str
    identity: Identity


def without_secrets(url: str) -> str:
    """Return a URL without parts that look secret."""
    # Most URLs have no part that could be: a cube has many, and taking them apart is slow.
    return Location.parse(url).without_secrets() if "@" in url or "?" in url else url


def encode_source(url: str, identity: Identity | None) -> dict[str, Json]:
    """Return a file and its state, if known, as JSON."""
    shown = without_secrets(url)
    if identity is None:
        return {"url": shown}
    known = {
        "nbytes": identity.nbytes,
        "etag": identity.etag,
        "mtime": identity.mtime,
        "version": identity.version,
    }
    return {"url": shown, **{name: value for name, value in known.items() if value is not None}}


def decode_source(value: Json) -> SourceState:
    """Return a source. Fields of later versions are ignored."""
    if isinstance(value, dict):
        url, nbytes = value.get("url"), value.get("nbytes")
        etag, mtime, version = value.get("etag"), value.get("mtime"), value.get("version")
        is_text = isinstance(etag, _TEXT) and isinstance(mtime, _TEXT) and isinstance(version, _TEXT)
        if isinstance(url, str) and isinstance(nbytes, int) and is_text:  # without a loop: a cube may have many
            return SourceState(url, Identity(nbytes=nbytes, etag=etag, mtime=mtime, version=version))
    raise MalformedFile("the record of a source file does not have h5zarr's form")
