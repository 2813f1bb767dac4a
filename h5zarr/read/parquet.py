"""References in Parquet, which are a directory: its files read together."""

from __future__ import annotations

import os
from functools import partial

from h5zarr.errors import SourceGone
from h5zarr.io.grammar import find_named, split_chain, split_query
from h5zarr.io.ranges import open_ranges
from h5zarr.io.url import display_url, find_local_path
from h5zarr.read.sources import Sources, in_each, options_for
from h5zarr.refs.parquet import METADATA, decode_index, decode_parquet
from h5zarr.refs.reading import References

_SUFFIXES = (".parquet", ".parq")


def is_parquet(url: str) -> bool:
    """Return whether references in Parquet are there: by what is in a local directory, or by the name of another."""
    path = find_local_path(url)
    if path is not None:
        return os.path.isfile(os.path.join(path, METADATA))
    links = split_chain(url)
    return split_query(links[find_named(links)])[0].rstrip("/").endswith(_SUFFIXES)


def read_parquet(url: str, sources: Sources) -> References:
    """Return the references in the directory at `url`. A file that is not there has no chunks; other failures raise."""
    links = split_chain(url) if find_local_path(url) is None else [url]
    place = find_named(links)
    directory, query = split_query(links[place])
    options = options_for(url, sources.storage_options)

    def read(name: str) -> bytes:
        inside = f"{directory.rstrip('/')}/{name}{query}"
        reader = open_ranges("::".join([*links[:place], inside, *links[place + 1 :]]), options, sources.policy)
        sources.keep(reader)
        return reader.read_whole()

    shown = display_url(url)
    index = decode_index(read(METADATA), shown)
    contents: dict[str, bytes] = {}

    def read_part(name: str) -> None:
        try:
            contents[name] = read(name)
        except SourceGone:
            return

    in_each([partial(read_part, part.name) for part in index.parts])
    return decode_parquet(index, contents, shown)
