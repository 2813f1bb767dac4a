"""Which ranges to fetch, so that a round has every byte that it asks for. Pure.

Ranges are rows (address, end) of an int64 array, end excluded. "Tidy" ranges are sorted, disjoint and not empty.

Why the plan looks as it does: a round trip costs as much as megabytes, a further request in the same round as much as
some tens of kilobytes (`policy.py` says how these follow from the network), and later rounds often ask for neighbours
of what this one asks for. So a round

1. reads all that is left of the file, where that is cheap;
2. closes gaps, smallest first, as long as that makes the round shorter, or costs no more than may be read ahead;
3. grows what remains to aligned blocks, the largest that all of them can afford.

What may be read ahead is little at first. It grows as bytes that were read ahead turn out to be wanted: files that are
dense with metadata are soon read in large pieces, while the nodes of an index that lie scattered between the chunks of
a large file are picked one by one.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.io.round_limits import RoundLimits

Ranges: TypeAlias = npt.NDArray[np.int64]

_MOST_BEHIND_NBYTES = 12 << 10  # collections of a global heap are of 4 KiB, unless a value in them is longer
_NOWHERE: Ranges = np.empty((0, 2), dtype=np.int64)


def plan_fetches(
    lacking: Ranges, held: Ranges, nbytes: int, limits: RoundLimits, *, alone: Ranges = _NOWHERE
) -> Ranges:
    """Return the tidy ranges to fetch, so that they cover `lacking`.

    `lacking` and `held` are tidy and do not overlap; both lie inside the file of `nbytes` bytes. Nor does what is
    returned overlap `held`, or have a range larger than `limits.request_nbytes`. What is `alone`, tidy too, may go on
    where it ends, but none of its neighbours will be wanted.
    """
    if not len(lacking):
        return lacking
    asked = total_nbytes(lacking)
    rest = subtract_ranges(np.array([[0, nbytes]]), held)
    others = subtract_ranges(lacking, alone)
    if total_nbytes(rest) <= max(limits.whole_nbytes, asked + (limits.ahead_nbytes if len(others) else 0)):
        return _split(rest, limits.request_nbytes)
    fetches = _read_ahead(others, held, nbytes, limits)
    if len(alone):
        longer = _lengthen(subtract_ranges(lacking, fetches), held, nbytes, limits.behind_nbytes)
        fetches = unite_ranges(np.concatenate((fetches, longer)))
    # Blocks that have grown towards each other may leave small gaps.
    return _split(_merge_gaps(fetches, held, limits, ahead_nbytes=0), limits.request_nbytes)


def _read_ahead(ranges: Ranges, held: Ranges, nbytes: int, limits: RoundLimits) -> Ranges:
    """Return tidy ranges that cover `ranges`, and as much of what is near as a round may read ahead."""
    if not len(ranges):
        return ranges
    merged = _merge_gaps(ranges, held, limits)
    left = max(0, limits.ahead_nbytes - (total_nbytes(merged) - total_nbytes(ranges)))
    return _grow_to_blocks(merged, held, nbytes, left, limits.block_nbytes)


def _lengthen(ranges: Ranges, held: Ranges, nbytes: int, allowance: int) -> Ranges:
    """Return tidy ranges that cover `ranges` and something of what is behind each, as far as `allowance` has room."""
    behind = min(_MOST_BEHIND_NBYTES, allowance // max(1, len(ranges)))
    end = np.minimum(ranges[:, 1] + behind, _ceiling(ranges, held, nbytes))
    return unite_ranges(np.column_stack((ranges[:, 0], end)))


def total_nbytes(ranges: Ranges) -> int:
    """Return the sum of the ranges' sizes."""
    return int((ranges[:, 1] - ranges[:, 0]).sum())


def unite_ranges(ranges: Ranges) -> Ranges:
    """Return the tidy ranges that hold the same bytes; ranges that touch become one."""
    ranges = ranges[ranges[:, 1] > ranges[:, 0]]
    if not len(ranges):
        return ranges
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    reach = np.maximum.accumulate(ranges[:, 1])
    first = np.flatnonzero(np.concatenate(([True], ranges[1:, 0] > reach[:-1])))
    last = np.append(first[1:], len(ranges)) - 1
    return np.column_stack((ranges[first, 0], reach[last]))


