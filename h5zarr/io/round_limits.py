"""What one round may do. Without numpy, so that to open a local file does not take it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundLimits:
    """What one round may do. A gap of up to `gap_nbytes` costs less than a request, and may be closed to spare one.

    `ahead_nbytes` may be read of what is near to what is asked for, `behind_nbytes` where only that may go on.
    """

    gap_nbytes: int
    ahead_nbytes: int
    behind_nbytes: int
    whole_nbytes: int
    block_nbytes: int
    request_nbytes: int
