"""References as readers open them: through fsspec's reference file system, with zarr."""

from __future__ import annotations

import io
import json
from typing import Any

import zarr

from h5zarr.refs.json_v2 import write_nodes_v2
from h5zarr.refs.json_v3 import write_json_v3
from h5zarr.translating import Translation
from tests.refs.hierarchies import open_store


def written(translation: Translation) -> bytes:
    """Return the references as they would stand in a file."""
    out = io.BytesIO()
    if translation.nodes_v2 is not None:
        write_nodes_v2(translation.nodes_v2, translation.hierarchy.urls, translation.provenance, out)
    else:
        write_json_v3(translation.hierarchy, translation.provenance, out)
    return out.getvalue()


def open_group(translation: Translation) -> zarr.Group:
    """Return the root group of the references."""
    version = 3 if translation.nodes_v2 is None else 2
    return zarr.open_group(open_store(written(translation)), mode="r", zarr_format=version)


def referenced(references: bytes) -> dict[str, Any]:
    """Return the entries of references by their keys."""
    entries: dict[str, Any] = json.loads(references)["refs"]
    return entries
