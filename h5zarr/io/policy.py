"""How to read a source that is far away."""

from __future__ import annotations

from dataclasses import dataclass, fields

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPolicy:
    """The trade between bytes, requests and rounds. Local files are memory-mapped and need none of it.

    The defaults suppose a round trip of 50 to 100 ms and some 50 MB/s, as of an object store: a round trip is worth a
    few megabytes, and one more request in the same round is worth some tens of kilobytes.
    """

    block_nbytes: int = 128 * KIB
    """What is fetched grows to multiples of this, as far as the round's allowance goes. A power of two."""

    gap_nbytes: int = 256 * KIB
    """Two ranges that are at most this far apart may be fetched as one."""

    slack_nbytes: int = 4 * MIB
    """What any round may fetch beyond what it asks for: less time than the round trip that it may save."""

    max_overhead: float = 16.0
    """A round may fetch this many times what it asks for: structures lie next to others that are asked for later."""

    lone_overhead: float = 1.3
    """The same for a round of lone spans, nodes of a chunk index between the chunks: nobody asks for what is there."""

    split_nbytes: int = 4 * MIB
    """No request is larger; what is larger is fetched in pieces, at the same time."""

    concurrency: int = 96
    """How many requests are under way at once. Below the 100 connections that aiohttp opens."""

    cache_nbytes: int = 128 * MIB
    """What is kept between rounds. What one round asks for may exceed it, but is not kept."""

    whole_file_nbytes: int = 16 * MIB
    """A file of at most this size is read whole, with the first read: in less time than a handful of rounds takes."""

    rest_share: float = 0.25
    """When at most this share of the file would be left unread by a round, the round reads it, too."""

    first_read_nbytes: int = 1 * MIB
    """How much of the file's beginning is fetched with the first read; most metadata is there."""

    timeout_seconds: float = 60.0
    """How long one request may take. Synchronous file systems of fsspec know no time-out but their own."""

    attempts: int = 3
    """How often a request is made that fails in a way that may pass: HTTP 429, 500, 502-504, a lost connection."""

    def __post_init__(self) -> None:
        for name in ("block_nbytes", "split_nbytes", "concurrency", "timeout_seconds", "attempts"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}, but must be positive")
        for field in fields(self):
            if getattr(self, field.name) < 0:
                raise ValueError(f"{field.name} is {getattr(self, field.name)}, but must not be negative")
        for name in ("max_overhead", "lone_overhead"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, but a round fetches at least what it asks for: 1")
