"""A variable of a file with the dimensions that it has in the cube.

Files may have their dimensions in another order, lack the joined one, or have shorter text. See
`commands/combine/alignment.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from h5zarr.commands.verify.differences import Difference, Values
from h5zarr.commands.verify.verified_arrays import TrueVariable
from h5zarr.zarr_model.codecs import byte_order
from h5zarr.zarr_model.data_types import decode_data_type
from h5zarr.zarr_model.hierarchy import ArrayNode

Sources = tuple[int | None, ...]
"""For each dimension of the cube, the number of the dimension in the file; None if the file lacks it."""


def align_variable(variable: TrueVariable, node: ArrayNode, lengths: Mapping[int, int]) -> TrueVariable:
    """Return a variable with the dimensions of the cube's array.

    `lengths` has the lengths of the joined dimensions in the file, by dimension of the array.
    """
    if len(variable.own_shape) != len(variable.shape) or not variable.shape:
        return variable
    is_text = decode_data_type(node.data_type, byte_order(node.codecs)) == np.dtype("S1")
    sources = _find_sources(variable, node, lengths, is_text=is_text)
    text_length = node.shape[-1] if is_text and len(node.shape) - 1 not in lengths else None
    if sources is None and (text_length is None or variable.shape[-1] >= text_length):
        return variable
    return AlignedVariable(variable, sources or _trailing(variable, node), lengths, text_length)


def _trailing(variable: TrueVariable, node: ArrayNode) -> Sources:
    new = len(node.shape) - len(variable.shape)
    return (*[None] * new, *range(len(variable.shape)))


def _find_sources(
    variable: TrueVariable, node: ArrayNode, lengths: Mapping[int, int], *, is_text: bool
) -> Sources | None:
    """Return the dimensions by their names; None if they are as in the cube, or have no names."""
    names = node.dimension_names[:-1] if is_text else node.dimension_names
    count = len(variable.shape) - is_text
    new = len(names) - count
    if new < 0 or all(variable.is_named(axis, names[new + axis]) for axis in range(count)):
        return None
    found: list[int | None] = []
    for number, name in enumerate(names):
        axes = [axis for axis in range(count) if variable.is_named(axis, name)]
        if len(axes) > 1 or (not axes and number not in lengths):
            return None
        found.append(axes[0] if axes else None)
    if sorted(axis for axis in found if axis is not None) != list(range(count)):
        return None
    return (*found, count) if is_text else tuple(found)


class AlignedVariable:
    """A variable whose dimensions are permuted, repeated or padded."""

    is_empty = False

    def __init__(
        self, variable: TrueVariable, sources: Sources, lengths: Mapping[int, int], text_length: int | None
    ) -> None:
        self._variable, self._sources = variable, sources
        shape = [
            lengths.get(number, 1) if axis is None else variable.shape[axis] for number, axis in enumerate(sources)
        ]
        if text_length is not None:
            shape[-1] = max(shape[-1], text_length)
        self.shape = self.own_shape = tuple(shape)
        self.grows = tuple(axis is not None and variable.grows[axis] for axis in sources)

    @property
    def fill(self) -> Values | None:
        return self._variable.fill

    def read(self, region: tuple[slice, ...]) -> Values:
        """Return a part of the variable."""
        there = {axis: one for axis, one in zip(self._sources, region, strict=True) if axis is not None}
        extents = self._variable.shape
        own = tuple(
            slice(min(there[axis].start, extents[axis]), min(there[axis].stop, extents[axis])) for axis in sorted(there)
        )
        order = [axis for axis in self._sources if axis is not None]
        values = self._variable.read(own).transpose(order)
        for number, axis in enumerate(self._sources):
            if axis is None:
                values = np.expand_dims(values, number)
        shape = tuple(one.stop - one.start for one in region)
        if values.dtype.kind == "S" and values.shape[-1] < shape[-1]:
            missing = [(0, 0)] * (values.ndim - 1) + [(0, shape[-1] - values.shape[-1])]
            values = np.pad(values, missing, constant_values=b"")
        return np.broadcast_to(values, shape)

    def differs(self, found: Values, expected: Values) -> Difference | None:
        return self._variable.differs(found, expected)

    def is_named(self, axis: int, name: str) -> bool:
        source = self._sources[axis]
        return source is None or self._variable.is_named(source, name)

    def names_of(self, axis: int) -> frozenset[str] | None:
        source = self._sources[axis]
        return None if source is None else self._variable.names_of(source)

    def attributes(self) -> Iterator[tuple[str, Any]]:
        return self._variable.attributes()
