"""The text of a cube: its axes with their gaps, what became of each variable, and a one-line summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from h5zarr.commands.combine.cube_axes import CubeAxis, gaps
from h5zarr.commands.combine.settings import VariableOutcome
from h5zarr.commands.translate.translation_text import Phrase, held_text, problem_lines
from h5zarr.containers.cube_layout import CubeLayout
from h5zarr.containers.layout_text import axis_text, piece_lines
from h5zarr.display import counted, readable, shortened

if TYPE_CHECKING:
    from h5zarr.commands.combine.cube import Cube

_MOST_SHOWN = 5
_MOST_PIECES = 10
_SETTING = 'zarr.config.set({"array.rectilinear_chunks": True})'


def cube_lines(cube: Cube, *, quiet: bool = False, phrase: Phrase = str, is_plan: bool = False) -> Iterator[str]:
    """Return all lines about a cube; only the problems if `quiet`. A plan also lists the files and all variables."""
    where = counted(len(cube.sources), "file")
    yield from problem_lines(where, cube.problems, phrase=phrase)
    if quiet:
        return
    yield from problem_lines(where, cube.warnings, "warning: ", phrase=phrase)
    yield from how_lines(cube, phrase=phrase, is_plan=is_plan)
    done = "joined" if cube.is_written else "can be joined"
    yield f"{where} {done} · {held_text(cube.hierarchy)} · {cube.seconds:.2f} s"


def how_lines(cube: Cube, *, phrase: Phrase = str, is_plan: bool) -> Iterator[str]:
    """Return how files are joined: axes, variables with notes, and readers. A plan also has files and all variables."""
    yield from axis_lines(cube.axes, cube.provenance.cube)
    if is_plan and cube.provenance.cube is not None:
        yield from (f"  {line}" for line in piece_lines(cube.provenance.cube, _MOST_PIECES))
    yield from outcome_lines([one for one in cube.outcomes if one.notes or is_plan], phrase=phrase)
    yield from reader_lines(cube)


def axis_lines(axes: Sequence[CubeAxis], layout: CubeLayout | None = None) -> Iterator[str]:
    """Return a line about each axis, and a line about its gaps. The layout has all files, also those of cubes."""
    if not axes:
        yield "merged: no dimension is joined"
    for axis in axes:
        kind = "new dimension" if axis.is_new else "dimension"
        part_count = axis.part_count if layout is None else layout.part_count(axis.path)
        yield axis_text(axis.name, axis.length, part_count, kind)
        if found := gaps(axis):
            shown = ", ".join(f"{before} to {after}" for before, after in found[:_MOST_SHOWN])
            more = f" and {len(found) - _MOST_SHOWN:,} more" if len(found) > _MOST_SHOWN else ""
            yield f"  {counted(len(found), 'gap')}: {shown}{more}"


def outcome_lines(outcomes: Sequence[VariableOutcome], *, phrase: Phrase = str) -> Iterator[str]:
    """Return the outcome of each variable, with its notes. Refusals with the same remedy share it."""
    for number, one in enumerate(outcomes):
        notes = [note for note in one.notes if note]
        following = outcomes[number + 1 : number + 2]
        if one.how == "refused" and any(
            other.how == one.how and other.notes[1:] == one.notes[1:] for other in following
        ):
            notes = notes[:1]
        first = f": {readable(phrase(notes[0]))}" if notes else ""
        yield f"{readable(one.path)} {one.how}{first}"
        for note in notes[1:]:
            yield f"  {readable(phrase(note))}"


def reader_lines(cube: Cube) -> Iterator[str]:
    """Return which readers open what, if not all readers open everything."""
    if parts := [one.path for one in cube.outcomes if one.how == "parts"]:
        names = shortened(", ".join(map(readable, parts)), 200)
        yield f'only engine="h5zarr" joins {names}; other readers find their parts in the group _h5zarr_parts'
    if uneven := cube.uneven:
        names = shortened(", ".join(map(readable, uneven)), 200)
        yield f"chunks of different lengths in {names}:"
        yield f'  engine="h5zarr" opens them, and so does zarr from version 3.2 on with {_SETTING}'
