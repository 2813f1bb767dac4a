"""References in Parquet, which are a directory: files of it read together, when they are needed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from urllib.parse import quote

from h5zarr.errors import SourceGone
from h5zarr.io.grammar import find_named, protocol_of, split_chain, split_query
from h5zarr.io.ranges import open_ranges
from h5zarr.io.url import display_url, find_local_path
from h5zarr.read.sources import Sources, in_each, options_for
from h5zarr.refs.output_directory import SUFFIXES
from h5zarr.refs.parquet import ParquetIndex, decode_index, decode_parquet
from h5zarr.refs.parquet_writing import METADATA
from h5zarr.refs.reading import References

_MOST_HELD = 256
_PLAIN = "/!$&'()*+,;=:@"  # besides letters and digits, what may stand in the path of a URL as it is


def is_parquet(url: str) -> bool:
    """Return whether references in Parquet are there: by what is in a local directory, or by the name of another."""
    path = find_local_path(url)
    if path is not None:
        return os.path.isfile(os.path.join(path, METADATA))
    links = split_chain(url)
    return split_query(links[find_named(links)])[0].rstrip("/").endswith(SUFFIXES)


def read_parquet(url: str, sources: Sources) -> References:
    """Return the references in the directory at `url`. A file that is not there has no chunks; other failures raise."""
    directory = open_directory(url, sources)
    shown = display_url(url)
    index = decode_index(directory.read(METADATA), shown)
    if find_local_path(url) is None and index.own is not None:
        directory = replace(directory, held=directory.load(_wanted_first(index)))
    return decode_parquet(index, directory.load, shown)


def open_directory(url: str, sources: Sources) -> ReferenceDirectory:
    """Return the directory at `url`, of which nothing is read yet."""
    path = find_local_path(url)
    # Absolute: some files are read later, wherever this process or its children then are.
    return ReferenceDirectory(url if path is None else os.path.abspath(path), sources)


def _wanted_first(index: ParquetIndex) -> tuple[str, ...]:
    """Return files that whoever opens far references will want: coordinates have one chunk, and one request each."""
    names = [part.name for array in index.arrays if prod(array.grid) == 1 for part in array.parts]
    return tuple(names[:_MOST_HELD])


@dataclass(frozen=True, slots=True)
class ReferenceDirectory:
    """A directory that files are read from. It can be sent to other processes."""

    url: str
    sources: Sources
    held: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    def read(self, name: str) -> bytes:
        """Return the content of a file. Raises SourceGone if there is none."""
        links = split_chain(self.url) if find_local_path(self.url) is None else [self.url]
        place = find_named(links)
        directory, query = split_query(links[place])
        escaped = quote(name, _PLAIN) if protocol_of(links[place]) in ("http", "https") else name
        inside = f"{directory.rstrip('/')}/{escaped}{query}"
        url = "::".join([*links[:place], inside, *links[place + 1 :]])
        reader = open_ranges(url, options_for(self.url, self.sources.storage_options), self.sources.policy)
        self.sources.keep(reader)
        return reader.read_whole()

    def load(self, names: tuple[str, ...]) -> Mapping[str, bytes]:
        """Return the contents of those of the files that are there, by name."""
        contents = {name: self.held[name] for name in names if name in self.held}

        def read(name: str) -> None:
            try:
                contents[name] = self.read(name)
            except SourceGone:
                return

        in_each([partial(read, name) for name in names if name not in contents])
        return contents
