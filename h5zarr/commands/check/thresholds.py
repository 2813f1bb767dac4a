"""The thresholds of advice, each with its reason. docs/check.md repeats them for users.

They follow from the model in docs/remote.md: a latency of 30 ms, a bandwidth of 100 MB/s, and 0.6 ms of the reader's
CPU time per request.
"""

from __future__ import annotations

from h5zarr.encode.runs import CHUNK_NBYTES

LATENCY_SECONDS = 0.03
BYTES_PER_SECOND = 100e6
"""The network assumed for local files: a bucket in the same cloud region."""

TINY_CHUNK_NBYTES = 64_000
"""Smaller stored chunks take longer to request than to transfer: 60 kB arrive in the 0.6 ms of a request."""

MANY_TINY_CHUNKS = 100
"""Fewer tiny chunks than this are requested all at once, and the cost goes unnoticed."""

HUGE_CHUNK_NBYTES = 100_000_000
"""A chunk is decoded whole. With eight in progress, larger ones take a gigabyte, and reading a point takes a second."""

GOOD_CHUNK_NBYTES = CHUNK_NBYTES
"""The decoded size suggested instead: the size into which h5zarr itself splits values without chunks. About a third of
it is stored, which is what arrives within the latency of a request."""

UNCOMPRESSED_NBYTES = 10_000_000
"""Uncompressed values of at least this size are worth compressing: they take 0.1 s to transfer."""

INLINED_NBYTES = 1 << 20
"""An array that inlines more than the default limit slows down everyone who opens the references."""

MANY_REFERENCES = 100_000
"""More chunks than this belong in Parquet: with JSON, readers parse 15 MB before they can start."""

WHOLE_NBYTES = 10_000_000
"""Files up to this size are read whole, in one request: it does not matter where their metadata are."""

PLACE_GAP_NBYTES = 64_000
"""Metadata further apart than this count as two places: reading the gap costs more than another request."""

MANY_PLACES = 16
"""Metadata in more places than this are scattered: they take as many requests, and usually several rounds."""

USER_BLOCK_NBYTES = 1 << 20
"""The size of the first request to a file. A user block of this size or more makes it useless."""

PAGE_NBYTES = 4 << 20
"""The page size suggested for paged aggregation: the metadata of most files fit in a few pages."""