def subtract_ranges(wanted: Ranges, held: Ranges) -> Ranges:
    """Return the tidy ranges of the bytes of `wanted` that are not in `held`. Both are tidy."""
    if not len(wanted) or not len(held):
        return wanted
    # The file between the held ranges; a wanted range is cut where it crosses from one free stretch to the next.
    free_from = np.concatenate(([0], held[:, 1]))
    free_to = np.append(held[:, 0], np.iinfo(np.int64).max)
    first = np.searchsorted(free_to, wanted[:, 0], side="right")
    after = np.searchsorted(free_from, wanted[:, 1], side="left")
    counts = np.maximum(after - first, 0)
    row = np.repeat(np.arange(len(wanted)), counts)
    stretch = _count_within(counts) + first[row]
    pieces = np.column_stack(
        (np.maximum(wanted[row, 0], free_from[stretch]), np.minimum(wanted[row, 1], free_to[stretch]))
    )
    return pieces[pieces[:, 1] > pieces[:, 0]]


def _merge_gaps(ranges: Ranges, held: Ranges, limits: RoundLimits, ahead_nbytes: int | None = None) -> Ranges:
    """Return `ranges` with gaps closed, smallest first: those that make the round shorter, and those that may be read
    ahead.

    Requests are prepared while bytes come. So a round lasts as long as the one or the other, and to close a gap helps
    only where requests are what it waits for.
    """
    gaps = ranges[1:, 0] - ranges[:-1, 1]
    # A gap with held bytes in it stays open: they would be fetched and stored twice.
    held_before = np.searchsorted(held[:, 1], ranges[:-1, 1], side="right")
    held_after = np.searchsorted(held[:, 0], ranges[1:, 0], side="left")
    is_open = (gaps <= max(limits.gap_nbytes, limits.block_nbytes)) & (held_before >= held_after)
    order = np.flatnonzero(is_open)
    order = order[np.argsort(gaps[order], kind="stable")]
    cost = np.cumsum(gaps[order])
    worth = _count_worth_while(cost, gaps[order], total_nbytes(ranges), len(ranges), limits.gap_nbytes)
    affordable = int(np.searchsorted(cost, limits.ahead_nbytes if ahead_nbytes is None else ahead_nbytes, side="right"))
    closed = np.zeros(len(gaps), dtype=bool)
    closed[order[: max(worth, affordable)]] = True
    first = np.concatenate(([True], ~closed))
    last = np.append(~closed, True)
    return np.column_stack((ranges[first, 0], ranges[last, 1]))


def _count_worth_while(
    cost: npt.NDArray[np.int64], gaps: npt.NDArray[np.int64], nbytes: int, count: int, request_nbytes: int
) -> int:
    """Return how many of the smallest gaps to close, for which `cost` bytes come besides, so that a round is shortest.

    A request takes as long as `request_nbytes` bytes do.
    """
    candidates = int(np.searchsorted(gaps, request_nbytes, side="right"))
    bytes_last = nbytes + np.concatenate(([0], cost[:candidates]))
    requests_last = (count - np.arange(candidates + 1)) * request_nbytes
    return int(np.maximum(bytes_last, requests_last).argmin())


def _grow_to_blocks(ranges: Ranges, held: Ranges, nbytes: int, allowance: int, block_nbytes: int) -> Ranges:
    """Return `ranges` grown to aligned blocks of `block_nbytes`, or the largest that `allowance` has room for."""
    # Growth stops at held bytes, at which the neighbouring free stretch would be a request of its own.
    floor = np.concatenate(([0], held[:, 1]))[np.searchsorted(held[:, 1], ranges[:, 0], side="right")]
    ceiling = _ceiling(ranges, held, nbytes)
    budget = total_nbytes(ranges) + allowance
    block = block_nbytes
    while block > 1:
        address = np.maximum(ranges[:, 0] // block * block, floor)
        end = np.minimum(-(-ranges[:, 1] // block) * block, ceiling)
        grown = unite_ranges(np.column_stack((address, end)))
        if total_nbytes(grown) <= budget:
            return grown
        block //= 2
    return ranges


def _ceiling(ranges: Ranges, held: Ranges, nbytes: int) -> npt.NDArray[np.int64]:
    """Return where the next held bytes begin behind each of `ranges`, or the file of `nbytes` bytes ends."""
    ceilings: npt.NDArray[np.int64] = np.append(held[:, 0], nbytes)
    return ceilings[np.searchsorted(held[:, 0], ranges[:, 1], side="left")]


def _split(ranges: Ranges, split_nbytes: int) -> Ranges:
    """Return `ranges` with those larger than `split_nbytes` cut in pieces of that size and a rest."""
    counts = -(-(ranges[:, 1] - ranges[:, 0]) // split_nbytes)
    row = np.repeat(np.arange(len(ranges)), counts)
    address = ranges[row, 0] + _count_within(counts) * split_nbytes
    return np.column_stack((address, np.minimum(address + split_nbytes, ranges[row, 1])))


def _count_within(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return 0, 1, 2, ... counts[0] - 1, 0, 1, ... counts[1] - 1, and so on."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
