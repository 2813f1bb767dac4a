"""References wherever they are kept: what they hold, and the files that they refer to, which are not opened."""

from __future__ import annotations

from dataclasses import replace

from h5zarr.errors import Unsupported
from h5zarr.icechunk.storage import MARK, is_icechunk
from h5zarr.io.grammar import find_named, split_chain, split_query
from h5zarr.io.ranges import open_ranges
from h5zarr.io.source import Source
from h5zarr.io.span import Span
from h5zarr.io.url import display_url, find_local_path
from h5zarr.limits import USUAL, Limits
from h5zarr.read.parquet import is_parquet, read_parquet
from h5zarr.read.sources import Sources, options_for
from h5zarr.refs.compression import peek
from h5zarr.refs.reading import References, decode_references, is_references

_SNIFFED_NBYTES = 64
_PEEKED_NBYTES = 1 << 18  # of a file compressed by zstd, nothing is known before a block of 128 KiB
_SUFFIXES = (".json", ".json.gz", ".json.zst")
_REFERENCES_THEMSELVES = 'Give the path or URL of the references instead, that which is "fo" in the storage options.'


def find_references(url: str, sources: Sources, at: str | None = None) -> tuple[References, Sources] | None:
    """Return the references at `url`, if it is one that is known to lead to some before anything is read.

    `sources` are how files are to be read. They come back with what the references say of it, if nobody else does.
    `at` is the branch, tag or snapshot of an Icechunk repository.
    """
    options = sources.storage_options
    if url.startswith("reference://"):
        raise Unsupported(
            f"{display_url(url)}: fsspec's view of references is not read here", remedy=_REFERENCES_THEMSELVES
        )
    if is_icechunk(url):
        from h5zarr.icechunk.reading import read_icechunk

        snapshot = read_icechunk(url, options_for(url[len(MARK) :], options), at)
        told = {"s3": snapshot.source_options} if snapshot.source_options and not options else options
        return snapshot.references, replace(sources, storage_options=told)
    if at is not None:
        what = f"{display_url(url)}: only an Icechunk repository has branches, tags and snapshots"
        raise Unsupported(what, remedy="Do without --at.")
    if is_parquet(url):
        return read_parquet(url, sources), sources
    links = split_chain(url)
    if find_local_path(url) is None and split_query(links[find_named(links)])[0].endswith(_SUFFIXES):
        # Known to be references before anything is read, and so one request is enough.
        reader = open_ranges(url, options_for(url, options), sources.policy)
        sources.keep(reader)
        return decode_references(reader.read_whole(), display_url(url), sources.limits), sources
    return None


def are_references(url: str) -> bool:
    """Return whether references seem to be at `url`, by its name, or by the first bytes of a local file."""
    path = find_local_path(url)
    if is_icechunk(url) or is_parquet(url):
        return True
    if path is None:
        links = split_chain(url)
        return split_query(links[find_named(links)])[0].endswith(_SUFFIXES)
    try:
        with open(path, "rb") as file:
            return peek(file.read(_PEEKED_NBYTES), 1) == b"{"
    except OSError:
        return False


def decode_source(source: Source, url: str, limits: Limits = USUAL) -> References | None:
    """Return the references that an open file is, or None if it is something else; `url` is how the user calls it."""
    (head,) = source.read_many([Span(0, min(_SNIFFED_NBYTES, source.nbytes))])
    if not is_references(bytes(head)):
        return None
    shown = display_url(url)
    limits.check("references_nbytes", source.nbytes, f"{shown}: the references take {source.nbytes:,} bytes")
    (content,) = source.read_many([Span(0, source.nbytes)])
    return decode_references(bytes(content), shown, limits)
