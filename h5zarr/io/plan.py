"""Choose the ranges to fetch, for a round of a scan or for the chunks of an array. Pure.

Ranges are rows (address, end) of an int64 array; the end is exclusive. "Tidy" ranges are sorted, disjoint and not
empty.

A scan (`plan_fetches`) does not know what the next round needs. A round trip costs as much as megabytes, and one more
request in the same round costs as much as tens of kilobytes (`network.py` computes both). Later rounds often need bytes
near those of this round. So a round

1. reads the rest of the file, if that is cheap;
2. closes gaps, smallest first, if that makes the round shorter or fits the read-ahead limit;
3. extends the remaining ranges to aligned blocks, as large as the read-ahead limit allows.

A scan reads ahead little at first, and more if the bytes turn out to be needed. So it soon reads files that are dense
with metadata in large pieces. If the nodes of an index are scattered between the chunks of a large file, it fetches
them one by one.

Chunks (`plan_requests`) are all known in advance, so nothing is read ahead. Neighbours share a request if the gap
between them costs less than one more request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.io.network import NetworkPolicy, RoundLimits
from h5zarr.io.span import Span

Ranges: TypeAlias = npt.NDArray[np.int64]
Column: TypeAlias = npt.NDArray[np.int64]

_MOST_BEHIND_NBYTES = 12 << 10  # a global heap collection has 4 KiB, unless it contains a longer value
_NOWHERE: Ranges = np.empty((0, 2), dtype=np.int64)


def plan_fetches(
    lacking: Ranges, held: Ranges, nbytes: int, limits: RoundLimits, *, alone: Ranges = _NOWHERE
) -> Ranges:
    """Return tidy ranges to fetch that cover `lacking`.

    `lacking` and `held` are tidy, do not overlap, and lie inside the file of `nbytes` bytes. The result does not
    overlap `held`, and has no range larger than `limits.request_nbytes`. The ranges in `alone` are tidy, too. Data may
    continue after the end of such a range, but other bytes near it will not be needed.
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
    # Small gaps may remain between extended blocks.
    return _split(_merge_gaps(fetches, held, limits, ahead_nbytes=0), limits.request_nbytes)


def _read_ahead(ranges: Ranges, held: Ranges, nbytes: int, limits: RoundLimits) -> Ranges:
    """Return tidy ranges that cover `ranges`, and nearby bytes up to the read-ahead limit."""
    if not len(ranges):
        return ranges
    merged = _merge_gaps(ranges, held, limits)
    left = max(0, limits.ahead_nbytes - (total_nbytes(merged) - total_nbytes(ranges)))
    return _grow_to_blocks(merged, held, nbytes, left, limits.block_nbytes)


