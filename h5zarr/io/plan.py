"""Which ranges to fetch, so that a round has every byte that it asks for. Pure.

Ranges are rows (address, end) of an int64 array, end excluded. "Tidy" ranges are sorted, disjoint and not empty.

Why the plan looks as it does: a round trip costs as much as a few megabytes, a further request in the same round as
much as some tens of kilobytes, and later rounds often ask for neighbours of what this one asks for. A round therefore
reads ahead and merges generously. But a round of lone spans must not: 17,000 B-tree nodes of 2 KB, one in every 8 KB of
a file, with chunks between them, would move the whole file if each were rounded up to a block or merged with the next.
So each round has an allowance of bytes beyond those it lacks: `slack_nbytes`, or what its overhead permits where that
is more. It is spent

1. on gaps, smallest first, since each gap saves one request and the smallest costs least;
2. then, if something is left, on growing what remains to aligned blocks, the largest that all of them can afford.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.io.policy import ReadPolicy

Ranges: TypeAlias = npt.NDArray[np.int64]


def plan_fetches(wanted: Ranges, held: Ranges, nbytes: int, policy: ReadPolicy, *, lone: bool = False) -> Ranges:
    """Return the tidy ranges to fetch, so that they and `held` cover `wanted`.

    `wanted` lies inside the file of `nbytes` bytes, in any order; `held` is tidy. What is returned does not overlap
    `held`, lies inside the file, and has no range larger than `policy.split_nbytes`. Its sum exceeds the bytes that
    are lacking by at most the larger of `slack_nbytes` and `max_overhead - 1` times those bytes, or `lone_overhead - 1`
    times where they are those of lone spans.
    """
    lacking = subtract_ranges(unite_ranges(wanted), held)
    if not len(lacking):
        return lacking
    asked = total_nbytes(lacking)
    overhead = policy.lone_overhead if lone else policy.max_overhead
    allowance = max(policy.slack_nbytes, int((overhead - 1) * asked))
    merged = _merge_gaps(lacking, held, allowance, policy.gap_nbytes)
    grown = _grow_to_blocks(merged, held, nbytes, allowance - (total_nbytes(merged) - asked), policy.block_nbytes)
    return _split(grown, policy.split_nbytes)


def add_rest(fetches: Ranges, held: Ranges, nbytes: int, policy: ReadPolicy) -> Ranges:
    """Return `fetches`, or all that is not held, where these would leave little of the file unread.

    A file that has been read for the most part is dense with metadata, and later rounds will ask for most of the rest.
    """
    unread = nbytes - total_nbytes(held) - total_nbytes(fetches)
    if not len(fetches) or unread > policy.rest_share * nbytes or nbytes > policy.cache_nbytes:
        return fetches
    return _split(subtract_ranges(np.array([[0, nbytes]]), held), policy.split_nbytes)


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


def _merge_gaps(ranges: Ranges, held: Ranges, allowance: int, gap_nbytes: int) -> Ranges:
    """Return `ranges` with gaps closed, smallest first, while they cost no more than `allowance` together."""
    gaps = ranges[1:, 0] - ranges[:-1, 1]
    # A gap with held bytes in it stays open: they would be fetched and stored twice.
    held_before = np.searchsorted(held[:, 1], ranges[:-1, 1], side="right")
    held_after = np.searchsorted(held[:, 0], ranges[1:, 0], side="left")
    order = np.flatnonzero((gaps <= gap_nbytes) & (held_before >= held_after))
    order = order[np.argsort(gaps[order], kind="stable")]
    closed = np.zeros(len(gaps), dtype=bool)
    closed[order[np.cumsum(gaps[order]) <= allowance]] = True
    first = np.concatenate(([True], ~closed))
    last = np.append(~closed, True)
    return np.column_stack((ranges[first, 0], ranges[last, 1]))


def _grow_to_blocks(ranges: Ranges, held: Ranges, nbytes: int, allowance: int, block_nbytes: int) -> Ranges:
    """Return `ranges` grown to aligned blocks of `block_nbytes`, or the largest that `allowance` has room for."""
    # Growth stops at held bytes, at which the neighbouring free stretch would be a request of its own.
    floor = np.concatenate(([0], held[:, 1]))[np.searchsorted(held[:, 1], ranges[:, 0], side="right")]
    ceiling = np.append(held[:, 0], nbytes)[np.searchsorted(held[:, 0], ranges[:, 1], side="left")]
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


def _split(ranges: Ranges, split_nbytes: int) -> Ranges:
    """Return `ranges` with those larger than `split_nbytes` cut in pieces of that size and a rest."""
    counts = -(-(ranges[:, 1] - ranges[:, 0]) // split_nbytes)
    row = np.repeat(np.arange(len(ranges)), counts)
    address = ranges[row, 0] + _count_within(counts) * split_nbytes
    return np.column_stack((address, np.minimum(address + split_nbytes, ranges[row, 1])))


def _count_within(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return 0, 1, 2, ... counts[0] - 1, 0, 1, ... counts[1] - 1, and so on."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
