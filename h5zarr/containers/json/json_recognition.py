"""Tell reference JSON from other files, by its first bytes or all of them.

Every output asks this about its target, so the module imports little.
"""

from __future__ import annotations

import json

from h5zarr.containers.compression import GZIP, ZSTD, decompress, peek
from h5zarr.containers.json.json_writing import OWN_BEGINNING
from h5zarr.errors import H5ZarrError

_METADATA = frozenset((".zgroup", ".zarray", ".zmetadata", "zarr.json"))
_BOM = b"\xef\xbb\xbf"  # some tools write it before UTF-8


def is_references(content: bytes) -> bool:
    """Return whether a file with these first bytes may be a reference JSON: an object, or something compressed."""
    return content.startswith((GZIP, ZSTD)) or is_object(content)


def is_object(content: bytes) -> bool:
    """Return whether text with these first bytes may be a JSON object."""
    return content[:64].removeprefix(_BOM).lstrip(b" \t\r\n").startswith(b"{")


def is_own_references(content: bytes) -> bool:
    """Return whether a file with these first bytes is a reference JSON that h5zarr wrote, perhaps compressed."""
    return peek(content, len(OWN_BEGINNING)) == OWN_BEGINNING


def holds_references(content: bytes) -> bool:
    """Return whether a JSON file, perhaps compressed, is references: an object of entries with metadata of Zarr."""
    try:
        document = json.loads(decompress(content, ""))
    except (H5ZarrError, ValueError, RecursionError):
        return False
    entries = document.get("refs") if isinstance(document, dict) and "version" in document else document
    return isinstance(entries, dict) and any(key.rpartition("/")[2] in _METADATA for key in entries)
