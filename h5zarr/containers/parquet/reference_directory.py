"""A directory with references in Parquet, of which files are read when they are needed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from h5zarr.containers.parquet.parquet_output import previous_of
from h5zarr.containers.parquet.remote_update import name_with_token
from h5zarr.errors import SourceGone
from h5zarr.io.location import Location
from h5zarr.io.ranges import open_ranges
from h5zarr.read.sources import Sources, in_each


@dataclass(frozen=True, slots=True)
class ReferenceDirectory:
    """A directory with references. It can be pickled."""

    location: Location
    sources: Sources
    held: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    def read(self, name: str) -> bytes:
        """Return the content of a file. Raises SourceGone if it does not exist."""
        reader = open_ranges(self.location.inside(name), self.sources.access)
        self.sources.keep(reader)
        return reader.read_whole()

    def load(self, names: tuple[str, ...]) -> Mapping[str, bytes]:
        """Return the contents of the files that exist, by name."""
        contents = {name: self.held[name] for name in names if name in self.held}

        def read(name: str) -> None:
            try:
                contents[name] = self.read(name)
            except SourceGone:
                return

        in_each([partial(read, name) for name in names if name not in contents])
        return contents

    def load_earlier(self, names: tuple[str, ...], token: str) -> Mapping[str, bytes]:
        """Return files of the state with this token, if it was replaced by an update and is still kept."""
        if self.location.path is not None:
            previous = Location.parse(previous_of(os.path.realpath(self.location.path)))
            return replace(self, location=previous, held={}).load(names)
        kept = {name_with_token(name, token): name for name in names}
        return {kept[name]: content for name, content in self.load(tuple(kept)).items()}


def open_directory(location: Location, sources: Sources) -> ReferenceDirectory:
    """Return the directory at a location. Nothing is read yet."""
    # Absolute: some files are read later, when the current directory may have changed.
    return ReferenceDirectory(Location.parse(location.absolute()), sources)
