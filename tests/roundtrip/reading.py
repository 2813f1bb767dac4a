"""Open references as readers do: with zarr, through fsspec's reference file system."""

from __future__ import annotations

import io
import json
from typing import Any

import zarr

from h5zarr.commands.translate.translation import Translation
from h5zarr.containers.json.json_writing import write_json
from tests.containers.hierarchies import open_store


def written(translation: Translation) -> bytes:
    """Return the references as they would be written to a file."""
    out = io.BytesIO()
    write_json(translation.fitted, translation.provenance, out)
    return out.getvalue()


def open_group(translation: Translation) -> zarr.Group:
    """Return the root group of the references."""
    return zarr.open_group(open_store(written(translation)), mode="r", zarr_format=translation.fitted.zarr_format)


def referenced(references: bytes) -> dict[str, Any]:
    """Return the entries of references by their keys."""
    entries: dict[str, Any] = json.loads(references)["refs"]
    return entries
