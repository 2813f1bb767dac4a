"""The layout of a cube as text: its axes, and the files with their positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from h5zarr.containers.cube_layout import CubeLayout
from h5zarr.containers.piece_columns import CubePieceState
from h5zarr.display import counted, readable
from h5zarr.io.location import Location

_MOST_RANGES = 5


def axis_text(path: str, length: int, part_count: int, kind: str = "dimension") -> str:
    """Return `dimension time: 85 in 3 parts`. The path of an axis in the root is its name."""
    return f"{kind} {readable(path.lstrip('/'))}: {length:,} in {counted(part_count, 'part')}"


def axis_lines(layout: CubeLayout) -> Iterator[str]:
    """Return a line about each axis."""
    for path, length in layout.axes.items():
        yield axis_text(path, length, layout.part_count(path))


def piece_lines(layout: CubeLayout, most: int | None) -> Iterator[str]:
    """Return a line for each file, in the order along the axes; of many, only the first and last `most`."""
    pieces = layout.pieces
    skipped = 0 if most is None else max(0, len(pieces) - 2 * most)
    for piece in pieces[: len(pieces) if not skipped else most]:
        yield _piece_text(piece, bool(layout.axes))
    if skipped:
        yield f"… {skipped:,} more"
        for piece in pieces[len(pieces) - (most or 0) :]:
            yield _piece_text(piece, bool(layout.axes))


def misfit_lines(layout: CubeLayout) -> Iterator[str]:
    """Return a line for each file that was left out, with the reason."""
    for one in layout.misfits:
        yield f"{readable(str(Location.parse(one.url)))} is left out: {readable(one.reason)}"


def _piece_text(piece: CubePieceState, has_axes: bool) -> str:
    at = ", ".join(
        f"{readable(path.lstrip('/'))} {ranges_text([(position, length) for position, _, length in ranges])}"
        for path, ranges in piece.at.items()
    )
    name = readable(str(Location.parse(piece.url)))
    return f"{name}: {at or 'no part of an axis'}" if has_axes else name


def ranges_text(ranges: Sequence[tuple[int, int]]) -> str:
    """Return ranges of start and length as `0 to 29, 60 to 89`; only the first of many."""
    shown = [f"{start}" if length == 1 else f"{start} to {start + length - 1}" for start, length in ranges]
    more = f" and {len(shown) - _MOST_RANGES:,} more" if len(shown) > _MOST_RANGES else ""
    return ", ".join(shown[:_MOST_RANGES]) + more
