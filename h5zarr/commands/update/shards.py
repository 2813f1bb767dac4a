"""Shards: cubes of some files each, which the workers of an index leave for the cubes that it keeps.

What a cube needs to know of a file is known when the file is read. Workers join the files of a batch there and then,
and write the result to the directory of the index. So a cube of half a million files is not made of half a million
small reads. Shards are removed once the cube has their files.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256

from h5zarr.commands.catalog.place import STATE, Place
from h5zarr.commands.catalog.source_names import is_same
from h5zarr.commands.combine.along import Along
from h5zarr.commands.combine.batches import may_batch, open_cube, share_of
from h5zarr.commands.combine.cube import Cube, join_pieces
from h5zarr.commands.combine.pieces import CubePiece, translated_piece
from h5zarr.commands.combine.recipe import Recipe
from h5zarr.commands.translate.translation import Translation
from h5zarr.commands.update.archive import ArchiveFile, name_test
from h5zarr.commands.update.standing import stand
from h5zarr.containers.container import Output
from h5zarr.containers.fitting import fit_into
from h5zarr.containers.registry import container_for_output
from h5zarr.errors import H5ZarrError, NotJoinable
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.io.source import Identity

FOLDER = f"{STATE}/shards"
_SMALL, _LARGE = ".json", ".parquet"
_FEWEST = 8  # files; the references of fewer are read again, which is cheap
_TOGETHER = 32  # small shards that become a large one
_EXPECTED = 20_000  # files: a shard may inline its share of what a cube of so many files may
_OPTIONS = ("files", "along", "on_duplicate", "constant", "attributes", "group", "include", "exclude")


@dataclass(frozen=True, slots=True)
class Shard:
    """A cube of some files as a piece, and the names of these files."""

    piece: CubePiece
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShardStore:
    """The shards for cubes of one recipe, in the directory of an index."""

    place: Place
    recipe: Recipe
    access: Access

    @property
    def is_possible(self) -> bool:
        """Whether files can be joined before all of them are known."""
        return bool(self.recipe.along) and may_batch(self.recipe.choices)

    @property
    def folder(self) -> str:
        """The directory of these shards: the same for all cubes that are made in this way."""
        return f"{FOLDER}/{_digest(self.recipe)}"

    def is_for(self, recipe: Recipe) -> bool:
        """Return whether a cube is made in this way."""
        return _digest(recipe) == _digest(self.recipe)

    def add(self, files: Sequence[Translation], *, keep_few: bool = False) -> None:
        """Join files that were just read, and keep the result; a few only if asked to.

        Files that do not fit together are left to the cube, which says why.
        """
        is_wanted = name_test(self.recipe.files)
        wanted = [one for one in files if is_wanted(one.hierarchy.urls[0])]
        if not wanted or (len(wanted) < _FEWEST and not keep_few):
            return
        options = self.recipe.options
        pieces = [translated_piece(one, self.access, options) for one in wanted]
        inlining = share_of(self.recipe.options.inlining, len(pieces) / _EXPECTED)
        with suppress(NotJoinable):
            # The cube lays out its axis; a shard has no room for files that it does not have.
            along = [replace(one, layout=None) for one in self.recipe.axes()]
            cube = join_pieces(pieces, along, inlining, self.recipe.choices)
            if all(axis.path in cube.hierarchy.nodes for axis in cube.axes):
                self._write(cube, _SMALL)

    def merge(self) -> None:
        """Join many small shards, so that few are left. If that fails, they stay as they are."""
        names = [name for name in self._names() if name.endswith(_SMALL)]
        for first in range(0, len(names) - _TOGETHER + 1, _TOGETHER):
            with suppress(H5ZarrError):
                self._merge(names[first : first + _TOGETHER])

    def _merge(self, names: Sequence[str]) -> None:
        pieces: list[CubePiece] = []
        try:
            pieces += map(self._open, names)
            count = sum(piece.file_count for piece in pieces)
            along = tuple(Along(one.name) for one in self.recipe.axes())
            inlining = share_of(self.recipe.options.inlining, count / _EXPECTED)
            self._write(join_pieces(pieces, along, inlining, self.recipe.choices), _LARGE)
        finally:
            for piece in pieces:
                piece.opened.close()
        for name in names:
            self.place.remove(name)

    def take(self, files: Sequence[ArchiveFile]) -> Iterator[Shard]:
        """Yield shards of files that are wanted, in the state in which they are now. No file is in two of them."""
        wanted = {file.name: file.identity for file in files if not file.failure}
        for name in self._names():
            try:
                piece = self._open(name)
            except H5ZarrError:
                self.place.remove(name)  # a writer was killed
                continue
            shard = _narrow(piece, wanted)
            if shard is None:
                piece.opened.close()
                continue
            for one in shard.names:
                del wanted[one]
            yield shard

    def discard(self) -> None:
        """Remove all shards."""
        for name in self._names():
            self.place.remove(name)

    def _names(self) -> list[str]:
        found = {name[len(self.folder) + 1 :].partition("/")[0] for name in self.place.names(self.folder)}
        return [f"{self.folder}/{name}" for name in sorted(found)]

    def _open(self, name: str) -> CubePiece:
        access = replace(self.access, storage_options=self.place.storage_options or self.access.storage_options)
        return open_cube(Location.parse(self.place.locate(name)), access, self.access)

    def _write(self, cube: Cube, suffix: str) -> None:
        # Files are read in their order, so shards of neighbours in time are neighbours along the axis, too.
        name = f"{self.folder}/{time.time_ns():020d}-{secrets.token_hex(4)}{suffix}"
        location = Location.parse(self.place.prepare(name))
        output = Output(location=location, storage_options=self.place.storage_options, network=self.place.network)
        container = container_for_output(location)
        fitted = fit_into(cube.fitted, container)
        if len(fitted.nodes) == len(cube.fitted.nodes):
            container.write(fitted, cube.provenance, output)


def _digest(recipe: Recipe) -> str:
    """Return a hash of what determines the shards of a cube."""
    told = {name: value for name, value in recipe.to_json().items() if name in _OPTIONS}
    if recipe.along:
        told["along"] = [one.name if one.layout is not None else one.text for one in recipe.axes()]
    return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _narrow(piece: CubePiece, wanted: Mapping[str, Identity | None]) -> Shard | None:
    """Return the part of a shard that has wanted files in their present state; None if there is none."""
    cube = piece.opened.cube
    if cube is None:
        return None
    states = dict(zip(piece.hierarchy.urls, piece.opened.sources.expected, strict=False))
    urls = tuple(cube.columns.urls)
    kept = tuple(url for url in urls if url in wanted and is_same(states.get(url), wanted[url]))
    if not kept:
        return None
    if len(kept) == len(urls):
        return Shard(_named(piece, kept), kept)
    standing = stand(piece.opened, set(urls) - set(kept))
    if standing is None or standing.constants:
        return None  # the files are read again
    return Shard(_named(standing.piece, kept), kept)


def _named(piece: CubePiece, names: Sequence[str]) -> CubePiece:
    return replace(piece, opened=replace(piece.opened, source=names[0]))
