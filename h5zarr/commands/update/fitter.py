"""Join a cube with new files: with the cube as it stands where that is certain to be right, else with all of its files.

The cube as it stands has all references, so nothing but new files must be read. But it does not have everything that
its files have: for example, which of them has a constant, or what attributes the others had. Where that matters, all
files are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from h5zarr.commands.combine.along import Along
from h5zarr.commands.combine.cube import Cube, join_pieces
from h5zarr.commands.combine.file_order import Orphaned
from h5zarr.commands.combine.pieces import CubePiece
from h5zarr.commands.combine.plan import detect_axis
from h5zarr.commands.combine.recipe import Recipe
from h5zarr.commands.combine.sources import is_many, natural_order
from h5zarr.commands.update.misfits import Fitting, count_parts, find_typical
from h5zarr.commands.update.reading import ReadFiles
from h5zarr.commands.update.standing import Standing, lift, stand
from h5zarr.containers.container import Container
from h5zarr.containers.cube_layout import CubeLayout
from h5zarr.containers.fitting import fit_into
from h5zarr.encode.inlining import Inlining
from h5zarr.errors import NotJoinable, SourceGone
from h5zarr.io.location import Location
from h5zarr.opening import Opened


@dataclass(slots=True)
class Fitter:
    """Joins new files with a cube, or makes one if `opened` is None. `along` is None until the files determine it.

    `read_more` reads files of the cube again. `vanished` are files that are still in the cube, but cannot be read.
    """

    opened: Opened | None
    layout: CubeLayout
    recipe: Recipe
    along: tuple[Along, ...] | None
    inlining: Inlining
    container: Container
    accepts_regimes: bool
    read_more: Callable[[Collection[str]], ReadFiles]
    vanished: Collection[str]

    def fit(self, read: ReadFiles, leaving: Collection[str], again: Collection[str]) -> Fitting:
        """Return which of the files that were read fit into the cube without those that are `leaving`.

        `again` are files that stay, but were read again.
        """
        if self.opened is None or self.needs_all(leaving):
            return self._join_all(read, leaving)
        try:
            return self._join_standing(self.opened, read, {*leaving, *again})
        except Orphaned:
            return self._join_all(read, leaving)

    def needs_all(self, leaving: Collection[str]) -> bool:
        """Return whether the cube as it stands does not say enough about its files."""
        if self.opened is None:
            return False
        recipe = self.recipe
        depends = recipe.constant == "along" or recipe.attributes == "drop-conflicts" or recipe.on_duplicate != "refuse"
        # Without coordinates, the order of files matters.
        unordered = any(axis not in self.opened.hierarchy.nodes for axis in self.layout.axes)
        return depends or unordered or (bool(leaving) and bool(self.layout.columns.lacks))

    # --- with the cube as it stands

    def _join_standing(self, opened: Opened, read: ReadFiles, leaving: Collection[str]) -> Fitting:
        standing = stand(opened, leaving)
        assert self.along is not None
        if standing is None and read.shards:
            return self._join_shards(read)
        if standing is None:
            return self._try(list(read.pieces.values()), [], None, self.along, {})
        along = _names_only(self.along)
        refused: dict[str, NotJoinable] = {}
        lifted = self._lift(read, standing.piece, refused)
        last = standing.piece.opened.cube.pieces[-1].url if standing.piece.opened.cube is not None else ""
        one = stand(opened, set(self.layout.columns.urls) - {last})
        typical = [] if one is None else [one.piece]
        return self._try(lifted, typical, standing, along, refused, self._expander(read, standing.piece, refused))

    def _lift(self, read: ReadFiles, cube: CubePiece | None, refused: dict[str, NotJoinable]) -> list[CubePiece]:
        """Return pieces with the axes that the cube has. Shards have them already."""
        assert self.along is not None
        lifted: list[CubePiece] = []
        for name, piece in read.pieces.items():
            try:
                is_lifted = name in read.shards
                made = piece if is_lifted else lift(piece, cube, self.along, self.inlining, self.recipe.choices)
                lifted.append(made)
            except NotJoinable as error:
                refused[name] = error
        return lifted

    def _expander(
        self, read: ReadFiles, cube: CubePiece | None, refused: dict[str, NotJoinable]
    ) -> Callable[[CubePiece], Sequence[CubePiece] | None]:
        """Return a function that reads the files of a shard one by one."""

        def expand(piece: CubePiece) -> Sequence[CubePiece] | None:
            names = read.shards.pop(piece.opened.source, None)
            if names is None:
                return None
            del read.pieces[piece.opened.source]
            piece.opened.close()
            more = self.read_more(names)
            read.pieces |= more.pieces
            read.misfits += more.misfits
            return self._lift(more, cube, refused)

        return expand

    def _try(
        self,
        pieces: Sequence[CubePiece],
        typical: Sequence[CubePiece],
        standing: Standing | None,
        along: tuple[Along, ...],
        refused: dict[str, NotJoinable],
        expand: Callable[[CubePiece], Sequence[CubePiece] | None] = lambda piece: None,
    ) -> Fitting:
        whole = [] if standing is None else [standing.piece]
        fitting = Fitting(
            lambda some: self._join([*whole, *some], along),
            lambda some: self._join([*[one for one in typical if one not in some], *some], along),
            standing,
            self._parts(),
            expand,
            refused=refused,
        )
        fitting.add(pieces)
        fitting.finish()
        return fitting

    def _join(self, pieces: Sequence[CubePiece], along: tuple[Along, ...]) -> Cube:
        """Return the joined cube. Raises NotJoinable also if a variable of the cube would be left out."""
        cube = join_pieces(pieces, along, self.inlining, self.recipe.choices)
        if self.opened is not None:
            known = {path for path in self.opened.hierarchy.nodes if path != "/"}
            for problem in fit_into(cube.fitted, self.container).hierarchy.problems:
                if problem.path in known:
                    raise NotJoinable(f"{problem.path}: {problem.message}", remedy=problem.remedy)
        return cube

    def _parts(self) -> dict[str, int] | None:
        if self.accepts_regimes or self.opened is None:
            return None
        return count_parts(self.opened.hierarchy)

    # --- with all files

    def _join_all(self, read: ReadFiles, leaving: Collection[str]) -> Fitting:
        """Join all files, those of the cube first, so that no new one takes the place of another."""
        old = [url for url in self.layout.columns.urls if url not in leaving]
        lost = [name for name in old if name in self.vanished]
        if lost:
            what = f"{Location.parse(lost[0])}: it has vanished, but would have to be read again for this update"
            raise SourceGone(what)  # the caller knows the remedy
        if read.shards and self.opened is None:
            return self._join_shards(read)
        for name, inside in list(read.shards.items()):  # an orphaned cube needs to know all about its files
            read.pieces.pop(name).opened.close()
            old += inside
        read.shards.clear()
        more = self.read_more([name for name in old if name not in read.pieces])
        read.pieces |= more.pieces
        read.misfits += more.misfits
        names = {id(piece): name for name, piece in read.pieces.items()}
        rank = {name: number for number, name in enumerate(self._order(read.pieces))}
        pieces = sorted(read.pieces.values(), key=lambda piece: rank[names[id(piece)]])
        if self.along is None:
            self.along = detect_axis(pieces) if pieces else ()
            self.recipe = replace(self.recipe, along=tuple(one.name for one in self.along))
        along = self.along
        typical = [find_typical(pieces)] if pieces else []

        def join(some: Sequence[CubePiece]) -> Cube:
            return self._join(sorted(some, key=lambda piece: rank[names[id(piece)]]), along)

        fitting = Fitting(
            join, lambda some: join([*[one for one in typical if one not in some], *some]), None, self._parts()
        )
        known = {*old, *leaving} & set(self.layout.columns.urls)
        fitting.add([piece for piece in pieces if names[id(piece)] in known])
        fitting.add([piece for piece in pieces if names[id(piece)] not in known])
        return fitting

    def _join_shards(self, read: ReadFiles) -> Fitting:
        """Make a cube of files, many of which are in shards."""
        assert self.along is not None
        refused: dict[str, NotJoinable] = {}
        pieces = sorted(self._lift(read, None, refused), key=lambda piece: natural_order(piece.opened.source))
        expand = self._expander(read, None, refused)
        return self._try(pieces, [find_typical(pieces)], None, _names_only(self.along), refused, expand)

    def _order(self, names: Collection[str]) -> list[str]:
        """Return names in the order of the sources: sorted if these are patterns or directories, else as they came."""
        if not self.layout.pieces or any(is_many(Location.parse(source)) for source in self.recipe.sources):
            return sorted(names, key=natural_order)
        placed = [url for url in self.layout.columns.urls if url in names]
        return [*placed, *sorted(set(names) - set(placed), key=natural_order)]


def _names_only(along: Sequence[Along]) -> tuple[Along, ...]:
    """Return axes whose coordinates are in the pieces."""
    return tuple(Along(one.name, layout=one.layout) for one in along)
