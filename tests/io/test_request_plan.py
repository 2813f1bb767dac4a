from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h5zarr.io.network import MIB, NetworkPolicy
from h5zarr.io.plan import plan_requests


def plan(spans: list[tuple[int, int]], policy: NetworkPolicy) -> list[tuple[int, int, list[int]]]:
    columns = np.array(spans, np.int64).reshape(-1, 2)
    requests = plan_requests(columns[:, 0], columns[:, 1], policy)
    return [(one.span.address, one.span.nbytes, one.numbers.tolist()) for one in requests]


def test_limits_follow_from_latency_and_bandwidth() -> None:
    assert (NetworkPolicy().chunk_request_nbytes, NetworkPolicy().chunk_gap_nbytes) == (4 * MIB, 125_000)
    near = NetworkPolicy(latency_seconds=0.001, bytes_per_second=1e9)
    assert (near.chunk_request_nbytes, near.chunk_gap_nbytes) == (MIB, 31_250)
    far = NetworkPolicy(latency_seconds=0.15, bytes_per_second=100e6)
    assert far.chunk_request_nbytes == 15 * MIB
    assert NetworkPolicy(latency_seconds=0).chunk_gap_nbytes == 0


@pytest.mark.parametrize(
    "wrong", [{"concurrency": 0}, {"bytes_per_second": 0}, {"attempts": -1}, {"latency_seconds": -1}]
)
def test_a_policy_that_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} is"):
        NetworkPolicy(**wrong)  # type: ignore[arg-type]


def test_neighbours_come_together_up_to_the_size_of_a_request() -> None:
    chunks = [(n * MIB, MIB) for n in range(10)]
    assert [(at // MIB, size // MIB) for at, size, _ in plan(chunks, NetworkPolicy())] == [(0, 4), (4, 4), (8, 2)]


def test_a_small_gap_is_read_and_a_large_one_is_not() -> None:
    gap = NetworkPolicy().chunk_gap_nbytes
    assert plan([(0, 10), (10 + gap, 10)], NetworkPolicy()) == [(0, 20 + gap, [0, 1])]
    assert plan([(0, 10), (11 + gap, 10)], NetworkPolicy()) == [(0, 10, [0]), (11 + gap, 10, [1])]


def test_a_chunk_that_is_larger_than_a_request_is_not_cut() -> None:
    assert plan([(0, 9 * MIB), (9 * MIB, 10)], NetworkPolicy()) == [(0, 9 * MIB, [0]), (9 * MIB, 10, [1])]


def test_a_chunk_that_is_wanted_twice_is_fetched_once() -> None:
    assert plan([(5, 10), (100, 1), (5, 10)], NetworkPolicy()) == [(5, 96, [0, 2, 1])]


def test_nothing_is_asked_for_nothing() -> None:
    assert plan([], NetworkPolicy()) == []
    assert plan([(7, 0)], NetworkPolicy()) == []


@given(
    spans=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 40)), max_size=30),
    request_mib=st.integers(1, 3),
    scale=st.sampled_from([1, 1000, MIB // 7]),
)
def test_every_span_is_in_one_request_and_no_byte_in_two(
    spans: list[tuple[int, int]], request_mib: int, scale: int
) -> None:
    spans = [(address * scale, nbytes * scale) for address, nbytes in spans]
    policy = NetworkPolicy(latency_seconds=1, bytes_per_second=request_mib * MIB, concurrency=16)
    requests = plan(spans, policy)
    assert sorted(number for *_, numbers in requests for number in numbers) == [
        number for number, (_, nbytes) in enumerate(spans) if nbytes
    ]
    for address, nbytes, numbers in requests:
        assert all(address <= spans[n][0] and sum(spans[n]) <= address + nbytes for n in numbers)
        assert min(spans[n][0] for n in numbers) == address
        assert max(sum(spans[n]) for n in numbers) == address + nbytes
    ends = [(address, address + nbytes) for address, nbytes, _ in requests]
    assert all(end <= start for (_, end), (start, _) in pairwise(ends))
    asked = len(set().union(*(range(a // scale, (a + n) // scale) for a, n in spans))) * scale if spans else 0
    gaps = policy.chunk_gap_nbytes * len(spans)
    assert sum(nbytes for _, nbytes, _ in requests) <= asked + gaps
