"""How Icechunk lays out the references of large arrays: in several manifests, for which it need not compress each URL.

By default all references of an array are one manifest. It is made in one piece, so memory grows with the array, and a
reader loads all of it to read one chunk. Icechunk 2 besides compresses the location of each chunk by itself where there
are many in a manifest, which takes it longer than all the rest, and gains little: manifests are compressed as a whole.
"""

from __future__ import annotations

import re
from math import prod
from typing import Any

from h5zarr.hierarchy import ArrayNode, Hierarchy
from h5zarr.icechunk.blocks import block_shape

_MANIFEST = 60_000
_MOST_MANIFESTS = 16  # Icechunk looks at all chunks of the array once for each of them
_LARGEST_PLAIN = 65_535  # the most that Icechunk takes for the size up to which locations are left as they are


def lay_out(config: Any, hierarchy: Hierarchy) -> bool:
    """Have a configuration of Icechunk lay out the large arrays of `hierarchy`, and return whether there are any.

    What somebody has configured is left as it is.
    """
    import icechunk

    sizes = {
        path: split for path, node in hierarchy.nodes.items() if isinstance(node, ArrayNode) and (split := _split(node))
    }
    manifest = config.manifest or icechunk.ManifestConfig()
    if not sizes or manifest.splitting is not None:
        return False
    axis = icechunk.ManifestSplitDimCondition.Axis
    conditions = {
        icechunk.ManifestSplitCondition.path_matches(f"^{re.escape(path)}$"): {
            axis(at): size for at, size in split.items()
        }
        for path, split in sizes.items()
    }
    manifest.splitting = icechunk.ManifestSplittingConfig.from_dict(conditions)
    compression = getattr(icechunk, "ManifestVirtualChunkLocationCompressionConfig", None)
    if compression is not None and manifest.virtual_chunk_location_compression is None:
        manifest.virtual_chunk_location_compression = compression(min_num_chunks=_LARGEST_PLAIN)
    config.manifest = manifest
    return True


def _split(node: ArrayNode) -> dict[int, int]:
    """Return how many chunks of each axis stand in one manifest, for the axes that are divided."""
    if node.manifest.count <= _MANIFEST:
        return {}
    grid = [-(-length // chunk) for length, chunk in zip(node.shape, node.chunk_shape, strict=True)]
    shape = block_shape(grid, max(_MANIFEST, -(-prod(grid) // _MOST_MANIFESTS)))
    return {axis: size for axis, size in enumerate(shape) if size < grid[axis]}
