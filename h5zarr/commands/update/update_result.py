"""What an update did to a cube, and the text about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from h5zarr.commands.combine.cube import Cube
from h5zarr.commands.combine.cube_text import reader_lines
from h5zarr.commands.translate.translation_text import Phrase, problem_lines
from h5zarr.containers.cube_layout import CubeMisfit
from h5zarr.containers.layout_text import axis_lines
from h5zarr.display import counted, readable, summary_repr
from h5zarr.errors import Problem
from h5zarr.io.location import Location
from h5zarr.zarr_model.hierarchy import Json

_MOST_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CubeUpdate:
    """What `h5zarr.update` did. `str()` is the text that `h5zarr combine --update` prints.

    Attributes
    ----------
    location
        The cube.
    added, replaced, removed
        The names of files that are new in the cube, are there in a new state, or have left it.
    vanished
        Files that are in the cube but no longer in the archive. `prune=True` removes them.
    misfits
        Files that do not fit, found in this update.
    known_misfits
        Files that did not fit before, and have not changed.
    file_count
        The number of files in the cube.
    cube
        The cube as it is now; None if nothing has changed.
    is_written
        Whether the cube was written.
    seconds
        How long it took.

    Examples
    --------
    >>> import h5zarr
    >>> cube = h5zarr.combine("ocean*.nc", "living.json", along="time")
    >>> print(h5zarr.update("living.json"))
    living.json: up to date, 1 file · ... s
    """

    location: str
    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()
    misfits: tuple[CubeMisfit, ...] = ()
    known_misfits: tuple[CubeMisfit, ...] = ()
    file_count: int = 0
    cube: Cube | None = None
    is_written: bool = False
    seconds: float = 0.0

    def __repr__(self) -> str:
        done = [f"{len(names)} {what}" for what, names in self._changes()]
        return summary_repr("CubeUpdate", self.location, *done, counted(len(self.misfits), "misfit"))

    def __str__(self) -> str:
        return "\n".join(update_lines(self))

    def _changes(self) -> list[tuple[str, tuple[str, ...]]]:
        return [("added", self.added), ("replaced", self.replaced), ("removed", self.removed)]

    @property
    def has_changed(self) -> bool:
        """Whether the files of the cube have changed."""
        return bool(self.added or self.replaced or self.removed)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is left out of the cube, and why; and the files that do not fit."""
        found = () if self.cube is None else self.cube.problems
        return found + tuple(misfit_problem(one) for one in self.misfits)

    def to_json(self) -> dict[str, Json]:
        """Return the result as JSON, for reports."""
        return {
            "cube": self.location,
            "changed": self.has_changed,
            "added": list(self.added),
            "replaced": list(self.replaced),
            "removed": list(self.removed),
            "vanished": list(self.vanished),
            "misfits": [one.to_json() for one in self.misfits],
            "known_misfits": [one.to_json() for one in self.known_misfits],
            "files": self.file_count,
            "problems": [problem.to_json() for problem in self.problems],
            "written": self.is_written,
            "seconds": round(self.seconds, 6),
        }


def misfit_problem(misfit: CubeMisfit) -> Problem:
    """Return a misfit as a problem of the cube."""
    return Problem("/", misfit.kind, f"{Location.parse(misfit.url)} is left out: {misfit.reason}", misfit.remedy)


def update_lines(done: CubeUpdate, *, quiet: bool = False, phrase: Phrase = str) -> Iterator[str]:
    """Return all lines about an update; only the problems if `quiet`."""
    yield from problem_lines(readable(done.location), done.problems, phrase=phrase)
    if quiet:
        return
    is_plan = done.cube is not None and not done.is_written
    for what, names in done._changes():
        if names:
            yield f"{'would be ' if is_plan else ''}{what}: {some_files(names)}"
    if done.vanished:
        yield phrase(f"vanished, and still in the cube unless prune=True: {some_files(done.vanished)}")
    if done.known_misfits:
        yield f"left out before, and unchanged: {some_files([one.url for one in done.known_misfits])}"
    if done.cube is not None and done.cube.provenance.cube is not None:
        yield from axis_lines(done.cube.provenance.cube)
        yield from reader_lines(done.cube)
    unchanged = "unchanged" if done.misfits else "up to date"
    state = "would be updated" if is_plan else "updated" if done.has_changed else unchanged
    yield f"{readable(done.location)}: {state}, {counted(done.file_count, 'file')} · {done.seconds:.2f} s"


def some_files(names: Sequence[str]) -> str:
    """Return the number of files and the names of the first few."""
    shown = ", ".join(readable(str(Location.parse(name))) for name in names[:_MOST_SHOWN])
    more = f" and {len(names) - _MOST_SHOWN:,} more" if len(names) > _MOST_SHOWN else ""
    return f"{counted(len(names), 'file')} ({shown}{more})"


def commit_message(version: str, done: CubeUpdate) -> str:
    """Return what changed, for the history of a container that has one."""
    said = [f"{what} {some_files(names)}" for what, names in done._changes() if names]
    said += [f"left out {some_files([one.url for one in done.misfits])}"] if done.misfits else []
    return f"h5zarr {version}: {'; '.join(said) or 'no files changed'}"
