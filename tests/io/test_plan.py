from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h5zarr.io.network import KIB, MIB, RoundLimits
from h5zarr.io.plan import Ranges, plan_fetches, subtract_ranges, total_nbytes, unite_ranges

FILE_NBYTES = 400
NOTHING: Ranges = np.empty((0, 2), dtype=np.int64)


def ranges(*pairs: tuple[int, int]) -> Ranges:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def places(given_ranges: Iterable[Iterable[int]]) -> set[int]:
    return {place for address, end in given_ranges for place in range(address, end)}


pair = st.tuples(st.integers(0, FILE_NBYTES), st.integers(0, FILE_NBYTES)).map(lambda ends: (min(ends), max(ends)))
any_ranges = st.lists(pair, max_size=12).map(lambda pairs: ranges(*pairs))
any_limits = st.builds(
    RoundLimits,
    gap_nbytes=st.integers(0, 100),
    ahead_nbytes=st.integers(0, 300),
    behind_nbytes=st.integers(0, 300),
    whole_nbytes=st.integers(0, 100),
    block_nbytes=st.sampled_from([1, 2, 8, 64, 1024]),
    request_nbytes=st.integers(1, 500),
)
LIMITS = RoundLimits(
    gap_nbytes=0, ahead_nbytes=0, behind_nbytes=0, whole_nbytes=0, block_nbytes=1, request_nbytes=4 * MIB
)


def plan(wanted: Ranges, held: Ranges, nbytes: int, limits: RoundLimits, alone: Ranges = NOTHING) -> Ranges:
    lacking = subtract_ranges(unite_ranges(wanted), held)
    return plan_fetches(lacking, held, nbytes, limits, alone=unite_ranges(alone))


def is_tidy(found: Ranges) -> bool:
    return bool((found[:, 0] < found[:, 1]).all() and (found[1:, 0] >= found[:-1, 1]).all())


@given(any_ranges)
def test_a_union_is_tidy_and_holds_the_same_bytes(wanted: Ranges) -> None:
    united = unite_ranges(wanted)
    assert is_tidy(united)
    assert (united[1:, 0] > united[:-1, 1]).all()
    assert places(united.tolist()) == places(wanted.tolist())


@given(any_ranges, any_ranges)
def test_a_difference_holds_exactly_what_is_not_held(wanted: Ranges, held: Ranges) -> None:
    left = subtract_ranges(unite_ranges(wanted), unite_ranges(held))
    assert is_tidy(left)
    assert places(left.tolist()) == places(wanted.tolist()) - places(held.tolist())


@given(any_ranges, any_ranges, st.lists(st.integers(0, FILE_NBYTES), max_size=5), any_limits, any_ranges)
def test_a_plan_covers_what_is_asked_within_its_bounds(
    wanted: Ranges, held: Ranges, cuts: list[int], limits: RoundLimits, alone: Ranges
) -> None:
    held = unite_ranges(held)
    for cut in cuts:  # blocks that touch each other, as pieces of one large range do
        row = np.flatnonzero((held[:, 0] < cut) & (cut < held[:, 1]))
        if len(row):
            held = np.insert(held, row[0] + 1, [cut, held[row[0], 1]], axis=0)
            held[row[0], 1] = cut
    found = plan(wanted, held, FILE_NBYTES, limits, alone)
    fetched, lacking = places(found.tolist()), places(wanted.tolist()) - places(held.tolist())
    assert is_tidy(found)
    assert lacking <= fetched <= set(range(FILE_NBYTES))
    assert not fetched & places(held.tolist())
    assert ((found[:, 1] - found[:, 0]) <= limits.request_nbytes).all()
    assert bool(lacking) == bool(len(found))
    is_rest = len(fetched) == FILE_NBYTES - len(places(held.tolist()))
    gaps = limits.gap_nbytes * max(0, len(unite_ranges(wanted)) + len(alone) - 1)
    assert len(fetched) <= len(lacking) + limits.ahead_nbytes + limits.behind_nbytes + 2 * gaps or (
        is_rest and len(fetched) <= max(limits.whole_nbytes, len(lacking) + limits.ahead_nbytes)
    )


@given(any_ranges, any_ranges, any_limits)
def test_a_round_never_makes_more_requests_than_it_lacks_stretches(
    wanted: Ranges, held: Ranges, limits: RoundLimits
) -> None:
    held = unite_ranges(held)
    lacking = subtract_ranges(unite_ranges(wanted), held)
    found = plan(wanted, held, FILE_NBYTES, replace(limits, whole_nbytes=0, request_nbytes=FILE_NBYTES))
    rest = subtract_ranges(ranges((0, FILE_NBYTES)), held)
    assert len(found) <= len(lacking) or places(found.tolist()) == places(rest.tolist())


