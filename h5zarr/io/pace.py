"""How fast a source answers, as it shows while it is read."""

from __future__ import annotations

from dataclasses import dataclass

# What is supposed until something has been measured: an object store, seen from somewhere else.
USUAL_LATENCY_SECONDS = 0.04
USUAL_BYTES_PER_SECOND = 100e6

_LATENCY_RANGE = 0.0005, 2.0
_BANDWIDTH_RANGE = 1e6, 10e9
_LEAST_NBYTES = 256 * 1024  # of a smaller answer, most has come by the time that somebody looks


@dataclass(frozen=True, slots=True)
class Pace:
    """How long an answer takes to begin, and how many bytes a second come then, in all answers together."""

    latency_seconds: float
    bytes_per_second: float

    @property
    def round_trip_nbytes(self) -> int:
        """What could have come in the time that a round trip waits."""
        return round(self.latency_seconds * self.bytes_per_second)


class PaceMeter:
    """Learns the pace from answers. What is stated beforehand is not measured."""

    def __init__(self, latency_seconds: float | None = None, bytes_per_second: float | None = None) -> None:
        self._stated = latency_seconds, bytes_per_second
        self._shortest: float | None = None
        self._fastest: float | None = None

    @property
    def pace(self) -> Pace:
        """The best that was seen: other answers had to wait for each other, or for this process."""
        latency, bandwidth = self._stated
        if latency is None:
            latency = _within(_LATENCY_RANGE, self._shortest or USUAL_LATENCY_SECONDS)
        if bandwidth is None:
            bandwidth = _within(_BANDWIDTH_RANGE, self._fastest or USUAL_BYTES_PER_SECOND)
        return Pace(latency, bandwidth)

    def note_answer(self, wait_seconds: float) -> None:
        """Learn from an answer how long it took to begin."""
        self._shortest = wait_seconds if self._shortest is None else min(self._shortest, wait_seconds)

    def note_bytes(self, nbytes: int, seconds: float) -> None:
        """Learn from bytes how long they took to come, once they had begun."""
        if nbytes >= _LEAST_NBYTES and seconds > 0:
            self._fastest = max(self._fastest or 0.0, nbytes / seconds)


def _within(limits: tuple[float, float], measured: float) -> float:
    return min(max(measured, limits[0]), limits[1])
