"""Open a reference file, or scan a file, as a hierarchy that can be read."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from warnings import warn

from h5zarr.containers.cube_layout import CubeLayout
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.references import References
from h5zarr.containers.registry import decode_source, plain_location, read_references
from h5zarr.errors import ProblemWarning
from h5zarr.io.access import USUAL_ACCESS, Access
from h5zarr.io.location import Location
from h5zarr.io.source import Identity, Source, open_source
from h5zarr.read.sources import Sources
from h5zarr.zarr_model.hierarchy import Hierarchy
from h5zarr.zarr_model.names import NAME_KIND, URL_KIND

if TYPE_CHECKING:
    from h5zarr.commands.translate.options import Options
    from h5zarr.commands.translate.translation import Translation

# Kinds of warnings about URLs and names in references. They matter when writing references, not when reading.
_OF_REFERENCES = ("secret", URL_KIND, NAME_KIND)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Opened:
    """A hierarchy and the files that contain its chunks.

    `url` is what was opened, safe to show. `source` is the file that it is a view of. `cube` says which files are where
    in references that join several.
    """

    url: str
    source: str
    hierarchy: Hierarchy
    sources: Sources
    cube: CubeLayout | None = None

    def warn(self, stacklevel: int = 2, *, but: Collection[str] = ()) -> None:
        """Issue a Python warning for everything that is left out or incomplete, `but` for some kinds."""
        for problem in (*self.hierarchy.problems, *self.hierarchy.warnings):
            if problem.kind not in _OF_REFERENCES and problem.kind not in but:
                warn(f"{self.url}:{problem}. {problem.remedy}".rstrip(), ProblemWarning, stacklevel + 1)

    def close(self) -> None:
        """Close files and connections."""
        self.sources.close()


def open_hierarchy(
    url: str | os.PathLike[str] | Location,
    access: Access = USUAL_ACCESS,
    *,
    verify: bool = True,
    at: str | None = None,
    options: Options | None = None,
    group: str | None = None,
    is_deep: bool = True,
) -> Opened:
    """Open references (JSON, Parquet or Icechunk) or scan an HDF5 or netCDF file, at a path or URL.

    `access` applies to the references and to the files they refer to. With `verify`, a file that differs from the
    recorded one raises SourceChanged when its first chunk is read. `at` is the branch, tag or snapshot of an Icechunk
    repository. `options` say how a file is translated. With `group`, only that group of a file is scanned, and if it
    `is_deep` what is below, unless more is needed to show that.
    """
    location = Location.parse(url)
    sources = Sources(urls=(), access=access)
    if (found := read_references(location, sources, at)) is not None:
        return _open_references(location, *found, verify)
    with open_source(location, access) as source:
        if (references := decode_source(source, location, access.limits)) is not None:
            return _open_references(location, references, sources, verify)
        return _open_file(source, location, sources, verify, options, group, is_deep)


def _open_references(location: Location, references: References, sources: Sources, verify: bool) -> Opened:
    shown = str(location)
    urls, where = references.hierarchy.urls, plain_location(location).absolute()
    expected: Sequence[Identity | None] = ()
    if references.late is not None:
        source, expected = references.late.first, references.late.expected if verify else ()
    else:
        # Relative paths in foreign references are resolved now, against the current directory, for good.
        urls = tuple(_settled(one) for one in urls)
        source = urls[0] if urls else _recorded_source(references.provenance) or shown
        expected = recorded_identities(urls, references.provenance) if verify else ()
    return Opened(
        url=shown,
        source=Location.parse(source).for_references()[0],
        hierarchy=references.hierarchy,
        sources=replace(sources, urls=urls, expected=expected, references=where),
        cube=None if references.provenance is None else references.provenance.cube,
    )


def _recorded_source(provenance: Provenance | None) -> str | None:
    return provenance.sources[0].url if provenance is not None and provenance.sources else None


def _settled(url: str) -> str:
    """Return the absolute path if `url` is a relative path, and `url` otherwise."""
    if url.startswith("/") or "://" in url:  # as most are, and a cube may have many
        return url
    location = Location.parse(url)
    return url if not location.path or os.path.isabs(location.path) else location.absolute()


def recorded_identities(urls: Sequence[str], provenance: Provenance | None) -> tuple[Identity | None, ...]:
    """Return the recorded state of each file: its size, and more if it was read at the referenced URL."""
    if provenance is None:
        return (None,) * len(urls)
    by_url = {state.url: state.identity for state in provenance.sources}
    known = [by_url.get(url) for url in urls]
    if len(urls) == len(provenance.sources):  # a file that was read at another URL has the same place in both
        for number, state in enumerate(provenance.sources):
            known[number] = known[number] or Identity(nbytes=state.identity.nbytes)
    return tuple(known)


def open_translation(translation: Translation, access: Access) -> Opened:
    """Return a file that was translated in this process, without reading it again."""
    hierarchy = translation.hierarchy
    expected = tuple(state.identity for state in translation.provenance.sources)
    sources = Sources(urls=hierarchy.urls, access=access, expected=expected)
    return Opened(url=translation.source, source=hierarchy.urls[0], hierarchy=hierarchy, sources=sources)


def _open_file(
    source: Source,
    location: Location,
    sources: Sources,
    verify: bool,
    options: Options | None,
    group: str | None,
    is_deep: bool,
) -> Opened:
    """Scan a file, or a part of it. If all of it was read, keep it in memory."""
    # Imported here: references are opened without loading the parsers.
    from h5zarr.commands.translate.options import Options
    from h5zarr.commands.translate.translate import translate_source

    how = options or Options()
    translation = translate_source(source, location, how, sources.access, group=group, is_deep=is_deep)
    hierarchy = translation.hierarchy
    # The URL as given: the one in references has lost signatures and caches. The path, if relative, becomes absolute.
    own = location.for_references()[0]
    given = own if location.path is not None else location.text
    urls = tuple(given if one == own else one for one in hierarchy.urls)
    expected = tuple(state.identity for state in translation.provenance.sources) if verify else ()
    made = replace(sources, urls=urls, expected=expected)
    held = source.held()
    if held is not None and urls and urls[0] == given:
        made.hold(0, held)
    return Opened(url=str(location), source=own, hierarchy=hierarchy, sources=made)