def test_the_rest_of_a_file_is_read_if_it_is_small() -> None:
    held = ranges((0, 600))
    assert plan(ranges((700, 710)), held, 1000, replace(LIMITS, whole_nbytes=400)).tolist() == [[600, 1000]]
    assert plan(ranges((700, 710)), held, 1000, replace(LIMITS, whole_nbytes=399)).tolist() == [[700, 710]]


def test_a_single_small_span_becomes_one_aligned_block() -> None:
    limits = replace(LIMITS, block_nbytes=32 * KIB, ahead_nbytes=MIB)
    assert plan(ranges((100_000, 100_010)), NOTHING, 10**9, limits).tolist() == [[98_304, 131_072]]


def test_growth_stops_at_what_is_held_and_at_the_end_of_the_file() -> None:
    limits = replace(LIMITS, block_nbytes=32 * KIB, ahead_nbytes=2000)
    held = ranges((98_304, 99_000))
    assert plan(ranges((100_000, 100_010)), held, 100_020, limits).tolist() == [[99_000, 100_020]]


def test_what_is_alone_is_read_on_but_its_neighbours_are_not_read() -> None:
    limits = replace(LIMITS, block_nbytes=32 * KIB, ahead_nbytes=200_000, behind_nbytes=8000)
    wanted, alone = ranges((100, 110), (500_000, 504_096), (900_000, 900_010)), ranges((500_000, 504_096))
    found = plan(wanted, ranges((511_000, 512_000)), 900_020, limits, alone)
    assert found.tolist() == [[0, 32 * KIB], [500_000, 511_000], [884_736, 900_020]]
    both = plan(wanted, NOTHING, 900_020, limits, ranges((0, 200), (500_000, 504_096), (900_000, 900_010)))
    assert both.tolist() == [[100, 2776], [500_000, 506_762], [900_000, 900_020]]


def test_what_is_alone_is_read_on_no_further_than_a_collection_may_reach() -> None:
    limits = replace(LIMITS, behind_nbytes=MIB)
    assert plan(ranges((0, 4096)), NOTHING, 10**9, limits, ranges((0, 4096))).tolist() == [[0, 16 * KIB]]


def test_a_gap_that_costs_less_than_a_request_is_closed() -> None:
    wanted = ranges((0, 10), (60_010, 60_020), (120_021, 120_030))
    limits = replace(LIMITS, gap_nbytes=60_000)
    assert plan(wanted, NOTHING, 10**9, limits).tolist() == [[0, 60_020], [120_021, 120_030]]


def test_a_gap_with_held_bytes_in_it_stays_open() -> None:
    found = plan(ranges((0, 10), (50, 60)), ranges((20, 30)), 1000, replace(LIMITS, gap_nbytes=100))
    assert found.tolist() == [[0, 10], [50, 60]]


def test_the_smallest_gaps_are_closed_first() -> None:
    limits = replace(LIMITS, ahead_nbytes=20, block_nbytes=64)
    found = plan(ranges((0, 10), (50, 60), (70, 80), (90, 100)), NOTHING, 1000, limits)
    assert found.tolist() == [[0, 10], [50, 100]]


def test_a_large_span_is_split() -> None:
    found = plan(ranges((0, 10 * MIB)), NOTHING, 10 * MIB, LIMITS)
    assert found.tolist() == [[0, 4 * MIB], [4 * MIB, 8 * MIB], [8 * MIB, 10 * MIB]]


def scattered_nodes(count: int = 17_000, node_nbytes: int = 2048, file_nbytes: int = 134_000_000) -> Ranges:
    address = np.linspace(0, file_nbytes - node_nbytes, count).astype(np.int64)
    return np.column_stack((address, address + node_nbytes))[np.random.default_rng(1).permutation(count)]


def test_scattered_nodes_are_picked_where_bytes_are_dear_and_swept_up_where_they_are_cheap() -> None:
    wanted = scattered_nodes()
    slow = plan(wanted, NOTHING, 134_000_000, replace(LIMITS, gap_nbytes=5000))
    assert len(slow) == len(wanted)
    assert total_nbytes(slow) == total_nbytes(wanted)
    fast = plan(wanted, NOTHING, 134_000_000, replace(LIMITS, gap_nbytes=60_000))
    assert len(fast) < 2_100
    # The round waits neither for bytes nor for requests, which take as long as 60 kB each.
    assert total_nbytes(fast) == pytest.approx(60_000 * len(fast), rel=0.02)


def test_gaps_stay_open_where_requests_are_not_what_a_round_waits_for() -> None:
    wanted = ranges((0, 400_000), (450_000, 850_000), (900_000, 1_300_000))
    assert len(plan(wanted, NOTHING, 10**9, replace(LIMITS, gap_nbytes=60_000))) == 3
    assert len(plan(wanted, NOTHING, 10**9, replace(LIMITS, gap_nbytes=600_000))) == 2
