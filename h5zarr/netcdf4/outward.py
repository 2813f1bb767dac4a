"""Find the names of other files that a file refers to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from h5zarr.errors import H5ZarrError
from h5zarr.hdf5.model import Dataset, ExternalLayout, ExternalLink, Group, H5File, VirtualLayout
from h5zarr.netcdf4.elsewhere import SAME_FILE
from h5zarr.netcdf4.mappings import is_numbered, spell


class Name(NamedTuple):
    """A name as written in a file, of a file with raw values or of one to be scanned.

    `is_numbered` is True if the name means many files, one for each block of a virtual dataset.
    """

    text: str
    is_raw: bool = False
    is_numbered: bool = False


def names_in(file: H5File) -> Iterable[Name]:
    """Yield the names of all other files. A name may occur more than once."""
    yield from map(Name, external_links(file))
    for found in file.objects.values():
        if not isinstance(found, Dataset):
            continue
        if isinstance(found.layout, ExternalLayout):
            yield from (Name(segment.file, is_raw=True) for segment in found.layout.segments)
        elif isinstance(found.layout, VirtualLayout):
            for name in dict.fromkeys(mapping.source_file for mapping in found.layout.mappings):
                yield from _source_name(name)


def external_links(file: H5File) -> Iterable[str]:
    """Yield the file names in external links."""
    for found in file.objects.values():
        if isinstance(found, Group):
            yield from (link.file for link in found.links.values() if isinstance(link, ExternalLink))


def _source_name(name: str) -> Iterable[Name]:
    try:
        spelled = spell(name)
    except H5ZarrError:
        return  # the same error is reported when the dataset is needed
    if is_numbered(name):
        yield Name(name, is_numbered=True)
    elif spelled != SAME_FILE:
        yield Name(spelled)
