"""A catalog made anew from the outputs: each of them says what it was made of."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from h5zarr.errors import H5ZarrError
from h5zarr.hierarchy import ArrayNode
from h5zarr.indexing.place import STATE, Place
from h5zarr.indexing.rows import Row, Status, writable
from h5zarr.indexing.watching import encode_related
from h5zarr.indexing.work import SUFFIXES, Settings
from h5zarr.io.fetch_policy import FetchPolicy
from h5zarr.read.parquet import read_parquet
from h5zarr.read.sources import Sources
from h5zarr.refs.reading import References, decode_references

_METADATA = ".zmetadata"
_JSON = tuple(suffix for suffix in SUFFIXES.values() if suffix.startswith(".json"))


def rebuild_rows(place: Place, found_by: str, settings: Settings) -> Iterator[Row]:
    """Yield a row for each output that is there and whole, as if it had been made with these settings.

    What it took to make it is not known any more. What is no output, or not a whole one, is passed over: its source is
    then indexed again. So are Icechunk repositories, which take another snapshot.
    """
    names = [name for name in place.names() if not name.startswith(f"{STATE}/")]
    for name in dict.fromkeys(_container_of(name) for name in names):
        if name is None:
            continue
        try:
            references = _read(place, name)
        except H5ZarrError:
            continue
        if references.provenance is not None and references.provenance.sources:
            yield _row(name, references, found_by, settings)


def _container_of(name: str) -> str | None:
    """Return the output that a file is, or that it belongs to; None where it is none."""
    if name.endswith(_JSON):
        return name
    container, mark, rest = name.rpartition(f"/{_METADATA}")
    return container if mark and not rest and container.endswith(SUFFIXES["parquet"]) else None


def _read(place: Place, name: str) -> References:
    if name.endswith(_JSON):
        return decode_references(place.read(name) or b"", f"{place.shown}/{name}")
    sources = Sources(urls=(), storage_options=place.storage_options, policy=FetchPolicy())
    try:
        return read_parquet(place.locate(name), sources)
    finally:
        sources.close()


def _row(name: str, references: References, found_by: str, settings: Settings) -> Row:
    assert references.provenance is not None
    made_of = references.provenance.sources[0]
    arrays = [node for node in references.hierarchy.nodes.values() if isinstance(node, ArrayNode)]
    return Row(
        source=writable(made_of.url),
        found_by=found_by,
        identity=made_of.identity,
        related=encode_related((one.url, one.identity) for one in references.provenance.sources[1:]),
        output=name,
        settings=settings.digest,
        status=Status.INDEXED,
        problems=references.provenance.problems,
        arrays=len(arrays),
        chunks=sum(array.manifest.count for array in arrays),
        tool_version=references.provenance.version,
        time=datetime.now(UTC),
    )
