"""The check command: find the files, check several at a time, and compare them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from h5zarr import __version__
from h5zarr.commands.check.check_text import conclusion, report_lines
from h5zarr.commands.check.combining import Combining, compare_files
from h5zarr.commands.check.files import CheckedFile, check_file
from h5zarr.commands.combine.plan import CubePlan, make_plan
from h5zarr.commands.combine.sources import find_sources
from h5zarr.commands.translate.many import work_through
from h5zarr.commands.translate.options import make_options
from h5zarr.display import counted, summary_repr
from h5zarr.errors import H5ZarrError
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.logs import LOG
from h5zarr.zarr_model.hierarchy import Json

_NEW_AXIS = "file"  # the name of an axis that neither the user nor the files name


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that could not be read at all, and why."""

    source: str
    kind: str
    message: str
    remedy: str

    def to_json(self) -> dict[str, Json]:
        """Return this file for machines."""
        return {"source": self.source, "kind": self.kind, "message": self.message, "remedy": self.remedy}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CheckReport:
    """The result of a check. `str()` is the text that `h5zarr check` prints.

    Attributes
    ----------
    files
        The findings for each file, in the order given.
    unreadable
        Files that could not be read at all, with the reasons.
    combining
        What keeps the files from becoming plain arrays, which every tool can join; None if they were not compared.
    plan
        How `h5zarr.combine` joins the files, or why it refuses to; None if they were not compared.
    seconds
        How long it took.

    Examples
    --------
    >>> import h5zarr
    >>> report = h5zarr.check("ocean.nc")
    >>> [variable.path for variable in report.files[0].variables][:3]
    ['/lat', '/lon', '/time']
    """

    files: tuple[CheckedFile, ...]
    unreadable: tuple[Unreadable, ...] = ()
    combining: Combining | None = None
    plan: CubePlan | None = None
    seconds: float = 0.0

    def __repr__(self) -> str:
        return summary_repr("CheckReport", "", counted(len(self.files), "file"), conclusion(self))

    def __str__(self) -> str:
        return "\n".join(report_lines(self))

    @property
    def is_virtualisable(self) -> bool:
        """Whether everything in all files is available through references, and the files can be combined."""
        is_combinable = self.plan is None or self.plan.is_possible
        return is_combinable and not self.unreadable and all(file.is_virtualisable for file in self.files)

    def to_json(self) -> dict[str, Json]:
        """Return the report for machines."""
        return {
            "version": __version__,
            "virtualisable": self.is_virtualisable,
            "files": [file.to_json() for file in self.files],
            "unreadable": [one.to_json() for one in self.unreadable],
            "combining": None if self.combining is None else self.combining.to_json(),
            "plan": None if self.plan is None else self.plan.to_json(),
            "seconds": round(self.seconds, 3),
        }


def check(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    along: str | Sequence[str] | None = None,
    each: bool = False,
    group: str = "/",
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    at_once: int = 8,
    storage_options: Mapping[str, Any] | None = None,
    anon: bool = False,
    network: Mapping[str, float] | None = None,
    limits: Mapping[str, int] | None = None,
    allow: Sequence[str] = (),
    on_file: Callable[[str, int], None] | None = None,
) -> CheckReport:
    """Report whether files can be virtualised and combined, and what reading them costs. Only metadata is read.

    Parameters
    ----------
    sources
        Paths, URLs, directories or patterns. Several files are compared as if they were joined in this order.
    along
        The dimension to combine along, which may be a new one, or several for tiles. By default the unlimited
        dimension, else time, else the only dimension whose length differs.
    each
        Check each file by itself instead of comparing them.
    group, include, exclude
        The part of each file to check, as in `h5zarr.translate`.
    at_once
        How many files to read at a time.
    storage_options, anon, network, limits, allow
        How to open the files, as in `h5zarr.translate`.
    on_file
        Called with each file when it is done, and the number of files.

    Returns
    -------
    CheckReport
        A file that cannot be read is in `unreadable`.

    Raises
    ------
    H5ZarrError
        A pattern matches nothing, or cannot be listed.

    Examples
    --------
    >>> import h5zarr
    >>> report = h5zarr.check("ocean.nc")
    >>> report
    <h5zarr.CheckReport: 1 file, everything can be virtualised>
    >>> report.is_virtualisable
    True
    """
    started = time.perf_counter()
    access = Access.from_options(storage_options, network, limits, allow, anon=anon)
    urls = find_sources(sources, access)
    is_compared = len(urls) > 1 and not each
    chosen = make_options(group=group, include=include, exclude=exclude)
    if is_compared:
        chosen = replace(chosen, joinable=True, inlining=replace(chosen.inlining, array_nbytes=0))

    def work(url: str) -> tuple[str, CheckedFile | Unreadable]:
        try:
            return url, check_file(url, chosen, access)
        except H5ZarrError as error:
            return url, Unreadable(str(Location.parse(url)), error.kind, str(error), error.remedy)

    found: dict[str, CheckedFile | Unreadable] = {}
    for url, one in work_through(urls, work, at_once):
        found[url] = one
        LOG.info("check: %d of %d files: %s", len(found), len(urls), Location.parse(url))
        if on_file is not None:
            on_file(str(Location.parse(url)), len(urls))
    files = tuple(one for url in urls if isinstance(one := found[url], CheckedFile))
    names = [along] if isinstance(along, str) else list(along or ())
    is_tiled = len(names) > 1  # only combine joins tiles
    compared = [(file.source, file.facts) for file in files]
    combining = compare_files(compared, names[0] if names else None) if is_compared and not is_tiled else None
    there = [url for url in urls if isinstance(found[url], CheckedFile)]
    plan = None
    if is_compared and there:
        selected = make_options(group=group, include=include, exclude=exclude)
        is_unnamed = combining is not None and combining.axis.name is None
        plan = make_plan(there, names or ([_NEW_AXIS] if is_unnamed else None), selected, access, at_once)
    return CheckReport(
        files=files,
        unreadable=tuple(one for url in urls if isinstance(one := found[url], Unreadable)),
        combining=combining,
        plan=plan,
        seconds=time.perf_counter() - started,
    )
