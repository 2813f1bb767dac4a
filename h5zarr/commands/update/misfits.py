"""Find out which new files fit into a cube, by joining them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from h5zarr.commands.combine.cube import Cube
from h5zarr.commands.combine.facts import find_facts
from h5zarr.commands.combine.file_order import Orphaned
from h5zarr.commands.combine.pieces import CubePiece
from h5zarr.commands.update.standing import Standing
from h5zarr.errors import NotJoinable
from h5zarr.zarr_model.hierarchy import GroupNode, Hierarchy

Join = Callable[[Sequence[CubePiece]], Cube]
"""Joins the cube with some files. Raises NotJoinable."""


class NewRegime(NotJoinable):
    """A file fits only if a variable is divided into more parts, which other readers do not join."""

    kind = "new regime"
    remedy = "Accept it with on_misfit='new-regime' and retry=True."


@dataclass(slots=True)
class Fitting:
    """Collects the files that fit into the cube as it stands, if there is one.

    `parts` has the number of parts of each variable so far; None for any number. `probe` joins one file with a typical
    one, which takes much less time than joining it with the whole cube. `expand` returns the files of a shard that does
    not fit as a whole; None for a file.
    """

    join: Join
    probe: Join
    standing: Standing | None
    parts: Mapping[str, int] | None
    expand: Callable[[CubePiece], Sequence[CubePiece] | None] = lambda piece: None
    accepted: list[CubePiece] = field(default_factory=list)
    refused: dict[str, NotJoinable] = field(default_factory=dict)
    cube: Cube | None = None

    def add(self, pieces: Sequence[CubePiece]) -> None:
        """Accept the files that can be joined with those accepted before, in this order.

        All of them are tried at once. If that fails, those are left out that do not even fit a typical file. Only if
        the others fail, too, are they divided, so few misfits cost few attempts. Raises Orphaned if the cube needs a
        file that leaves it.
        """
        if not self._try_all(pieces) and len(pieces) > 1:
            self._divide(list(self._find_fitting(pieces)))

    def _find_fitting(self, pieces: Sequence[CubePiece]) -> Iterator[CubePiece]:
        """Yield the pieces that fit a typical file, with the files of shards that do not."""
        for piece in pieces:
            if self._fits_one(piece):
                yield piece
            elif (files := self.expand(piece)) is not None:
                del self.refused[piece.opened.source]
                yield from self._find_fitting(files)

    def _fits_one(self, piece: CubePiece) -> bool:
        try:
            self.probe([piece])
        except NotJoinable as error:
            self.refused[piece.opened.source] = error
            return False
        return True

    def _divide(self, pieces: Sequence[CubePiece]) -> None:
        if not self._try_all(pieces) and len(pieces) > 1:
            half = len(pieces) // 2
            self._divide(pieces[:half])
            self._divide(pieces[half:])

    def _try_all(self, pieces: Sequence[CubePiece]) -> bool:
        """Accept files, and return True, if all of them fit. A single one that does not is refused."""
        if not pieces:
            return True
        try:
            self.cube = self._try([*self.accepted, *pieces])
            self.accepted += pieces
            return True
        except Orphaned:
            raise
        except NotJoinable as error:
            if len(pieces) == 1 and (files := self.expand(pieces[0])) is not None:
                self._divide(list(self._find_fitting(files)))
                return True
            if len(pieces) == 1:
                self.refused[pieces[0].opened.source] = error
        return False

    def finish(self) -> None:
        """Join what there is if no file was accepted. Raises Orphaned if a constant of the cube would be lost."""
        if self.cube is None and self.standing is not None:
            self.cube = self.join([])
        if self.cube is not None and self.standing is not None:
            lost = self.standing.constants - self.cube.hierarchy.nodes.keys()
            if lost:
                raise Orphaned(f"{min(lost)}: it was taken from a file that leaves the cube")

    def _try(self, pieces: Sequence[CubePiece]) -> Cube:
        cube = self.join(pieces)
        for path, count in count_parts(cube.hierarchy).items():
            if self.parts is not None and count > self.parts.get(path, 1):
                notes = [note for one in cube.outcomes if one.path == path for note in one.notes]
                parts = "; ".join(note for note in notes if note.startswith("part "))
                what = f"{path}: it is stored differently, so the variable would consist of {count} parts ({parts})"
                raise NewRegime(what)
        return cube


def find_typical(pieces: Sequence[CubePiece]) -> CubePiece:
    """Return a file of the most common kind: with the same variables, types and coordinates across the axes."""
    kinds = [_kind_of(piece) for piece in pieces]
    usual, _ = Counter(kinds).most_common(1)[0]
    return pieces[kinds.index(usual)]


def _kind_of(piece: CubePiece) -> Hashable:
    facts = find_facts(piece.hierarchy)
    return tuple(
        (
            path,
            one.data_type,
            one.dimension_names,
            one.codecs,
            None if set(one.dimension_names) & facts.unlimited else one.content,
        )
        for path, one in facts.arrays.items()
    )


def count_parts(hierarchy: Hierarchy) -> dict[str, int]:
    """Return the number of parts of each variable that has several."""
    return {
        f"{path.rstrip('/')}/{name}": len(joined.parts)
        for path, node in hierarchy.nodes.items()
        if isinstance(node, GroupNode) and node.record is not None
        for name, joined in node.record.joined.items()
    }
