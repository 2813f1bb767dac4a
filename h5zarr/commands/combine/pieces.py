"""The files to join. Each is opened once, and only the values that joining needs are read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.commands.combine.stored_arrays import Variables, find_variables
from h5zarr.commands.combine.used_elements import UsedElements
from h5zarr.commands.translate.options import Options
from h5zarr.commands.translate.selecting import Selection
from h5zarr.commands.translate.translation import Translation
from h5zarr.containers.source_state import SourceState
from h5zarr.errors import Truncated, Unsupported
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.opening import Opened, open_hierarchy, open_translation
from h5zarr.read.decoding import find_decoder
from h5zarr.read.read_arrays import ArrayValues
from h5zarr.zarr_model.calendars import bounds_of
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Hierarchy

# A dataset without chunks stays one chunk: joining decides how to cut it.
UNCUT = 2**62


@dataclass(frozen=True, slots=False, eq=False)
class CubePiece:
    """One source: a file or references. `name` is safe to show. `left` are files that a cube no longer has."""

    name: str
    opened: Opened = field(repr=False)
    left: frozenset[str] = frozenset()

    @property
    def hierarchy(self) -> Hierarchy:
        return self.opened.hierarchy

    @cached_property
    def variables(self) -> Variables:
        """The variables, and the arrays of each."""
        return find_variables(self.hierarchy, self.values)

    @cached_property
    def arrays(self) -> Mapping[str, ArrayNode]:
        """The variables that are one array, by path."""
        found = {path: self.hierarchy.nodes.get(path) for path in self.variables.stored}
        return {path: node for path, node in found.items() if isinstance(node, ArrayNode)}

    @cached_property
    def groups(self) -> Mapping[str, GroupNode]:
        """The groups by path."""
        found = {path: self.hierarchy.nodes.get(path) for path in self.variables.paths}
        return {path: node for path, node in found.items() if isinstance(node, GroupNode)}

    @cached_property
    def bounds_owners(self) -> Mapping[str, ArrayNode]:
        """The variables that have bounds, by the path of the bounds."""
        named = [(path.rpartition("/")[0], bounds_of(node.attributes), node) for path, node in self.arrays.items()]
        return {f"{folder}/{name}": node for folder, name, node in reversed(named) if name is not None}

    @cached_property
    def used(self) -> UsedElements | None:
        """Which elements of a cube its files have; None for anything but a cube."""
        return None if self.opened.cube is None else UsedElements(self.opened.cube)

    @property
    def file_count(self) -> int:
        """The number of files that this piece consists of."""
        return 1 if self.opened.cube is None else len(self.opened.cube.pieces)

    @cached_property
    def _inlined(self) -> dict[str, npt.NDArray[Any]]:
        return {}

    @cached_property
    def _opened_arrays(self) -> dict[str, ArrayValues]:
        return {}

    def values(self, path: str, key: tuple[slice | npt.NDArray[np.int64], ...] | None = None) -> npt.NDArray[Any]:
        """Return values of an array, as stored: those that `key` selects, or all.

        Raises Unsupported if h5zarr cannot decode them itself.
        """
        node = self.hierarchy.nodes[path]
        assert isinstance(node, ArrayNode)
        everything = (slice(None),) * len(node.shape)
        if not node.manifest.count and path not in self._inlined:
            self._inlined[path] = self._open(path, node)[everything]  # each range of a cube asks for it
        if path in self._inlined:
            whole = self._inlined[path]
            return whole[key] if key else whole  # () would take text out of its array
        return self._open(path, node)[key or everything]

    def _open(self, path: str, node: ArrayNode) -> ArrayValues:
        if path in self._opened_arrays:
            return self._opened_arrays[path]
        decoder = find_decoder(node, self.opened.sources.access.limits)
        if decoder is None:
            raise Unsupported(
                f"{self.name}: joining {path} needs its values, and h5zarr does not know one of its codecs"
            )
        return self._opened_arrays.setdefault(path, ArrayValues(path, node, decoder, self.opened.sources))

    def known_states(self) -> list[SourceState | None]:
        """Return the recorded state of each URL that the references of this piece name; None if it is unknown."""
        urls, expected = self.hierarchy.urls, self.opened.sources.expected
        found = dict(zip(range(len(urls)), expected, strict=False))
        return [
            None if (identity := found.get(number)) is None else SourceState(url, identity)
            for number, url in enumerate(urls)
        ]

    @property
    def cube_axes(self) -> list[str]:
        """The paths of the axes along which this piece was joined before, if it is a cube."""
        return [] if self.opened.cube is None else [path for path in self.opened.cube.axes if self.length_of(path)]

    def length_of(self, axis: str) -> int:
        """Return the length of an axis, which has the path of its group and its name; 0 if no variable has it."""
        folder, _, name = axis.rpartition("/")
        for path, node in self.arrays.items():
            if name in node.dimension_names and path.startswith(f"{folder}/"):
                return node.shape[node.dimension_names.index(name)]
        return 0

    def states(self) -> list[SourceState]:
        """Return the recorded states of all files whose state is known."""
        return [state for state in self.known_states() if state is not None]


def open_piece(url: str | os.PathLike[str], access: Access, options: Options) -> CubePiece:
    """Open a file or references. Only metadata and small arrays are read."""
    opened = open_hierarchy(url, access, options=options)
    is_selected = opened.sources.references is None  # the selection is part of scanning a file
    return _make_piece(str(Location.parse(url)), opened, Selection() if is_selected else options.selection)


def translated_piece(translation: Translation, access: Access, options: Options) -> CubePiece:
    """Return a file that was translated in this process."""
    return _make_piece(translation.source, open_translation(translation, access), options.selection)


def _make_piece(name: str, opened: Opened, selection: Selection) -> CubePiece:
    """Return the selected part of opened references.

    Raises Truncated for a file of which the end is missing: its dimensions and arrays may be incomplete.
    """
    hierarchy = selection.apply_to_references(opened.hierarchy)
    for problem in hierarchy.problems:
        if problem.kind == Truncated.kind:
            raise Truncated(f"{name}: {problem.message}", remedy=problem.remedy)
    return CubePiece(name, replace(opened, hierarchy=hierarchy))


def names_of(pieces: Sequence[CubePiece], limit: int = 3) -> str:
    """Return the names of some pieces for a message: the first few, and how many more there are."""
    shown = ", ".join(piece.name for piece in pieces[:limit])
    return shown if len(pieces) <= limit else f"{shown} and {len(pieces) - limit} more"
