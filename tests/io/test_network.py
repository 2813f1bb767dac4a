from __future__ import annotations

import pytest

from h5zarr.io.network import MIB, NetworkPolicy, Pace, PaceMeter


@pytest.mark.parametrize(
    "wrong",
    [
        {"block_nbytes": 0},
        {"concurrency": 0},
        {"latency_seconds": -1},
        {"bytes_per_second": 0},
        {"whole_seconds": -0.1},
        {"ahead_per_use": float("nan")},
        {"attempts": 0},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        NetworkPolicy(**wrong)  # type: ignore[arg-type]


def test_the_limits_follow_from_the_pace() -> None:
    limits = NetworkPolicy().round_limits(Pace(0.03, 100e6), 1000, 0, is_paged=False)
    assert limits.gap_nbytes == 60_000  # what comes in the time of a request
    assert limits.ahead_nbytes == 1_500_000  # half a round trip
    assert limits.whole_nbytes == 10_000_000  # 0.1 s, which is more than two round trips


def test_a_round_trip_that_is_long_is_worth_more_bytes_and_a_slow_network_fewer() -> None:
    far = NetworkPolicy().round_limits(Pace(0.15, 100e6), 1000, 0, is_paged=False)
    assert (far.gap_nbytes, far.ahead_nbytes, far.whole_nbytes) == (156_250, 7_500_000, 30_000_000)
    slow = NetworkPolicy().round_limits(Pace(0.03, 10e6), 1000, 0, is_paged=False)
    assert (slow.gap_nbytes, slow.ahead_nbytes, slow.whole_nbytes) == (6_000, 150_000, 1_000_000)
    near = NetworkPolicy().round_limits(Pace(0.001, 100e6), 1000, 0, is_paged=False)
    assert (near.gap_nbytes, near.ahead_nbytes, near.whole_nbytes) == (60_000, 50_000, 10_000_000)


def test_a_chain_of_rounds_that_is_known_to_come_is_worth_as_many_round_trips() -> None:
    far = Pace(0.15, 100e6)
    assert NetworkPolicy().round_limits(far, 1000, 0, chain_count=5, is_paged=False).whole_nbytes == 75_000_000
    assert NetworkPolicy().round_limits(far, 1000, 0, chain_count=1, is_paged=False).whole_nbytes == 30_000_000
    never = NetworkPolicy(whole_round_trips=0, whole_seconds=0)
    assert never.round_limits(far, 1000, 0, chain_count=5, is_paged=False).whole_nbytes == 0


def test_nothing_larger_than_the_cache_is_read_whole_nor_a_file_with_pages() -> None:
    far = Pace(0.15, 10e9)
    assert NetworkPolicy().round_limits(far, 1000, 0, is_paged=False).whole_nbytes == 128 * MIB
    assert NetworkPolicy().round_limits(far, 1000, 0, is_paged=True).whole_nbytes == 0


def test_reading_ahead_grows_with_what_is_lacking_and_with_what_it_has_earned() -> None:
    limits = NetworkPolicy().round_limits(Pace(0.001, 10e6), 70_000, 5_000, is_paged=False)
    assert limits.ahead_nbytes == 75_000


def test_a_meter_keeps_the_best_answer_within_reason() -> None:
    meter = PaceMeter()
    assert meter.pace == Pace(0.04, 100e6)
    meter.note_response(0.08)
    meter.note_response(0.03)
    meter.note_response(0.5)
    meter.note_bytes(100_000, 1e-6)  # too few to say anything
    meter.note_bytes(MIB, 0.0)
    assert meter.pace == Pace(0.03, 100e6)
    meter.note_bytes(1_000_000, 0.1)
    meter.note_bytes(1_000_000, 0.05)
    assert meter.pace == Pace(0.03, 20e6)
    meter.note_response(1e-9)
    meter.note_bytes(10**9, 1e-6)
    assert meter.pace == Pace(0.0005, 10e9)


def test_what_is_stated_is_not_measured() -> None:
    meter = PaceMeter(latency_seconds=0.0, bytes_per_second=5e6)
    meter.note_response(0.3)
    meter.note_bytes(MIB, 0.01)
    assert meter.pace == Pace(0.0, 5e6)


def test_scanning_and_reading_have_their_own_defaults() -> None:
    policy = NetworkPolicy()
    assert (policy.scan_concurrency, policy.chunk_concurrency) == (96, 32)
    assert policy.round_limits(Pace(0.03, 100e6), 0, 0, is_paged=False).request_nbytes == 4 * MIB
    stated = NetworkPolicy(concurrency=7, request_nbytes=MIB)
    assert (stated.scan_concurrency, stated.chunk_concurrency) == (7, 7)
    assert stated.chunk_request_nbytes == stated.round_limits(Pace(1, 1e9), 0, 0, is_paged=False).request_nbytes == MIB


def test_a_mapping_becomes_a_policy() -> None:
    assert NetworkPolicy.from_mapping({"attempts": 5}) == NetworkPolicy(attempts=5)
    with pytest.raises(ValueError, match=r"^network has no 'hurry'; it has latency_seconds, bytes_per_second, "):
        NetworkPolicy.from_mapping({"hurry": 1})
    with pytest.raises(TypeError, match=r"^attempts must be a number, not str$"):
        NetworkPolicy.from_mapping({"attempts": "many"})
    with pytest.raises(ValueError, match=r"^attempts is 1\.5, but must be a whole number$"):
        NetworkPolicy.from_mapping({"attempts": 1.5})
