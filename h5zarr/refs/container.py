"""The reference JSON: a container of keys, each with a text, the bytes of a chunk, or where those are.

Everything is ASCII and one entry stands on a line. There are neither templates, which take readers minutes, nor
generators, which readers ignore; so braces in names and URLs mean nothing to any reader.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Protocol

from h5zarr.hierarchy import Json, Manifest
from h5zarr.refs.chunk_text import encode_chunk_entries
from h5zarr.refs.provenance import Provenance

_BLOCK_NBYTES = 1 << 19  # less than a slab of references takes, so that those are written as they are
OWN_BEGINNING = b'{"version":1,\n"h5zarr":{'
_AT_A_TIME = 64
_COMPACT = json.JSONEncoder(separators=(",", ":"))


class Sink(Protocol):
    """What is written to: a binary file, or anything else that takes bytes."""

    def write(self, data: bytes, /) -> object: ...


def dump(value: Json) -> str:
    """Return `value` as compact JSON, in the order of its keys. NaN and infinities are Python's words for them."""
    return _COMPACT.encode(value)


def escape(text: str) -> bytes:
    """Return `text` as it stands inside the quotes of a JSON string."""
    return encode_basestring_ascii(text)[1:-1].encode()


def write_container(provenance: Provenance, entries: Iterable[bytes], out: Sink) -> None:
    """Write a container of `entries`, each of which is one or more whole entries that begin with a comma and a newline.

    They are written as they come, in blocks of half a megabyte or more.
    """
    head = OWN_BEGINNING + f'{dump(provenance.to_json())[1:]},\n"refs":{{'.encode()
    blocks = _gather(entries)
    out.write(head + next(blocks, b"").removeprefix(b","))
    for block in blocks:
        out.write(block)
    out.write(b"\n}}\n")


def text_entry(key: str, *parts: bytes) -> bytes:
    """Return an entry whose value is text, given in escaped parts."""
    return b"".join((b',\n"', escape(key), b'":"', *parts, b'"'))


def chunk_entries(key_parts: Sequence[str], manifest: Manifest, urls: Sequence[str]) -> Iterator[bytes]:
    """Yield the entries of an array's chunks: first those that are referred to, then those that are inline, each in
    row-major order. A chunk's key is its coordinates with `key_parts` before, between and behind them.
    """
    yield from encode_chunk_entries(key_parts, manifest, urls)
    yield from _inline_entries(key_parts, manifest.inline)


def _inline_entries(key_parts: Sequence[str], inline: Mapping[tuple[int, ...], bytes]) -> Iterator[bytes]:
    parts = [encode_basestring_ascii(part)[1:-1].replace("%", "%%") for part in key_parts]
    # Base64 even for plain text: a chunk may happen to begin with the word that announces base64.
    entry = f',\n"{"%d".join(parts)}":"base64:%s"'
    encode = lru_cache(maxsize=1)(_base64)  # all that a truncated file lacks is the same
    order = sorted(inline)
    for first in range(0, len(order), _AT_A_TIME):
        some = order[first : first + _AT_A_TIME]
        yield "".join([entry % (*index, encode(inline[index])) for index in some]).encode()


def _base64(content: bytes) -> str:
    return b64encode(content).decode()


def _gather(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield `blocks` joined to half a megabyte or more: small writes cost more than small joins."""
    waiting: list[bytes] = []
    nbytes = 0
    for block in blocks:
        waiting.append(block)
        nbytes += len(block)
        if nbytes >= _BLOCK_NBYTES:
            yield b"".join(waiting)
            waiting.clear()
            nbytes = 0
    if waiting:
        yield b"".join(waiting)
