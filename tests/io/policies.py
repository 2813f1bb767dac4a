"""Policies with which a test can say what a round fetches: nothing is measured."""

from __future__ import annotations

from h5zarr.io.network import MIB, NetworkPolicy

# Bytes exactly as asked.
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

# With which a file of 8 MiB is neither read whole nor in two strokes: a round trip is worth 1 MB, a request 60 kB.
LARGE = NetworkPolicy(
    latency_seconds=0.01, bytes_per_second=100e6, whole_round_trips=4, whole_seconds=0, block_nbytes=MIB // 32
)
