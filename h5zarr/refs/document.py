"""The JSON document of a reference file: its entries, with URLs made whole. Both versions of the format are read.

Version 0 is an object of entries; version 1 has them in `refs`, and may have templates for URLs. Templates that are
code, and generators of entries, are refused: https://fsspec.github.io/kerchunk/spec.html.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from h5zarr.errors import MalformedFile, Unsupported
from h5zarr.hierarchy import Json
from h5zarr.refs.chunk_entries import Run
from h5zarr.refs.own_lines import decode_own_lines
from h5zarr.refs.provenance import Provenance

_PLACE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_SINGLE = re.compile(r"\{(\w+)\}")
_CODE = re.compile(r"\{[{%#]")
_OURS = "h5zarr"


class NotExpanded(Unsupported):
    """The references must be computed before they can be read."""

    remedy = "Expand them first: open the file with fsspec's reference file system and save its references."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Document:
    """Entries by key, those that were read in bulk as runs, and what the references were made of, if h5zarr did it."""

    entries: dict[str, Json]
    runs: tuple[Run, ...] = ()
    provenance: Provenance | None = None


def decode_own_document(content: bytes) -> Document | None:
    """Return the document if it is exactly as h5zarr writes it, or None. Most entries are read in bulk."""
    lines = decode_own_lines(content)
    if lines is None:
        return None
    return Document(entries=lines.entries, runs=lines.runs, provenance=Provenance.from_json(lines.provenance))


def decode_document(content: bytes) -> Document:
    """Return any document. Raises MalformedFile, or NotExpanded if it has code in it."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise MalformedFile(f"it is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise MalformedFile("it is no JSON object")
    if "version" not in document:
        return Document(entries=document)
    if document["version"] != 1:
        raise Unsupported(f"it is of version {document['version']!r} of the format for references, which is not known")
    if document.get("gen"):
        raise NotExpanded("it has generators of references (gen)")
    entries = document.get("refs")
    if not isinstance(entries, dict):
        raise MalformedFile("there is no object of references (refs) in it")
    _fill_in(entries, document.get("templates"))
    ours = document.get(_OURS)
    return Document(entries=entries, provenance=None if ours is None else Provenance.from_json(ours))


def _fill_in(entries: dict[str, Json], templates: Json) -> None:
    """Replace the names of templates in URLs. Without templates, braces in URLs mean themselves."""
    if not templates:
        return
    if not isinstance(templates, dict) or not all(isinstance(text, str) for text in templates.values()):
        raise MalformedFile("the templates are no texts by name")
    if code := next((name for name, text in templates.items() if _CODE.search(text)), None):
        raise NotExpanded(f'template "{code}" is code')
    whole: dict[str, str] = {}
    for key, value in entries.items():
        if isinstance(value, list) and value and isinstance(value[0], str) and "{" in value[0]:
            url = value[0]
            if url not in whole:
                whole[url] = _replace(key, url, templates)
            value[0] = whole[url]


def _replace(key: str, url: str, templates: Mapping[str, str]) -> str:
    """Return `url` with the texts of templates in the place of their names."""
    rest = _PLACE.sub("\0", url)
    if _CODE.search(rest) or "{\0" in rest or "\0}" in rest:
        raise NotExpanded(f"{key}: the URL has code in it")
    if rest != url and any(name in templates for name in _SINGLE.findall(rest)):
        raise NotExpanded(
            f"{key}: the URL has a template's name in single braces, which readers understand differently"
        )
    unknown = [name for name in _PLACE.findall(url) if name not in templates]
    if unknown:
        raise MalformedFile(f'{key}: there is no template "{unknown[0]}"')
    return _PLACE.sub(lambda place: templates[place[1]], url)
