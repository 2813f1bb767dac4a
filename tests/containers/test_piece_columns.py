"""The files of a cube in columns are the same as an object for each of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from h5zarr.containers.piece_columns import CubePieceState, Range, join_columns, piece_columns

AXES = ("/time", "/x")


@st.composite
def ranges(draw: st.DrawFn, most: int = 3) -> tuple[Range, ...]:
    """Ranges in ascending order that do not overlap, neither on the axis nor in the file."""
    found, position, start = [], 0, 0
    for _ in range(draw(st.integers(1, most))):
        position += draw(st.integers(0, 5))
        start += draw(st.integers(0, 5))
        length = draw(st.integers(1, 6))
        found.append((position, start, length))
        position, start = position + length, start + length
    return tuple(found)


@st.composite
def files(draw: st.DrawFn) -> list[CubePieceState]:
    made = []
    for number in range(draw(st.integers(0, 5))):
        at = {axis: draw(ranges()) for axis in AXES if draw(st.booleans())}
        lacks = ("/v",) if draw(st.booleans()) else ()
        made.append(CubePieceState(url=f"f{number}", at=at, lacks=lacks))
    return made


def move(piece: CubePieceState, at: dict[str, tuple[Range, ...]], lacks: tuple[str, ...]) -> CubePieceState:
    """Return a file of a cube as a file of another one, of which the cube has the ranges `at`; range by range."""
    found = {path: outer for path, outer in at.items() if path not in piece.at and path not in AXES}
    for path, inner in piece.at.items():
        placed = []
        for position, start, length in inner:
            for moved, first, count in at.get(path, ()):
                begin, end = max(position, first), min(position + length, first + count)
                if begin < end:
                    placed.append((moved + begin - first, start + begin - position, end - begin))
        if placed:
            found[path] = tuple(placed)
    return CubePieceState(url=piece.url, at=found, lacks=tuple(dict.fromkeys((*piece.lacks, *lacks))))


@given(files())
def test_columns_have_every_file(pieces: list[CubePieceState]) -> None:
    columns = piece_columns(pieces)
    assert list(columns) == pieces
    assert [columns[number] for number in range(len(columns))] == pieces
    for axis in AXES:
        assert columns.first_positions(axis).tolist() == [
            one.at[axis][0][0] if axis in one.at else -1 for one in pieces
        ]


@given(files(), ranges(), ranges(), st.sampled_from([(), ("/w",)]))
def test_files_of_a_cube_move_with_it(
    pieces: list[CubePieceState], time: tuple[Range, ...], run: tuple[Range, ...], lacks: tuple[str, ...]
) -> None:
    # Along an axis of its own, a cube has all of its files; so an axis that only some have is not tried here.
    pieces = [CubePieceState(url=one.url, at={"/time": one.at.get("/time", ((0, 0, 9),))}) for one in pieces]
    at = {"/time": time, "/run": run}
    found = piece_columns(pieces).moved(at, lacks)
    assert list(found) == [move(one, at, lacks) for one in pieces]


@given(files(), files())
def test_files_of_several_cubes_are_taken_in_any_order(
    some: list[CubePieceState], others: list[CubePieceState]
) -> None:
    joined = join_columns([piece_columns(some), piece_columns(others)])
    assert list(joined) == [*some, *others]
    order = np.random.default_rng(len(joined)).permutation(len(joined))
    assert list(joined.take(order)) == [[*some, *others][number] for number in order]
