"""Cut a range out of an array along one axis, by its chunks. Pure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, Manifest


def slice_array(node: ArrayNode, axis: int, start: int, length: int) -> tuple[ArrayNode, int]:
    """Return the chunks with `length` elements from `start` on, and how many elements they have before `start`."""
    chunk = node.chunk_shape[axis]
    first, skipped = divmod(start, chunk)
    count = -(-(skipped + length) // chunk)
    manifest = node.manifest
    kept = (manifest.index[:, axis] >= first) & (manifest.index[:, axis] < first + count)
    index = manifest.index[kept].copy()
    index[:, axis] -= first
    source = manifest.source if isinstance(manifest.source, int) else manifest.source[kept]
    shape = list(node.shape)
    shape[axis] = skipped + length
    return (
        replace(
            node,
            grid=RegularGrid(tuple(shape), node.chunk_shape),
            manifest=Manifest(
                index=index,
                address=manifest.address[kept],
                nbytes=np.asarray(manifest.nbytes)[kept],
                source=source,
                inline={
                    (*key[:axis], key[axis] - first, *key[axis + 1 :]): content
                    for key, content in manifest.inline.items()
                    if first <= key[axis] < first + count
                },
            ),
        ),
        skipped,
    )
