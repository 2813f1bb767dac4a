"""Read the files that are new to a cube."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from h5zarr.commands.combine.along import Along
from h5zarr.commands.combine.batches import BATCH, Batches, Spool
from h5zarr.commands.combine.pieces import CubePiece, open_piece
from h5zarr.commands.combine.settings import Choices
from h5zarr.commands.combine.sources import OnFile
from h5zarr.commands.translate.many import work_through
from h5zarr.commands.translate.options import Options
from h5zarr.commands.update.archive import ArchiveFile
from h5zarr.commands.update.shards import ShardStore
from h5zarr.containers.cube_layout import CubeMisfit
from h5zarr.encode.inlining import Inlining
from h5zarr.errors import (
    ArgumentError,
    H5ZarrError,
    NotJoinable,
    PackageMissing,
    SourceError,
    SourceGone,
    SourceTimeout,
    SourceUnreachable,
)
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.io.source import Identity

_ENDING = (ArgumentError, PackageMissing, SourceTimeout, SourceUnreachable)
"""What keeps the whole update from working: the next run tries again."""


@dataclass(slots=True)
class ReadFiles:
    """The files that could be read, by name, and those that could not. Files that have just vanished are in neither.

    A shard has the name of its first file; `shards` has the names of all of its files.
    """

    pieces: dict[str, CubePiece] = field(default_factory=dict)
    misfits: list[CubeMisfit] = field(default_factory=list)
    shards: dict[str, tuple[str, ...]] = field(default_factory=dict)
    spool: Spool | None = None

    def close(self) -> None:
        """Close the files and connections of all pieces."""
        for piece in self.pieces.values():
            piece.opened.close()


@dataclass(frozen=True, slots=True)
class Joining:
    """How files are joined before all of them are known. `store` has shards that workers have made of them."""

    along: Sequence[Along]
    inlining: Inlining
    choices: Choices
    store: ShardStore | None = None


def read_all(
    files: Sequence[ArchiveFile],
    access: Access,
    options: Options,
    at_once: int,
    on_file: OnFile | None,
    joining: Joining | None,
) -> ReadFiles:
    """Read files. If there are many, and `joining` says how, what is known about them is kept in shards."""
    made = ReadFiles()
    order = {file.name: number for number, file in enumerate(files)}
    if joining is not None and joining.store is not None:
        for shard in joining.store.take(files):
            made.pieces[shard.names[0]], made.shards[shard.names[0]] = shard.piece, shard.names
        taken = {name for names in made.shards.values() for name in names}
        files = [file for file in files if file.name not in taken]
    size = BATCH if joining is not None and len(files) > 2 * BATCH else max(1, len(files))
    batches = None
    if joining is not None and size == BATCH:
        made.spool = Spool(access)
        batches = Batches(joining.along, joining.inlining, joining.choices, len(order), made.spool.keep)
    try:
        for first in range(0, len(files), size):
            _add(made, read_files(files[first : first + size], access, options, at_once, on_file, len(order)), batches)
    except BaseException:
        made.close()
        raise
    made.pieces = dict(sorted(made.pieces.items(), key=lambda one: order[one[0]]))
    return made


def _add(made: ReadFiles, found: ReadFiles, batches: Batches | None) -> None:
    """Add files that were read: as a shard if there are batches and they fit together, else one by one."""
    made.misfits += found.misfits
    shard = None
    if batches is not None and len(found.pieces) > 1:
        with suppress(NotJoinable):
            shard = batches.keep_batch(list(found.pieces.values()))
    if shard is None:
        made.pieces |= found.pieces
        return
    names = tuple(found.pieces)
    made.pieces[names[0]] = replace(shard, opened=replace(shard.opened, source=names[0]))
    made.shards[names[0]] = names
    found.close()


def read_files(
    files: Sequence[ArchiveFile],
    access: Access,
    options: Options,
    at_once: int,
    on_file: OnFile | None,
    total: int = 0,
) -> ReadFiles:
    """Read the metadata of files, which may be some of a `total`.

    Raises SourceUnreachable or SourceTimeout if the archive does not answer.
    """

    def work(file: ArchiveFile) -> tuple[ArchiveFile, CubePiece | H5ZarrError]:
        if file.failure:
            return file, SourceError(f"{file.name}: {file.failure}")
        try:
            # References are called by their file, as the cube calls it.
            return file, replace(open_piece(file.url, access, options), name=str(Location.parse(file.name)))
        except H5ZarrError as error:
            return file, error

    if all(Location.parse(file.url).path is not None for file in files):
        at_once = 1  # local files are mapped: threads would only compete
    made, found = ReadFiles(), dict[str, CubePiece]()
    for file, one in work_through(files, work, at_once):
        if isinstance(one, CubePiece):
            found[file.name] = one
        elif isinstance(one, _ENDING):
            made.pieces = found
            made.close()
            raise one
        elif not isinstance(one, SourceGone):
            made.misfits.append(_describe(file, one))
        if on_file is not None:
            on_file(str(Location.parse(file.name)), total or len(files))
    made.pieces = {file.name: found[file.name] for file in files if file.name in found}
    return made


def _describe(file: ArchiveFile, error: H5ZarrError) -> CubeMisfit:
    # The same content cannot be read later either; but a file that access was denied to may be readable then.
    identity: Identity | None = None if isinstance(error, SourceError) and not file.failure else file.identity
    what = str(error).removeprefix(f"{Location.parse(file.name)}:").strip()
    return CubeMisfit(url=file.name, identity=identity, kind=error.kind, reason=what, remedy=error.remedy)