def _lengthen(ranges: Ranges, held: Ranges, nbytes: int, allowance: int) -> Ranges:
    """Return tidy ranges that cover `ranges` and some bytes after each, up to `allowance` in total."""
    behind = min(_MOST_BEHIND_NBYTES, allowance // max(1, len(ranges)))
    end = np.minimum(ranges[:, 1] + behind, _ceiling(ranges, held, nbytes))
    return unite_ranges(np.column_stack((ranges[:, 0], end)))


@dataclass(frozen=True, slots=True)
class Request:
    """A range to fetch, and the numbers of the spans that it contains."""

    span: Span
    numbers: Column


def plan_requests(address: Column, nbytes: Column, network: NetworkPolicy) -> list[Request]:
    """Return requests that fetch every byte of the spans once, in file order. Empty spans need no request.

    Spans share a request if the gap between them is at most the policy's gap, up to the policy's request size. A span
    is never split, so a request may be as large as the largest span. Spans that overlap always share a request.
    """
    wanted = np.flatnonzero(nbytes > 0)
    if len(wanted) == 1:  # usual if many files are read together
        only = int(wanted[0])
        return [Request(Span(int(address[only]), int(nbytes[only])), wanted)]
    order = wanted[np.argsort(address[wanted], kind="stable")]
    starts = address[order]
    reach = np.maximum.accumulate(starts + nbytes[order]) if len(order) else starts
    apart = np.ones(len(order), bool)
    apart[1:] = starts[1:] - reach[:-1] > network.chunk_gap_nbytes
    # A span that overlaps earlier spans must be in the same request.
    may_begin = np.ones(len(order), bool)
    may_begin[1:] = starts[1:] >= reach[:-1]
    ends_of_runs = np.append(np.flatnonzero(apart)[1:], len(order))
    beginnings = np.flatnonzero(may_begin)
    requests = []
    first = 0
    while first < len(order):
        run_end = int(ends_of_runs[np.searchsorted(ends_of_runs, first, side="right")])
        after = int(np.searchsorted(reach, starts[first] + network.chunk_request_nbytes, side="right"))
        after = min(run_end, max(first + 1, after))
        # Move back to the last span that may begin a request. If there is none after `first`, move on to the next one.
        place = int(np.searchsorted(beginnings, after, side="right")) - 1
        if after < len(order) and beginnings[place] != after:
            following = int(beginnings[place + 1]) if place + 1 < len(beginnings) else len(order)
            after = int(beginnings[place]) if beginnings[place] > first else following
        start = int(starts[first])
        requests.append(Request(Span(start, int(reach[after - 1]) - start), order[first:after]))
        first = after
    return requests


def total_nbytes(ranges: Ranges) -> int:
    """Return the sum of the ranges' sizes."""
    return int((ranges[:, 1] - ranges[:, 0]).sum())


def unite_ranges(ranges: Ranges) -> Ranges:
    """Return tidy ranges of the same bytes. Ranges that touch are merged."""
    ranges = ranges[ranges[:, 1] > ranges[:, 0]]
    if not len(ranges):
        return ranges
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    reach = np.maximum.accumulate(ranges[:, 1])
    first = np.flatnonzero(np.concatenate(([True], ranges[1:, 0] > reach[:-1])))
    last = np.append(first[1:], len(ranges)) - 1
    return np.column_stack((ranges[first, 0], reach[last]))


def subtract_ranges(wanted: Ranges, held: Ranges) -> Ranges:
    """Return tidy ranges of the bytes in `wanted` that are not in `held`. Both arguments are tidy."""
    if not len(wanted) or not len(held):
        return wanted
    # Free stretches lie between held ranges. A wanted range is cut where it crosses from one stretch to the next.
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
    """Return `ranges` with gaps closed, smallest first, if that shortens the round or fits the read-ahead limit.

    Requests are prepared while bytes arrive, so a round takes as long as the slower of the two. Closing gaps helps only
    if preparing requests is slower.
    """
    gaps = ranges[1:, 0] - ranges[:-1, 1]
    # A gap that contains held bytes stays open. Otherwise they would be fetched and stored twice.
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
    """Return how many of the smallest gaps to close for the shortest round.

    `cost` is the cumulative size of the gaps. A request takes as long as `request_nbytes` bytes.
    """
    candidates = int(np.searchsorted(gaps, request_nbytes, side="right"))
    bytes_last = nbytes + np.concatenate(([0], cost[:candidates]))
    requests_last = (count - np.arange(candidates + 1)) * request_nbytes
    return int(np.maximum(bytes_last, requests_last).argmin())


def _grow_to_blocks(ranges: Ranges, held: Ranges, nbytes: int, allowance: int, block_nbytes: int) -> Ranges:
    """Return `ranges` extended to aligned blocks of `block_nbytes`, or of a smaller size that fits `allowance`."""
    # Growth stops at held bytes. The free stretch beyond them would need its own request.
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
    """Return the address of the next held byte after each range, or `nbytes` if there is none."""
    ceilings: npt.NDArray[np.int64] = np.append(held[:, 0], nbytes)
    return ceilings[np.searchsorted(held[:, 0], ranges[:, 1], side="left")]


def _split(ranges: Ranges, split_nbytes: int) -> Ranges:
    """Return `ranges`, with larger ones split into pieces of `split_nbytes` and a remainder."""
    counts = -(-(ranges[:, 1] - ranges[:, 0]) // split_nbytes)
    row = np.repeat(np.arange(len(ranges)), counts)
    address = ranges[row, 0] + _count_within(counts) * split_nbytes
    return np.column_stack((address, np.minimum(address + split_nbytes, ranges[row, 1])))


def _count_within(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return 0, 1, 2, ... counts[0] - 1, 0, 1, ... counts[1] - 1, and so on."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
