"""The files to join. Each is opened once, and only the values that joining needs are read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy.typing as npt

from h5zarr.commands.translate.options import Options
from h5zarr.commands.translate.selecting import Selection
from h5zarr.commands.translate.translation import Translation
from h5zarr.containers.provenance import SourceState
from h5zarr.errors import NotJoinable, Truncated, Unsupported
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.opening import Opened, open_hierarchy, open_translation
from h5zarr.read.decoding import find_decoder
from h5zarr.read.read_arrays import ArrayValues
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Hierarchy

# A dataset without chunks stays one chunk: joining decides how to cut it.
UNCUT = 2**62


@dataclass(frozen=True, slots=False, eq=False)
class CubePiece:
    """One source: a file or references. `name` is safe to show."""

    name: str
    opened: Opened = field(repr=False)

    @property
    def hierarchy(self) -> Hierarchy:
        return self.opened.hierarchy

    @cached_property
    def arrays(self) -> Mapping[str, ArrayNode]:
        """The arrays by path."""
        return {path: node for path, node in self.hierarchy.nodes.items() if isinstance(node, ArrayNode)}

    @cached_property
    def groups(self) -> Mapping[str, GroupNode]:
        """The groups by path."""
        return {path: node for path, node in self.hierarchy.nodes.items() if isinstance(node, GroupNode)}

    def values(self, path: str) -> npt.NDArray[Any]:
        """Return all values of an array, as stored. Raises Unsupported if h5zarr cannot decode them itself."""
        node = self.arrays[path]
        decoder = find_decoder(node, self.opened.sources.access.limits)
        if decoder is None:
            raise Unsupported(
                f"{self.name}: joining {path} needs its values, and h5zarr does not know one of its codecs"
            )
        return ArrayValues(path, node, decoder, self.opened.sources)[(slice(None),) * len(node.shape)]

    def states(self) -> list[SourceState]:
        """Return the recorded state of each file that the references of this piece name."""
        urls, expected = self.hierarchy.urls, self.opened.sources.expected
        return [
            SourceState(url, identity) for url, identity in zip(urls, expected, strict=False) if identity is not None
        ]


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

    Raises NotJoinable for a cube that one array cannot hold, and Truncated for a file of which the end is missing: its
    dimensions and arrays may be incomplete.
    """
    hierarchy = selection.apply_to_references(opened.hierarchy)
    for problem in hierarchy.problems:
        if problem.kind == Truncated.kind:
            raise Truncated(f"{name}: {problem.message}", remedy=problem.remedy)
    for path, node in hierarchy.nodes.items():
        record = node.record if isinstance(node, GroupNode) else None
        if record is None:
            continue
        packed = [name for name, variable in record.variables.items() if variable.parameters]
        for variable in (*record.joined, *packed):
            what = f"{name}: {path.rstrip('/')}/{variable} was joined from files that are stored differently"
            raise NotJoinable(what, remedy="Join the files of this cube, together with the others.")
    return CubePiece(name, replace(opened, hierarchy=hierarchy))


def names_of(pieces: Sequence[CubePiece], limit: int = 3) -> str:
    """Return the names of some pieces for a message: the first few, and how many more there are."""
    shown = ", ".join(piece.name for piece in pieces[:limit])
    return shown if len(pieces) <= limit else f"{shown} and {len(pieces) - limit} more"
