"""Bring a cube up to date: compare it with its archive, join it with what has changed, and replace it."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from h5zarr import __version__
from h5zarr.commands.combine.along import AlongInput
from h5zarr.commands.combine.batches import may_batch
from h5zarr.commands.combine.combine import write_cube
from h5zarr.commands.combine.cube import with_recipe
from h5zarr.commands.combine.pieces import UNCUT
from h5zarr.commands.combine.recipe import Recipe
from h5zarr.commands.combine.sources import OnFile
from h5zarr.commands.translate.options import Options
from h5zarr.commands.update.archive import Archive, ArchiveFile, list_archive
from h5zarr.commands.update.changes import Changes, find_affected, find_changes
from h5zarr.commands.update.fitter import Fitter
from h5zarr.commands.update.misfits import Fitting, NewRegime
from h5zarr.commands.update.reading import Joining, ReadFiles, read_all
from h5zarr.commands.update.shards import ShardStore
from h5zarr.commands.update.update_result import CubeUpdate, commit_message
from h5zarr.containers.container import Commit, Content, Output
from h5zarr.containers.cube_layout import CubeLayout, CubeMisfit
from h5zarr.containers.registry import container_for_output
from h5zarr.errors import ArgumentError, NotJoinable, OutputChanged, SourceChanged, SourceGone, WrongOutput
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.io.source import Identity
from h5zarr.logs import LOG
from h5zarr.opening import Opened, open_hierarchy

ON_MISFIT = ("skip", "new-regime", "fail")
_ATTEMPTS = 10
_PRUNE = "Remove vanished files from the cube with prune=True."


def bring_up_to_date(
    output: Output, access: Access, how: HowToUpdate, sources: tuple[str, ...] | None, recipe: Recipe | None = None
) -> CubeUpdate:
    """Update a cube, or make it by a recipe if there is none; see `update`."""
    started = time.perf_counter()
    for attempt in range(_ATTEMPTS):
        one = _Update(output, access, how, sources, recipe)
        try:
            return replace(one.run(), seconds=time.perf_counter() - started)
        except (OutputChanged, SourceChanged, SourceGone):
            if attempt == _ATTEMPTS - 1 or not one.is_outdated():
                raise
            LOG.info("update %s: somebody else has updated it; starting again", output.shown)
    raise AssertionError("unreachable")


@dataclass(frozen=True, slots=True, kw_only=True)
class HowToUpdate:
    """The options of `update` that are not about opening and writing."""

    along: AlongInput | None = None
    on_misfit: str = "skip"
    prune: bool = False
    retry: bool = False
    dry_run: bool = False
    at_once: int = 8
    on_file: OnFile | None = None
    shards: ShardStore | None = None

    def __post_init__(self) -> None:
        if self.on_misfit not in ON_MISFIT:
            what = f"on_misfit is {self.on_misfit!r}, but must be one of {', '.join(ON_MISFIT)}"
            raise ArgumentError(what)


class _Update:
    """One attempt, from the state that the cube is in at its beginning."""

    def __init__(
        self,
        output: Output,
        access: Access,
        how: HowToUpdate,
        sources: tuple[str, ...] | None,
        recipe: Recipe | None,
    ) -> None:
        self._output, self._access, self._how = output, access, how
        self._opened, self._identity = _open_cube(output, access, may_lack=recipe is not None)
        layout = CubeLayout(axes={}, pieces=()) if self._opened is None else self._opened.cube
        if layout is None or (self._opened is not None and not layout.recipe):
            what = f"{output.shown}: this is not a cube that can be updated"
            raise ArgumentError(what, remedy="Make it anew with h5zarr combine, of this version or a later one.")
        self._layout: CubeLayout = layout
        self._recipe = recipe if self._opened is None and recipe is not None else Recipe.from_json(layout.recipe)
        self._sources = self._recipe.sources if sources is None else sources
        if not self._sources:
            what = f"{output.shown}: it does not say from which sources it was made"
            raise ArgumentError(what, remedy="Give them.")
        if how.along is not None and self._recipe.along is not None and self._opened is not None:
            what = f"{output.shown}: the axes of this cube are recorded in it"
            raise ArgumentError(what, remedy="Leave out along=.")
        is_open = self._opened is None and self._recipe.along is None and how.along is None
        self._along = None if is_open else self._recipe.axes(how.along)
        self._archive = ""
        self._options: Options = replace(self._recipe.options, chunk_nbytes=UNCUT)

    def is_outdated(self) -> bool:
        """Return whether somebody else has updated the cube in the meantime."""
        return container_for_output(self._output.location).state(self._output).identity != self._identity

    def run(self) -> CubeUpdate:
        """Compare, join and write."""
        try:
            is_all = set(self._sources) == set(self._recipe.sources)
            archive = list_archive(self._sources, self._access, self._recipe.files, self._known, is_all=is_all)
            self._archive = archive.digest() if is_all else ""
            if self._archive and self._archive == self._layout.archive and not self._how.retry:
                return self._unchanged(Changes(misfits=self._layout.misfits))
            changes = self._compare(archive)
            leaving = {one.name for one in changes.replaced} | (set(changes.vanished) if self._how.prune else set())
            if not changes.to_read and not leaving:
                return self._unchanged(changes)
            try:
                return self._change(archive, changes, leaving)
            except SourceGone as error:
                if not changes.vanished or self._how.prune:
                    raise
                raise SourceGone(str(error), remedy=_PRUNE) from None
        finally:
            if self._opened is not None:
                self._opened.close()

    def _known(self) -> set[str]:
        """Return the names of the files of the cube, and of its misfits."""
        return {*self._layout.columns.urls, *(one.url for one in self._layout.misfits)}

    def _compare(self, archive: Archive) -> Changes:
        states: dict[str, Identity] = {}
        if self._opened is not None:
            urls, expected = self._opened.hierarchy.urls, self._opened.sources.expected
            found = zip(urls, expected, strict=False)
            states = {url: identity for url, identity in found if identity is not None}
        return find_changes(self._layout, states, archive, prune=self._how.prune, retry=self._how.retry)

    def _unchanged(self, changes: Changes) -> CubeUpdate:
        done = CubeUpdate(
            location=self._output.shown,
            vanished=changes.vanished,
            known_misfits=changes.misfits,
            file_count=len(self._layout.pieces),
        )
        return done

    def _change(self, archive: Archive, changes: Changes, leaving: set[str]) -> CubeUpdate:
        """Read what is new, join it with what stays, and write the result."""
        again = find_affected(self._layout, leaving)
        fitter = self._make_fitter(archive, changes)
        if lost := again & set(changes.vanished):
            what = f"{Location.parse(min(lost))}: it has vanished, but would have to be read again for this update"
            raise SourceGone(what)
        joining = None if fitter.needs_all(leaving) else self._joining()
        read = self._read([*_find_files(archive, again), *changes.to_read], joining)
        try:
            fitting = fitter.fit(read, leaving, again)
            self._recipe = fitter.recipe
            misfits = [*read.misfits, *self._refused(fitting, archive)]
            if self._how.on_misfit == "fail" and misfits:
                raise next(iter(fitting.refused.values()), NotJoinable(f"{misfits[0].url}: {misfits[0].reason}"))
            return self._write(fitting, changes, leaving, misfits)
        finally:
            read.close()

    def _make_fitter(self, archive: Archive, changes: Changes) -> Fitter:
        """Return what finds out which of the files that are read fit into the cube without those that leave it."""
        return Fitter(
            opened=self._opened,
            layout=self._layout,
            recipe=self._recipe,
            along=self._along,
            inlining=self._options.inlining,
            container=container_for_output(self._output.location),
            accepts_regimes=self._how.on_misfit == "new-regime",
            read_more=lambda names: self._read(_find_files(archive, names)),
            vanished=() if self._how.prune else changes.vanished,
        )

    def _joining(self) -> Joining | None:
        """Return how new files are joined before all of them are known; None if they must be joined at once."""
        if not self._along or not may_batch(self._recipe.choices):
            return None
        store = self._how.shards
        known = store if store is not None and store.is_for(self._recipe) else None
        return Joining(self._along, self._options.inlining, self._recipe.choices, known)

    def _read(self, files: Sequence[ArchiveFile], joining: Joining | None = None) -> ReadFiles:
        return read_all(files, self._access, self._options, self._how.at_once, self._how.on_file, joining)

    def _refused(self, fitting: Fitting, archive: Archive) -> list[CubeMisfit]:
        identities = {file.name: file.identity for file in archive.files.values()}
        return [
            CubeMisfit(
                url=name,
                identity=identities.get(name),
                kind=error.kind,
                reason=str(error),
                remedy=error.remedy if isinstance(error, NewRegime) else "",
            )
            for name, error in fitting.refused.items()
        ]

    def _write(
        self, fitting: Fitting, changes: Changes, leaving: set[str], misfits: Sequence[CubeMisfit]
    ) -> CubeUpdate:
        """Write the cube, unless nothing but the list of misfits would change in a dry run."""
        cube = fitting.cube
        before = set(self._layout.columns.urls)
        now = set() if cube is None or cube.provenance.cube is None else set(cube.provenance.cube.columns.urls)
        if self._opened is None and not now:
            if fitting.refused:
                raise next(iter(fitting.refused.values()))
            # There is nothing to make a cube of, yet.
            return CubeUpdate(location=self._output.shown, misfits=tuple(misfits))
        if cube is None or not now:
            what = f"{self._output.shown}: no file would be left in the cube"
            raise NotJoinable(what, remedy="Check the sources. Remove the cube if it is no longer needed.")
        known = {(one.url, one.identity) for one in self._layout.misfits if one.identity is not None}
        again = [one for one in misfits if (one.url, one.identity) in known]  # tried again, in vain
        done = CubeUpdate(
            location=self._output.shown,
            added=tuple(sorted(now - before)),
            replaced=tuple(sorted({one.name for one in changes.replaced} & now)),
            removed=tuple(sorted(before - now)),
            vanished=() if self._how.prune else changes.vanished,
            misfits=tuple(one for one in misfits if one not in again),
            known_misfits=(*changes.misfits, *again),
            file_count=len(now),
            cube=cube,
        )
        if self._how.dry_run:
            return done
        commit = self._output.commit or Commit()
        commit = replace(commit, message=commit.message or commit_message(__version__, done))
        source_options = self._access.options_for(sorted(now)[0])
        output = replace(self._output, replaces=self._identity, commit=commit, source_options=source_options)
        recipe = self._recipe.to_json() if self._opened is None else self._layout.recipe
        every = [*changes.misfits, *misfits]
        is_certain = (self._how.prune or not changes.vanished) and all(one.identity is not None for one in every)
        made = with_recipe(cube, recipe, every, self._archive if is_certain else "")
        return replace(done, cube=write_cube(made, output, strict=False), is_written=True)


def _find_files(archive: Archive, names: Collection[str]) -> list[ArchiveFile]:
    """Return files of the cube that must be read again, in the order of their names."""
    return [archive.files.get(name) or ArchiveFile(name, name, None) for name in sorted(names)]


def _open_cube(output: Output, access: Access, *, may_lack: bool) -> tuple[Opened | None, Identity | None]:
    """Return the cube, and the state that it is in. Its files are opened with `access`, itself with its own options.

    If it `may_lack`, the result for a cube that does not exist is None.
    """
    try:
        container = container_for_output(output.location)
    except WrongOutput:
        what = f"{output.shown}: this is not the name of a cube"
        remedy = "Cubes are .json or .parquet, or icechunk+file:///DIRECTORY for an Icechunk repository."
        raise ArgumentError(what, remedy=remedy) from None
    if container.traits.has_commits is False and output.commit is not None:
        what = f"{output.shown}: branch= and message= are for Icechunk"
        raise ArgumentError(what, remedy="Leave them out.")
    state = container.state(output)
    if may_lack and state.content is Content.NOTHING:
        return None, None
    own = replace(access, storage_options=dict(output.storage_options or {}))
    branch = None if output.commit is None else output.commit.branch
    opened = open_hierarchy(output.location, own, at=branch if container.traits.has_commits else None)
    return replace(opened, sources=replace(opened.sources, access=access)), state.identity
