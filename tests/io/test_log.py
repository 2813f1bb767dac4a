from __future__ import annotations

import pytest

from h5zarr.io.log import RequestLog, format_nbytes


def test_a_log_reads_as_a_sentence() -> None:
    assert str(RequestLog(rounds=7, requests=12, nbytes=800_000, infos=1)) == "7 rounds, 12 requests, 0.8 MB"
    assert str(RequestLog(rounds=1, requests=1, nbytes=1)) == "1 round, 1 request, 1 byte"


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (2048, "2.0 kB"), (100_000, "0.1 MB"), (5 * 10**9, "5000.0 MB")],
)
def test_sizes_are_shown_in_powers_of_a_thousand(nbytes: int, text: str) -> None:
    assert format_nbytes(nbytes) == text
