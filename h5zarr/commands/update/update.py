"""The update command: the function behind `h5zarr.update`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from h5zarr.commands.combine.along import AlongInput
from h5zarr.commands.combine.recipe import name_sources
from h5zarr.commands.combine.sources import OnFile
from h5zarr.commands.update.update_result import CubeUpdate
from h5zarr.commands.update.updating import HowToUpdate, bring_up_to_date
from h5zarr.containers.container import Commit, Output
from h5zarr.io.access import Access
from h5zarr.io.location import Location


def update(
    cube: str | os.PathLike[str],
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
    *,
    along: AlongInput | None = None,
    on_misfit: str = "skip",
    prune: bool = False,
    retry: bool = False,
    dry_run: bool = False,
    at_once: int = 8,
    branch: str | None = None,
    message: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    anon: bool = False,
    network: Mapping[str, float] | None = None,
    limits: Mapping[str, int] | None = None,
    allow: Sequence[str] = (),
    output_options: Mapping[str, Any] | None = None,
    on_file: OnFile | None = None,
) -> CubeUpdate:
    """Bring a cube up to date: add new files, read changed ones again, and remove those that have vanished.

    Only new and changed files are read, and those that overlap a file that leaves the cube. The cube is replaced as a
    whole, or not at all. If somebody else updates it at the same time, the update starts again from their result.

    Parameters
    ----------
    cube
        A cube that `h5zarr.combine` wrote.
    sources
        Where to look for files: paths, URLs, directories, patterns or the directory of an index. Files of the cube that
        are in none of these places stay as they are. By default, the sources from which the cube was made.
    along
        The axes, only if their coordinates come from a function, which is not recorded with the cube.
    on_misfit
        What to do with a new file that does not fit: "skip" leaves it out and records the reason; "new-regime" does the
        same, but accepts files that are stored differently, so that a variable consists of more parts; "fail" raises
        the error.
    prune
        Remove files from the cube that are no longer in the archive.
    retry
        Try files again that did not fit before, even if they have not changed.
    dry_run
        Write nothing. The result says what would be done.
    at_once
        How many remote files to read at a time.
    branch, message
        The branch of an Icechunk repository, and the commit message instead of a list of the changes.
    storage_options, anon, network, limits, allow
        How to open the files, as in `h5zarr.translate`.
    output_options
        fsspec options for the cube.
    on_file
        Called for each file that has been read, with its name and the number of files to read.

    Returns
    -------
    CubeUpdate
        What was done, and which files do not fit.

    Raises
    ------
    NotJoinable
        With on_misfit="fail": a file does not fit. The cube is unchanged.
    H5ZarrError
        The archive cannot be listed, or the cube cannot be read or written. The cube is unchanged.

    Examples
    --------
    >>> import h5zarr
    >>> cube = h5zarr.combine("ocean*.nc", "hourly.json", along="time")
    >>> h5zarr.update("hourly.json", "ocean*.nc")
    <h5zarr.CubeUpdate of hourly.json: 0 added, 0 replaced, 0 removed, 0 misfits>
    """
    access = Access.from_options(storage_options, network, limits, allow, anon=anon)
    output = Output(
        location=Location.parse(cube),
        storage_options=output_options,
        commit=Commit.of(branch, message),
        network=access.network,
    )
    how = HowToUpdate(
        along=along,
        on_misfit=on_misfit,
        prune=prune,
        retry=retry,
        dry_run=dry_run,
        at_once=at_once,
        on_file=on_file,
    )
    return bring_up_to_date(output, access, how, None if sources is None else name_sources(sources))
