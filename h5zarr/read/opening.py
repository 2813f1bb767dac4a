"""Opening: from a reference file, or from a file scanned on the spot, to a hierarchy that can be read."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from warnings import warn

from h5zarr.errors import MalformedFile, ProblemWarning, Unsupported
from h5zarr.hierarchy import Hierarchy
from h5zarr.icechunk.storage import MARK, is_icechunk
from h5zarr.io.fetch_policy import FetchPolicy
from h5zarr.io.reference_url import reference_url
from h5zarr.io.source import Identity, Source, open_source
from h5zarr.io.url import display_url, find_local_path
from h5zarr.limits import USUAL, Limits
from h5zarr.read.references import decode_source, find_references
from h5zarr.read.sources import Sources, options_for
from h5zarr.refs.names import NAME_KIND, URL_KIND
from h5zarr.refs.provenance import Provenance
from h5zarr.refs.reading import References
from h5zarr.translating import Options, translate_source

# The kinds of what is told of URLs and names in references: nobody writes any here, and here they can be read.
_OF_REFERENCES = ("secret", URL_KIND, NAME_KIND)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Opened:
    """A hierarchy and the files that its chunks are in.

    `url` is what was opened, safe to show; `source` is the file that it is a view of.
    """

    url: str
    source: str
    hierarchy: Hierarchy = field(repr=False)  # the URLs in references of others may be signed
    sources: Sources

    def warn(self, stacklevel: int = 2, *, but: Collection[str] = ()) -> None:
        """Tell Python's warnings of everything that is left out, or not all that it was, `but` for some kinds."""
        for problem in (*self.hierarchy.problems, *self.hierarchy.warnings):
            if problem.kind not in _OF_REFERENCES and problem.kind not in but:
                warn(f"{self.url}:{problem}. {problem.remedy}".rstrip(), ProblemWarning, stacklevel + 1)

    def close(self) -> None:
        """Let go of files and connections."""
        self.sources.close()


def open_hierarchy(
    url: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, Any] | None = None,
    policy: FetchPolicy | None = None,
    verify: bool = True,
    at: str | None = None,
    allow: Sequence[str] = (),
    limits: Limits = USUAL,
) -> Opened:
    """Open references, JSON, Parquet or Icechunk, or an HDF5 or netCDF file, which is then scanned: a path or URL.

    `storage_options` are for the file systems of the reference file and of the files that it refers to; by protocol,
    `{"s3": {...}, "https": {...}}`, where they need different ones. With `verify`, a file that is not the one that was
    recorded raises SourceChanged when the first chunk is read from it. `at` is the branch, tag or snapshot of an
    Icechunk repository.

    References may not name every file, nor may a file that is scanned: `allow` has directories, paths and URLs, below
    which they may. `limits` bound what the input may take.
    """
    text = os.fspath(url)
    _check_arguments(storage_options, policy, allow)
    options = dict(storage_options or {})
    sources = Sources(
        urls=(), storage_options=options, policy=policy or FetchPolicy(), allow=tuple(allow), limits=limits
    )
    if (found := find_references(text, sources, at)) is not None:
        return _open_references(text, *found, verify)
    with open_source(text, options_for(text, options)) as source:
        if (references := decode_source(source, text, limits)) is not None:
            return _open_references(text, references, sources, verify)
        return _open_file(source, text, sources, verify)


def _check_arguments(storage_options: object, policy: object, allow: object) -> None:
    """Raise an error for what would fail later, or not at all, in words that do not say why."""
    if not isinstance(storage_options, Mapping | None):
        raise TypeError(f"storage_options must be a dict, and not {type(storage_options).__name__}")
    if not isinstance(policy, FetchPolicy | None):
        raise TypeError(f"policy must be an h5zarr.FetchPolicy, and not {type(policy).__name__}")
    if isinstance(allow, str):
        raise TypeError("allow must be a sequence of paths and URLs, and not one of them")


def _open_references(url: str, references: References, sources: Sources, verify: bool) -> Opened:
    shown = display_url(url)
    # Paths that others left relative mean where this process is now, wherever it or its children go.
    urls = tuple(os.path.abspath(path) if (path := _relative(one)) else one for one in references.hierarchy.urls)
    place = url[len(MARK) :] if is_icechunk(url) else url
    where = place if (local := find_local_path(place)) is None else os.path.abspath(local)
    expected = recorded_identities(urls, references.provenance) if verify else ()
    return Opened(
        url=shown,
        source=reference_url(urls[0] if urls else _recorded_source(references.provenance) or shown)[0],
        hierarchy=references.hierarchy,
        sources=replace(sources, urls=urls, expected=expected, references=where),
    )


def _recorded_source(provenance: Provenance | None) -> str | None:
    return provenance.sources[0].url if provenance is not None and provenance.sources else None


def _relative(url: str) -> str | None:
    """Return the local path that `url` is, if it is a relative one."""
    path = find_local_path(url) if url else None
    return path if path is not None and not os.path.isabs(path) else None


def recorded_identities(urls: tuple[str, ...], provenance: Provenance | None) -> tuple[Identity | None, ...]:
    """Return what is known of each file: its size, and more where it was read at the place that is referred to."""
    if provenance is None:
        return (None,) * len(urls)
    known: list[Identity | None] = []
    for url, state in zip(urls, provenance.sources, strict=False):
        known.append(state.identity if url == state.url else Identity(nbytes=state.identity.nbytes))
    return tuple(known)


def _open_file(source: Source, url: str, sources: Sources, verify: bool) -> Opened:
    """Scan a file, and keep what was read of it where that was all."""
    try:
        options = Options(limits=sources.limits, allow=sources.allow)
        translation = translate_source(source, url, options, options_for(url, sources.storage_options))
    except (MalformedFile, Unsupported) as error:
        raise error.naming(source.url) from None
    hierarchy = translation.hierarchy
    # As it was given: what stands in references has lost signatures and caches. A path may be relative, and is not.
    own = reference_url(url)[0]
    given = own if find_local_path(url) is not None else url
    urls = tuple(given if one == own else one for one in hierarchy.urls)
    expected = tuple(state.identity for state in translation.provenance.sources) if verify else ()
    made = replace(sources, urls=urls, expected=expected)
    held = source.held()
    if held is not None and urls and urls[0] == given:
        made.hold(0, held)
    return Opened(url=display_url(url), source=own, hierarchy=hierarchy, sources=made)
