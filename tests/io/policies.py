"""Policies without measurements, so that tests can predict what a round fetches."""

from __future__ import annotations

from h5zarr.io.network import MIB, NetworkPolicy

# Fetch exactly the requested bytes.
EXACT = NetworkPolicy(
    latency_seconds=0,
    bytes_per_second=100e6,
    request_seconds=0,
    whole_seconds=0,
    ahead_share=0,
    ahead_per_use=0,
    block_nbytes=1,
    first_read_nbytes=0,
)

# A file of 8 MiB is read in several rounds: a round trip costs as much as 1 MB, a request as much as 60 kB.
LARGE = NetworkPolicy(
    latency_seconds=0.01, bytes_per_second=100e6, whole_round_trips=4, whole_seconds=0, block_nbytes=MIB // 32
)
