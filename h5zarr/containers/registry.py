"""The containers of h5zarr, one row each. All other code asks here instead of looking at names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from h5zarr.containers.compression import peek
from h5zarr.containers.container import Container, Output
from h5zarr.containers.icechunk.icechunk_container import IcechunkContainer
from h5zarr.containers.json.json_container import JsonContainer
from h5zarr.containers.output import check_output
from h5zarr.containers.parquet.parquet_container import ParquetContainer
from h5zarr.containers.target import check_target
from h5zarr.errors import ArgumentError, Unsupported, WrongOutput
from h5zarr.io.location import Location
from h5zarr.io.protocols import require_protocols
from h5zarr.io.source import Source
from h5zarr.io.span import Span
from h5zarr.limits import USUAL, Limits
from h5zarr.packages import require
from h5zarr.signatures import HEAD_NBYTES, WrongFormat, wrong_format

if TYPE_CHECKING:  # only needed to read references
    from h5zarr.containers.references import References
    from h5zarr.read.sources import Sources

CONTAINERS: tuple[Container, ...] = (
    IcechunkContainer(),
    ParquetContainer(),
    JsonContainer(),
)
_DATA_SUFFIXES = frozenset((".nc", ".nc3", ".nc4", ".cdf", ".netcdf", ".h5", ".hdf5", ".he5", ".hdf"))
_SNIFFED_NBYTES = 64
_PEEKED_NBYTES = 1 << 18  # zstd yields nothing before its first block of 128 KiB is complete
_REFERENCES_THEMSELVES = 'Give the path or URL of the references instead: "fo" in the storage options.'


def container_for_output(location: Location) -> Container:
    """Return the container that the name of an output selects. Raises WrongOutput if the name selects none."""
    found = next((container for container in CONTAINERS if container.recognise_output(location)), None)
    if found is None:
        raise _unclear_name(location)
    return found


def names_output(place: str) -> bool:
    """Return whether the name of a place selects a container for output."""
    return any(container.recognise_output(Location.parse(place)) for container in CONTAINERS)


def _unclear_name(location: Location) -> WrongOutput:
    suffixes = list(output_suffixes())
    marks = " or ".join(container.traits.mark for container in CONTAINERS if container.traits.mark)
    what = f"the name of an output ends in {', '.join(suffixes[:-1])} or {suffixes[-1]}, or starts with {marks}"
    shown = str(location).rstrip("/")
    stem, suffix = os.path.splitext(shown)
    remedy = f"For example, give {stem}.json."
    if suffix.lower() in _DATA_SUFFIXES:
        remedy += " To write references for many files, use h5zarr index."
    elif suffix.lower() == ".zarr":
        remedy += " h5zarr writes references to the file, not a Zarr store with a copy of its data."
    return WrongOutput(shown, what, remedy=remedy)


def output_suffixes() -> tuple[str, ...]:
    """Return the suffixes of outputs that are selected by their suffix."""
    named = (container for container in reversed(CONTAINERS) if not container.traits.mark)
    return tuple(suffix for container in named for suffix in container.traits.formats.values())


def container_of(location: Location) -> Container | None:
    """Return the container at a location: by its name, as a local directory, or by the first bytes of a local file.

    None if nothing is there, or something else. Makes no requests.
    """
    if (found := _by_location(location)) is not None:
        return found
    if location.path is None:
        return None
    try:
        with open(location.path, "rb") as file:
            return _by_bytes(peek(file.read(_PEEKED_NBYTES), _SNIFFED_NBYTES))
    except OSError:
        return None


def _by_location(location: Location) -> Container | None:
    return next((container for container in CONTAINERS if container.recognise_input(location)), None)


def _by_bytes(head: bytes) -> Container | None:
    return next((container for container in CONTAINERS if container.recognise_bytes(head)), None)


def mark_location(container: Container, location: Location) -> Location:
    """Return a location prefixed with the mark of a container, if it has one."""
    return location.marked(container.traits.mark) if container.traits.mark else location


def plain_location(location: Location) -> Location:
    """Return a location without the mark of a container: the location that storage options are for."""
    for container in CONTAINERS:
        if (mark := container.traits.mark) and location.has_mark(mark):
            return location.without_mark(mark)
    return location


def check_form(output: Output, zarr_format: int) -> None:
    """Raise WrongOutput if no container has that name, or it does not support the Zarr version, or commits."""
    traits = container_for_output(output.location).traits
    if zarr_format not in traits.zarr_formats:
        versions = " or ".join(map(str, traits.zarr_formats))
        what = f"{traits.title} holds Zarr version {versions}"
        raise WrongOutput(output.shown, what, remedy=f"Choose zarr_format={traits.zarr_formats[-1]}.")
    if output.commit is not None and not traits.has_commits:
        what = "only an Icechunk repository has branches and messages"
        raise WrongOutput(output.shown, what, remedy="Omit branch= and message=.")


def require_output(location: Location, shown: str) -> None:
    """Raise PackageMissing if writing references to a location needs a package that is not installed."""
    traits = container_for_output(location).traits
    for suffix, package in traits.packages.items():
        if location.text.rstrip("/").lower().endswith(suffix):
            require(package, f"{suffix} compression" if suffix else traits.title, place=shown)
    require_protocols(location.text, shown)


def check_output_before(output: Output, source: Location, zarr_format: int, *, is_file: bool = True) -> None:
    """Raise OutputError for anything that is certain to fail, before anything is read from `source`.

    `is_file`: the source is the file that the references are made from, not other references.
    """
    check_output(output.location, source)
    check_form(output, zarr_format)
    require_output(output.location, output.shown)
    container = container_for_output(output.location)
    container.check(output, source)
    main = Location.parse(source.for_references()[0]).without_secrets()
    check_target(output, container.state(output), [main] if is_file else None)


def read_references(location: Location, sources: Sources, at: str | None = None) -> tuple[References, Sources] | None:
    """Return the references at a location; None if only the first bytes of the file can tell whether it has any.

    `sources` says how files are read, and is returned with the additions of the references. `at` is the branch, tag or
    snapshot of a container that keeps versions.
    """
    if location.text.startswith("reference://"):
        what = f"{location}: h5zarr cannot read fsspec's view of references"
        raise Unsupported(what, remedy=_REFERENCES_THEMSELVES)
    container = _by_location(location)
    if at is not None and (container is None or not container.traits.has_commits):
        what = f"{location}: only an Icechunk repository has branches, tags and snapshots"
        raise ArgumentError(what, remedy="Omit at=.")
    return None if container is None else container.read(location, sources, at)


def container_in(source: Source) -> Container | None:
    """Return the container of an open file, by its first bytes; None if it is something else."""
    (head,) = source.read_many([Span(0, min(_SNIFFED_NBYTES, source.nbytes))])
    return _by_bytes(bytes(head))


def not_references(source: Source) -> WrongFormat:
    """Return the error that says what an open file is instead of references."""
    (head,) = source.read_many([Span(0, min(HEAD_NBYTES, source.nbytes))])
    return wrong_format(bytes(head), "references").naming(source.url)


def decode_source(source: Source, location: Location, limits: Limits = USUAL) -> References | None:
    """Return the references in an open file; None if it is something else. `location` is the user's name for it."""
    container = container_in(source)
    if container is None:
        return None
    shown = str(location)
    limits.check("references_nbytes", source.nbytes, f"{shown}: the references take {source.nbytes:,} bytes")
    (content,) = source.read_many([Span(0, source.nbytes)])
    return container.decode(bytes(content), shown, limits)
