"""Rebuild a lost catalog from the outputs, which record what they were made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from h5zarr.commands.catalog.place import STATE, Place
from h5zarr.commands.catalog.rows import Row, Status, writable
from h5zarr.commands.index.output_formats import container_of_output
from h5zarr.commands.index.watching import encode_related
from h5zarr.commands.index.work import IndexSettings
from h5zarr.containers.container import Content, Output
from h5zarr.containers.references import References
from h5zarr.containers.registry import mark_location
from h5zarr.errors import H5ZarrError
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.read.sources import Sources
from h5zarr.zarr_model.hierarchy import ArrayNode


def rebuild_rows(place: Place, found_by: Mapping[str, str], settings: IndexSettings) -> Iterator[Row]:
    """Yield a row for each complete output, as if it had been made with these settings. `found_by` has what lists each
    source now; for other sources it is unknown, so this run cannot tell that they have vanished.

    The cost of making it is no longer known. Skips incomplete outputs and other files, so their sources are indexed
    again. Also skips Icechunk repositories, whose sources get another snapshot.
    """
    names = [name for name in place.names() if not name.startswith(f"{STATE}/")]
    for name in dict.fromkeys(_output_of(name) for name in names):
        if name is None:
            continue
        try:
            references = _read(place, name)
        except H5ZarrError:
            continue
        if references.provenance is not None and references.provenance.sources:
            yield _row(name, references, found_by, settings)


def _output_of(name: str) -> str | None:
    """Return the output that a file is or belongs to: a file or directory with the suffix of a format."""
    parts = name.split("/")
    for count in range(1, len(parts) + 1):
        above = "/".join(parts[:count])
        container = container_of_output(above)
        if container is not None and container.traits.is_directory is (count < len(parts)):
            return None if container.traits.has_commits else above
    return None


def is_references(place: Place, name: str) -> bool:
    """Return whether an output still is references, and not something else that has taken their place."""
    container = container_of_output(name)
    if container is None:
        return False
    location = mark_location(container, Location.parse(place.locate(name)))
    output = Output(location=location, storage_options=place.storage_options, network=place.network)
    return container.state(output).content in (Content.OWN, Content.REFERENCES)


def _read(place: Place, name: str) -> References:
    container = container_of_output(name)
    assert container is not None
    sources = Sources(urls=(), access=Access(storage_options=place.storage_options, network=place.network))
    try:
        return container.read(Location.parse(place.locate(name)), sources, None)[0]
    finally:
        sources.close()


def _row(name: str, references: References, found_by: Mapping[str, str], settings: IndexSettings) -> Row:
    assert references.provenance is not None
    made_of = references.provenance.sources[0]
    source, problems = writable(made_of.url), references.provenance.problems
    arrays = [node for node in references.hierarchy.nodes.values() if isinstance(node, ArrayNode)]
    return Row(
        source=source,
        found_by=found_by.get(source, ""),
        identity=made_of.identity,
        related=encode_related((one.url, one.identity) for one in references.provenance.sources[1:]),
        output=name,
        settings=settings.digest,
        status=Status.INDEXED_WITH_PROBLEMS if problems else Status.INDEXED,
        problems=problems,
        arrays=len(arrays),
        chunks=sum(array.manifest.count for array in arrays),
        tool_version=references.provenance.version,
        time=datetime.now(UTC),
    )
