"""What has changed in an archive since a cube was made. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from h5zarr.commands.catalog.source_names import is_same
from h5zarr.commands.update.archive import Archive, ArchiveFile
from h5zarr.containers.cube_layout import CubeLayout, CubeMisfit
from h5zarr.io.source import Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Files to read, by reason; files that have vanished, by name; and the misfits that stay as they are."""

    added: tuple[ArchiveFile, ...] = ()
    replaced: tuple[ArchiveFile, ...] = ()
    retried: tuple[ArchiveFile, ...] = ()
    vanished: tuple[str, ...] = ()
    misfits: tuple[CubeMisfit, ...] = field(default=(), repr=False)
    unchanged_count: int = 0

    @property
    def to_read(self) -> tuple[ArchiveFile, ...]:
        """All files that must be read. Where several have the same, the first of them wins."""
        return self.replaced + self.retried + self.added


def find_changes(
    layout: CubeLayout, states: Mapping[str, Identity], archive: Archive, *, prune: bool, retry: bool
) -> Changes:
    """Return how an archive differs from a cube, whose files were read in these states.

    Misfits are tried again if they have changed, if a file leaves the cube, or if the user wants to (`retry`).
    """
    pieces = set(layout.columns.urls)
    replaced = [
        archive.files[url]
        for url in pieces
        if url in archive.files and not is_same(states.get(url), archive.files[url].identity)
    ]
    vanished = [url for url in pieces if url not in archive.files and archive.covers(url)]
    makes_room = bool(replaced) or (prune and bool(vanished)) or retry
    known = {one.url: one for one in layout.misfits if one.url in archive.files or not archive.covers(one.url)}
    is_stale = {
        url: url in archive.files and (makes_room or not is_same(one.identity, archive.files[url].identity))
        for url, one in known.items()
    }
    added = [one for name, one in archive.files.items() if name not in pieces and name not in known]
    retried = [archive.files[url] for url, stale in is_stale.items() if stale and url not in pieces]
    return Changes(
        added=_by_name(added),
        replaced=_by_name(replaced),
        retried=_by_name(retried),
        vanished=tuple(sorted(vanished)),
        misfits=tuple(one for url, one in known.items() if not is_stale[url] and url not in pieces),
        unchanged_count=len(pieces) - len(replaced) - len(vanished),
    )


def _by_name(files: Iterable[ArchiveFile]) -> tuple[ArchiveFile, ...]:
    return tuple(sorted(files, key=lambda one: one.name))


def find_affected(layout: CubeLayout, leaving: Iterable[str]) -> set[str]:
    """Return the other files that must be read again when some leave the cube.

    These are files that overlap them: they may have what the cube took from a file that leaves. And the file that is
    then the first one, because attributes and constants come from the first.
    """
    gone = set(leaving)
    if not gone:
        return set()
    columns = layout.columns
    leaves = np.fromiter((url in gone for url in columns.urls), bool, len(columns))
    affected: set[int] = set()
    for axis, length in layout.axes.items():
        numbers, position, _, count = columns.ranges.along(axis)
        freed = np.zeros(length + 1, np.int64)
        for row in np.flatnonzero(leaves[numbers]).tolist():
            freed[position[row] + 1 : position[row] + count[row] + 1] = 1
        before = np.cumsum(freed)
        affected |= set(numbers[~leaves[numbers] & (before[position + count] > before[position])].tolist())
    if leaves[:1].any() and not leaves.all():
        affected.add(int(np.argmin(leaves)))
    return {columns.urls[number] for number in affected}
