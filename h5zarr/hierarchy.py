"""Waist 2: Zarr groups and arrays, and where the chunks are. Writers take it from here.

The terms are those of Zarr version 3; `data_type`, `codecs`, `fill_value` and `attributes` are JSON already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.errors import Problem

Json: TypeAlias = Any

TO_THE_END = -1
"""The number of bytes of a chunk that is a file as a whole, whose size nobody has asked for."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Manifest:
    """Where the chunks of an array are: one row for each that is referred to, in row-major order of the grid.

    Chunk `index[i]` is `nbytes[i]` bytes at `address[i]` of the URL whose number is `source` (one for all rows, or one
    for each). `inline` has the bytes of chunks that the references carry themselves. A chunk in neither reads as fill.

    h5zarr itself always knows `nbytes`. References that others wrote may refer to a whole file: then `address` is 0 and
    `nbytes` is `TO_THE_END`.
    """

    index: npt.NDArray[np.int64]
    address: npt.NDArray[np.int64]
    nbytes: npt.NDArray[np.int64]
    source: int | npt.NDArray[np.int32] = 0
    inline: Mapping[tuple[int, ...], bytes] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of chunks that are referred to."""
        return len(self.address)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArrayNode:
    shape: tuple[int, ...]
    data_type: Json
    chunk_shape: tuple[int, ...]
    codecs: tuple[Json, ...]
    fill_value: Json
    dimension_names: tuple[str, ...]
    attributes: Mapping[str, Json]
    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupNode:
    attributes: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hierarchy:
    """Nodes by path, parents before children; the root is "/". Manifests mean `urls` by number.

    `problems` name what is left out, `warnings` what is there but not all that it was.
    """

    nodes: Mapping[str, GroupNode | ArrayNode]
    urls: tuple[str, ...]
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
