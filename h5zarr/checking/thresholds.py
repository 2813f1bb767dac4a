"""The numbers at which advice is given, each with its reason; docs/check.md repeats them for users.

They follow from the model of docs/remote.md: an answer begins after 30 ms, 100 MB come in a second, and each request
takes 0.6 ms of the reader's processor.
"""

from __future__ import annotations

from h5zarr.encode.runs import CHUNK_NBYTES

LATENCY_SECONDS = 0.03
BYTES_PER_SECOND = 100e6
"""The network that is assumed where a file is local: a bucket in the same region of a cloud."""

TINY_CHUNK_NBYTES = 64_000
"""Chunks that are smaller, as stored, take longer to ask for than to move: 60 kB come in the 0.6 ms of a request."""

MANY_TINY_CHUNKS = 100
"""Fewer tiny chunks than this are asked for in one go, and nobody notices."""

HUGE_CHUNK_NBYTES = 100_000_000
"""A chunk is decoded as a whole. With eight under way at a time, larger ones take a gigabyte, and a point a second."""

GOOD_CHUNK_NBYTES = CHUNK_NBYTES
"""What is suggested instead, decoded: what h5zarr itself cuts values into that have no chunks. A third of it or so is
stored, which is as much as comes while one waits for it."""

UNCOMPRESSED_NBYTES = 10_000_000
"""Values without a compressor that take at least as much are worth compressing: 0.1 s to move."""

INLINED_NBYTES = 1 << 20
"""An array that puts more into the references than what is inlined by choice makes everybody load it who opens them."""

MANY_REFERENCES = 100_000
"""More chunks than this are better kept as Parquet: as JSON, readers parse 15 MB before they can begin."""

WHOLE_NBYTES = 10_000_000
"""Files up to this are read whole, in one go: it does not matter where their metadata are."""

PLACE_GAP_NBYTES = 64_000
"""Metadata that are further apart are in two places: to read what is between them costs more than another request."""

MANY_PLACES = 16
"""Metadata in more places than this are scattered: they take as many requests, and most often several rounds."""

USER_BLOCK_NBYTES = 1 << 20
"""The beginning of a file that is fetched first. Where the user block is larger, that is wasted."""

PAGE_NBYTES = 4 << 20
"""What is suggested for paged aggregation: room for the metadata of most files in a few pages."""
