"""Write reference JSON: metadata as text, and each chunk as its bytes or their location.

The output is ASCII with one entry per line. It has neither templates, which take readers minutes to expand, nor
generators, which readers ignore. Braces in names and URLs therefore have no special meaning.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring_ascii

from h5zarr.containers.container import Fitted
from h5zarr.containers.json.chunk_text import encode_chunk_entries
from h5zarr.containers.output import Sink, dump
from h5zarr.containers.provenance import Provenance
from h5zarr.zarr_model.chunk_keys import KeyLayout
from h5zarr.zarr_model.hierarchy import ArrayNode, ChunkLocations

_BLOCK_NBYTES = 1 << 19  # less than a slab of references, so that slabs are written without joining
OWN_BEGINNING = b'{"version":1,\n"h5zarr":{'
_AT_A_TIME = 64


def escape(text: str) -> bytes:
    """Return `text` escaped for a JSON string, without the quotes."""
    return encode_basestring_ascii(text)[1:-1].encode()


def write_json(fitted: Fitted, provenance: Provenance, out: Sink) -> None:
    """Write the fitted references to `out` as reference JSON. The same input gives the same bytes.

    Consolidated metadata come first, then the metadata of each node followed by its chunks, in the hierarchy's order.
    """
    entries = _entries_v3(fitted) if fitted.zarr_format == 3 else _entries_v2(fitted)
    _write_entries(provenance, entries, out)


def _write_entries(provenance: Provenance, entries: Iterable[bytes], out: Sink) -> None:
    """Write entries in blocks of half a megabyte or more. Each block starts with a comma and a newline."""
    head = OWN_BEGINNING + f'{dump(provenance.to_json())[1:]},\n"refs":{{'.encode()
    blocks = _gather(entries)
    out.write(head + next(blocks, b"").removeprefix(b","))
    for block in blocks:
        out.write(block)
    out.write(b"\n}}\n")


def text_entry(key: str, *parts: bytes) -> bytes:
    """Return an entry whose value is text, given in escaped parts."""
    return b"".join((b',\n"', escape(key), b'":"', *parts, b'"'))


def chunk_entries(key_parts: Sequence[str], manifest: ChunkLocations, urls: Sequence[str]) -> Iterator[bytes]:
    """Yield the entries of an array's chunks: first the referenced, then the inlined ones, each in row-major order. A
    chunk's key is its coordinates with `key_parts` before, between and after them.
    """
    yield from encode_chunk_entries(key_parts, manifest, urls)
    yield from _inline_entries(key_parts, manifest.inline)


def _inline_entries(key_parts: Sequence[str], inline: Mapping[tuple[int, ...], bytes]) -> Iterator[bytes]:
    parts = [encode_basestring_ascii(part)[1:-1].replace("%", "%%") for part in key_parts]
    # Base64 even for plain text: a chunk may happen to begin with the base64 prefix.
    entry = f',\n"{"%d".join(parts)}":"base64:%s"'
    encode = lru_cache(maxsize=1)(_base64)  # the missing chunks of a truncated file are all the same
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


def _entries_v3(fitted: Fitted) -> Iterator[bytes]:
    """Yield all entries. The root repeats the metadata of all nodes: otherwise readers show nested groups as empty."""
    texts = {path: escape(dump(node.documents["zarr.json"])) for path, node in fitted.nodes.items()}
    for path, node in fitted.nodes.items():
        if path == "/":
            yield text_entry("zarr.json", *_consolidate_v3(texts))
        else:
            yield text_entry(f"{path[1:]}/zarr.json", texts[path])
        if node.manifest is not None:
            parts = KeyLayout(path, "c", "/", _rank(fitted, path)).parts
            for slab in node.manifest.slabs():
                yield from chunk_entries(parts, slab, fitted.hierarchy.urls)


def _consolidate_v3(texts: dict[str, bytes]) -> Iterator[bytes]:
    """Yield the escaped text of the root's metadata, in parts, including the metadata of all other nodes."""
    yield texts["/"].removesuffix(b"}")
    yield escape(',"consolidated_metadata":{"kind":"inline","must_understand":false,"metadata":{')
    separator = ""
    for path, text in texts.items():
        if path != "/":
            yield escape(f"{separator}{dump(path[1:])}:") + text
            separator = ","
    yield b"}}}"


def _entries_v2(fitted: Fitted) -> Iterator[bytes]:
    """Yield all entries; `.zmetadata` repeats the metadata of all nodes."""
    texts = {
        path: {f"{path}/{name}".lstrip("/"): escape(dump(document)) for name, document in node.documents.items()}
        for path, node in fitted.nodes.items()
    }
    yield text_entry(".zmetadata", *_consolidate_v2(text for each in texts.values() for text in each.items()))
    for path, node in fitted.nodes.items():
        for key, text in texts[path].items():
            yield text_entry(key, text)
        if node.manifest is not None:
            parts = KeyLayout(path, "", ".", _rank(fitted, path)).parts
            for slab in node.manifest.slabs():
                yield from chunk_entries(parts, slab, fitted.hierarchy.urls)


def _consolidate_v2(texts: Iterator[tuple[str, bytes]]) -> Iterator[bytes]:
    """Yield the escaped text of .zmetadata, in parts."""
    yield escape('{"zarr_consolidated_format":1,"metadata":{')
    separator = ""
    for key, text in texts:
        yield escape(f"{separator}{dump(key)}:") + text
        separator = ","
    yield b"}}"


def _rank(fitted: Fitted, path: str) -> int:
    node = fitted.hierarchy.nodes[path]
    return len(node.shape) if isinstance(node, ArrayNode) else 0
