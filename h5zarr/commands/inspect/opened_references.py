"""Open references in any container, and describe what they contain. The files that they refer to are not read."""

from __future__ import annotations

from h5zarr.commands.inspect.inspected_references import InspectedReferences, inspect_references
from h5zarr.containers.registry import container_in, container_of, decode_source, read_references
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.io.source import Source
from h5zarr.read.sources import Sources


def inspect_location(
    location: Location, access: Access, at: str | None, pattern: str | None, depth: int | None
) -> InspectedReferences | None:
    """Return what the references at a location contain; None if only the content of a file can tell what it is.

    `at` is the branch, tag or snapshot of a container that keeps versions. Raises ArgumentError for any other.
    """
    sources = Sources(urls=(), access=access)
    try:
        if (found := read_references(location, sources, at)) is None:
            return None
        container = container_of(location)
        assert container is not None
        return inspect_references(found[0], container, str(location), pattern, depth)
    finally:
        sources.close()


def inspect_source(
    source: Source, location: Location, access: Access, pattern: str | None, depth: int | None
) -> InspectedReferences | None:
    """Return what the references in an open file contain; None if it is something else."""
    if (container := container_in(source)) is None:
        return inspect_location(location, access, None, pattern, depth)
    references = decode_source(source, location, access.limits)
    assert references is not None
    return inspect_references(references, container, source.url, pattern, depth)
