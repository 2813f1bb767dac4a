"""Reference JSON read into `References`, whether h5zarr, kerchunk or VirtualiZarr wrote it, with Zarr v2 or v3.

Version 0 of the format is an object of entries. Version 1 has them in `refs` and may have templates for URLs. Templates
that contain code are refused, and so are generators: https://fsspec.github.io/kerchunk/spec.html.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from h5zarr.containers.compression import decompress
from h5zarr.containers.json.json_recognition import is_object
from h5zarr.containers.json.json_writing import OWN_BEGINNING
from h5zarr.containers.json.own_lines import decode_own_lines
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.references import Document, References, assemble, naming_errors
from h5zarr.errors import SURPRISES, H5ZarrError, MalformedFile, Unsupported
from h5zarr.limits import USUAL, Limits
from h5zarr.signatures import HEAD_NBYTES, is_zarr_metadata, wrong_format
from h5zarr.zarr_model.hierarchy import Json

_PLACE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_SINGLE = re.compile(r"\{(\w+)\}")
_CODE = re.compile(r"\{[{%#]")
_OURS = "h5zarr"


class NotExpanded(Unsupported):
    """The references must be computed before they can be read."""

    remedy = "Expand them first: open the file with fsspec's reference file system and save its references."


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
        raise MalformedFile(f"it is not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise MalformedFile("it is not a JSON object")
    if "version" not in document:
        return Document(entries=document)
    if document["version"] != 1:
        raise Unsupported(f"it has version {document['version']!r} of the reference format, which is not known")
    if document.get("gen"):
        raise NotExpanded("it has generators of references (gen)")
    entries = document.get("refs")
    if not isinstance(entries, dict):
        raise MalformedFile("it has no object of references (refs)")
    _fill_in(entries, document.get("templates"))
    ours = document.get(_OURS)
    return Document(entries=entries, provenance=None if ours is None else Provenance.from_json(ours))


def _fill_in(entries: dict[str, Json], templates: Json) -> None:
    """Replace template names in URLs. Without templates, braces in URLs are literal."""
    if not templates:
        return
    if not isinstance(templates, dict) or not all(isinstance(text, str) for text in templates.values()):
        raise MalformedFile("templates is not an object that maps names to texts")
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
    """Return `url` with template names replaced by their texts."""
    rest = _PLACE.sub("\0", url)
    if _CODE.search(rest) or "{\0" in rest or "\0}" in rest:
        raise NotExpanded(f"{key}: the URL contains code")
    if rest != url and any(name in templates for name in _SINGLE.findall(rest)):
        raise NotExpanded(f"{key}: the URL has a template name in single braces, which readers interpret differently")
    unknown = [name for name in _PLACE.findall(url) if name not in templates]
    if unknown:
        raise MalformedFile(f'{key}: there is no template "{unknown[0]}"')
    return _PLACE.sub(lambda place: templates[place[1]], url)


def decompress_json(content: bytes, name: str, limits: Limits = USUAL) -> bytes:
    """Return JSON, perhaps from gzip or zstd. Raises WrongFormat with `name` if it is something else."""
    found = decompress(content, name, limits)
    is_own = found.startswith(OWN_BEGINNING)
    if not is_own and (not is_object(found) or is_zarr_metadata(found[:HEAD_NBYTES])):
        raise wrong_format(content, "references").naming(name)
    return found


def decode_references(content: bytes, name: str, limits: Limits = USUAL) -> References:
    """Return the references in a reference JSON, given its bytes, perhaps compressed by gzip or zstd.

    `name` is for errors, and must be safe to show. Objects that cannot be decoded are among the problems of the
    hierarchy; raises an H5ZarrError if nothing can be trusted.
    """
    content = decompress_json(content, name, limits)
    with naming_errors(name):
        try:
            if (document := decode_own_document(content)) is not None:
                return assemble(document)
        except (H5ZarrError, *SURPRISES):
            pass  # not as h5zarr writes it; the general parser reports it better
        return assemble(decode_document(content))
