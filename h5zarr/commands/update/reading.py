"""Read the files that are new to a cube."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from h5zarr.commands.combine.pieces import CubePiece, open_piece
from h5zarr.commands.combine.sources import OnFile
from h5zarr.commands.translate.many import work_through
from h5zarr.commands.translate.options import Options
from h5zarr.commands.update.archive import ArchiveFile
from h5zarr.containers.cube_layout import CubeMisfit
from h5zarr.errors import (
    ArgumentError,
    H5ZarrError,
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
    """The files that could be read, by name, and those that could not. Files that have just vanished are in neither."""

    pieces: dict[str, CubePiece] = field(default_factory=dict)
    misfits: list[CubeMisfit] = field(default_factory=list)

    def close(self) -> None:
        """Close the files and connections of all pieces."""
        for piece in self.pieces.values():
            piece.opened.close()


def read_files(
    files: Sequence[ArchiveFile], access: Access, options: Options, at_once: int, on_file: OnFile | None
) -> ReadFiles:
    """Read the metadata of files. Raises SourceUnreachable or SourceTimeout if the archive does not answer."""

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
            on_file(str(Location.parse(file.name)), len(files))
    made.pieces = {file.name: found[file.name] for file in files if file.name in found}
    return made


def _describe(file: ArchiveFile, error: H5ZarrError) -> CubeMisfit:
    # The same content cannot be read later either; but a file that access was denied to may be readable then.
    identity: Identity | None = None if isinstance(error, SourceError) and not file.failure else file.identity
    what = str(error).removeprefix(f"{Location.parse(file.name)}:").strip()
    return CubeMisfit(url=file.name, identity=identity, kind=error.kind, reason=what, remedy=error.remedy)
