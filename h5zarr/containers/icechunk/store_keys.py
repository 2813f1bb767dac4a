"""Read keys of Icechunk's store, which is asynchronous."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from h5zarr.zarr_model.hierarchy import Json

_AT_ONCE = 64


async def has_content(store: Any) -> bool:
    """Return whether a snapshot has anything besides an empty root group."""
    root = await _get(store, "zarr.json")
    if root is not None and json.loads(root).get("attributes"):
        return True
    return any([name != "zarr.json" async for name in store.list_dir("")])


async def read_nodes(store: Any, hidden: str = "") -> dict[str, Json]:
    """Return the metadata of all nodes, by path, groups before their members; without the group `hidden`."""
    root = await _get(store, "zarr.json")
    found = {"/": {"zarr_format": 3, "node_type": "group"} if root is None else json.loads(root)}
    level = ["/"]
    while level:
        inside = []
        for path in level:
            above = path.rstrip("/")
            inside += [f"{above}/{name}" async for name in store.list_dir(above[1:]) if name != "zarr.json"]
        inside = [path for path in inside if path != f"/{hidden}"]
        texts = await get_all(store, [f"{path[1:]}/zarr.json" for path in inside])
        documents = {path: json.loads(text) for path, text in zip(inside, texts, strict=True) if text is not None}
        found |= documents
        level = [path for path, metadata in documents.items() if metadata.get("node_type") == "group"]
    return found


async def get_all(store: Any, keys: Sequence[str]) -> list[bytes | None]:
    """Return the values of keys, requested concurrently."""
    found: list[bytes | None] = []
    for first in range(0, len(keys), _AT_ONCE):
        found += await asyncio.gather(*(_get(store, key) for key in keys[first : first + _AT_ONCE]))
    return found


async def _get(store: Any, key: str) -> bytes | None:
    from zarr.core.buffer import default_buffer_prototype

    found = await store.get(key, default_buffer_prototype())
    return None if found is None else bytes(found.to_bytes())
