from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h5zarr.io.plan import Ranges, add_rest, plan_fetches, subtract_ranges, total_nbytes, unite_ranges
from h5zarr.io.policy import KIB, MIB, ReadPolicy

FILE_NBYTES = 400
NOTHING: Ranges = np.empty((0, 2), dtype=np.int64)


def ranges(*pairs: tuple[int, int]) -> Ranges:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def places(given_ranges: Iterable[Iterable[int]]) -> set[int]:
    return {place for address, end in given_ranges for place in range(address, end)}


pair = st.tuples(st.integers(0, FILE_NBYTES), st.integers(0, FILE_NBYTES)).map(lambda ends: (min(ends), max(ends)))
any_ranges = st.lists(pair, max_size=12).map(lambda pairs: ranges(*pairs))
policies = st.builds(
    ReadPolicy,
    block_nbytes=st.sampled_from([1, 2, 8, 64, 1024]),
    gap_nbytes=st.integers(0, 100),
    slack_nbytes=st.integers(0, 300),
    max_overhead=st.floats(1, 3),
    split_nbytes=st.integers(1, 500),
)


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


@given(any_ranges, any_ranges, st.lists(st.integers(0, FILE_NBYTES), max_size=5), policies)
def test_a_plan_covers_what_is_asked_within_its_bounds(
    wanted: Ranges, held: Ranges, cuts: list[int], policy: ReadPolicy
) -> None:
    held = unite_ranges(held)
    for cut in cuts:  # blocks that touch each other, as pieces of one large range do
        row = np.flatnonzero((held[:, 0] < cut) & (cut < held[:, 1]))
        if len(row):
            held = np.insert(held, row[0] + 1, [cut, held[row[0], 1]], axis=0)
            held[row[0], 1] = cut
    found = plan_fetches(wanted, held, FILE_NBYTES, policy)
    fetched, lacking = places(found.tolist()), places(wanted.tolist()) - places(held.tolist())
    assert is_tidy(found)
    assert lacking <= fetched <= set(range(FILE_NBYTES))
    assert not fetched & places(held.tolist())
    assert ((found[:, 1] - found[:, 0]) <= policy.split_nbytes).all()
    assert total_nbytes(found) <= len(lacking) + max(policy.slack_nbytes, int((policy.max_overhead - 1) * len(lacking)))
    assert bool(lacking) == bool(len(found))


@given(any_ranges, any_ranges)
def test_a_round_never_makes_more_requests_than_it_lacks_stretches(wanted: Ranges, held: Ranges) -> None:
    lacking = subtract_ranges(unite_ranges(wanted), unite_ranges(held))
    assert len(plan_fetches(wanted, unite_ranges(held), FILE_NBYTES, ReadPolicy())) <= len(lacking)


def test_a_single_small_span_becomes_one_aligned_block() -> None:
    found = plan_fetches(ranges((100_000, 100_010)), NOTHING, 10**9, ReadPolicy(block_nbytes=32 * KIB))
    assert found.tolist() == [[98_304, 131_072]]


def test_growth_stops_at_what_is_held_and_at_the_end_of_the_file() -> None:
    held = ranges((98_304, 99_000))
    assert plan_fetches(ranges((100_000, 100_010)), held, 100_020, ReadPolicy()).tolist() == [[99_000, 100_020]]


def test_neighbours_are_fetched_as_one() -> None:
    found = plan_fetches(ranges((0, 10), (60_000, 60_010), (120_000, 120_010)), NOTHING, 10**9, ReadPolicy())
    assert found.tolist() == [[0, 131_072]]


def test_a_gap_with_held_bytes_in_it_stays_open() -> None:
    found = plan_fetches(ranges((0, 10), (50, 60)), ranges((20, 30)), 1000, ReadPolicy())
    assert found.tolist() == [[0, 20], [30, 1000]]


def test_the_smallest_gaps_are_closed_first() -> None:
    policy = ReadPolicy(slack_nbytes=30, max_overhead=1, block_nbytes=1)
    found = plan_fetches(ranges((0, 10), (40, 50), (60, 70), (80, 90)), NOTHING, 1000, policy)
    assert found.tolist() == [[0, 10], [40, 90]]


def test_a_large_span_is_split() -> None:
    found = plan_fetches(ranges((0, 10 * MIB)), NOTHING, 10 * MIB, ReadPolicy(split_nbytes=4 * MIB))
    assert found.tolist() == [[0, 4 * MIB], [4 * MIB, 8 * MIB], [8 * MIB, 10 * MIB]]


def scattered_nodes(count: int = 17_000, node_nbytes: int = 2048, file_nbytes: int = 134_000_000) -> Ranges:
    address = np.linspace(0, file_nbytes - node_nbytes, count).astype(np.int64)
    return np.column_stack((address, address + node_nbytes))[np.random.default_rng(1).permutation(count)]


def test_nodes_scattered_over_a_file_move_less_than_half_of_it() -> None:
    wanted = scattered_nodes()
    found = plan_fetches(wanted, NOTHING, 134_000_000, ReadPolicy(), lone=True)
    assert total_nbytes(found) <= 1.3 * total_nbytes(wanted)
    assert total_nbytes(found) < 134_000_000 / 2
    assert len(found) < len(wanted)


@pytest.mark.parametrize(
    "wrong",
    [
        {"block_nbytes": 0},
        {"concurrency": 0},
        {"gap_nbytes": -1},
        {"max_overhead": 0.5},
        {"lone_overhead": 0},
        {"attempts": 0},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ReadPolicy(**wrong)


@given(any_ranges, any_ranges, st.floats(0, 1))
def test_the_rest_of_a_file_is_added_where_it_is_a_small_share(fetched: Ranges, held: Ranges, share: float) -> None:
    held = unite_ranges(held)
    fetches = subtract_ranges(unite_ranges(fetched), held)
    policy = ReadPolicy(rest_share=share, split_nbytes=64)
    found = add_rest(fetches, held, FILE_NBYTES, policy)
    unread = FILE_NBYTES - len(places(held.tolist()) | places(fetches.tolist()))
    if not len(fetches) or unread > share * FILE_NBYTES:
        assert found.tolist() == fetches.tolist()
    else:
        assert is_tidy(found)
        assert places(found.tolist()) == set(range(FILE_NBYTES)) - places(held.tolist())
        assert (found[:, 1] - found[:, 0]).max() <= policy.split_nbytes


def test_the_rest_of_a_file_that_the_cache_cannot_hold_is_not_added() -> None:
    policy = ReadPolicy(rest_share=1, cache_nbytes=FILE_NBYTES - 1)
    assert add_rest(ranges((0, 390)), NOTHING, FILE_NBYTES, policy).tolist() == [[0, 390]]
