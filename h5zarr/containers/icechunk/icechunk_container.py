"""Icechunk as a container: a repository that keeps versions. References become a new snapshot of a branch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from h5zarr.containers.container import Fitted, Output, State, Traits
from h5zarr.containers.provenance import Provenance
from h5zarr.errors import OutputError, Problem, Unrepresentable, Unsupported
from h5zarr.io.location import Location
from h5zarr.limits import Limits
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, Hierarchy

if TYPE_CHECKING:
    from h5zarr.containers.references import References
    from h5zarr.read.sources import Sources


class IcechunkContainer:
    """A repository at icechunk+file:///directory or icechunk+s3://bucket/prefix."""

    traits = Traits(
        name="icechunk",
        title="an Icechunk repository",
        formats={"icechunk": ".icechunk"},
        mark="icechunk+",
        zarr_formats=(3,),
        is_directory=True,
        has_commits=True,
        packages={"": "icechunk"},
    )

    def recognise_output(self, location: Location) -> bool:
        return location.has_mark(self.traits.mark)

    def recognise_input(self, location: Location) -> bool:
        return self.recognise_output(location)

    def recognise_bytes(self, head: bytes) -> bool:
        return False

    def check(self, output: Output, source: Location) -> None:
        from h5zarr.containers.icechunk.storage import check_place, find_place

        place = find_place(output.location)
        if self.recognise_input(source):
            other = find_place(source)
            if (place.directory, place.bucket, place.prefix) == (other.directory, other.bucket, other.prefix):
                what = "the output is the repository that is read"
                raise OutputError(output.shown, what, remedy="Give another location for the output.")
        check_place(output.location, output.storage_options)

    def fit(self, hierarchy: Hierarchy) -> Hierarchy:
        from h5zarr.containers.icechunk.extras import check_numbers

        hierarchy = _leave_out_uneven(hierarchy)
        return replace(hierarchy, warnings=hierarchy.warnings + check_numbers(hierarchy))

    def write(self, fitted: Fitted, provenance: Provenance, output: Output) -> None:
        from h5zarr.containers.icechunk.icechunk_writing import write_icechunk

        write_icechunk(fitted, provenance, output)

    def read(self, location: Location, sources: Sources, at: str | None) -> tuple[References, Sources]:
        from h5zarr.containers.icechunk.icechunk_reading import read_icechunk

        access = sources.access
        options = access.options_for(location.without_mark(self.traits.mark))
        snapshot = read_icechunk(location, options, at, sources)
        if snapshot.source_options and not access.storage_options:
            access = replace(access, storage_options={"s3": snapshot.source_options})
        return snapshot.references, replace(sources, access=access)

    def decode(self, content: bytes, name: str, limits: Limits) -> References:
        raise Unsupported(f"{name}: an Icechunk repository is a directory, not one file")

    def state(self, output: Output, *, briefly: bool = False) -> State:
        from h5zarr.containers.icechunk.icechunk_reading import find_state

        return find_state(output)


def _leave_out_uneven(hierarchy: Hierarchy) -> Hierarchy:
    """Return `hierarchy` without arrays whose grid Icechunk cannot hold; its problems name them."""
    uneven = [
        path
        for path, node in hierarchy.nodes.items()
        if isinstance(node, ArrayNode) and not isinstance(node.grid, RegularGrid)
    ]
    if not uneven or not _is_version_1():
        return hierarchy
    what = "its chunks have different lengths, which takes Icechunk 2 or later"
    remedy = "Install a newer Icechunk, or write JSON or Parquet."
    problems = tuple(Problem(path, Unrepresentable.kind, what, remedy) for path in uneven)
    nodes = {path: node for path, node in hierarchy.nodes.items() if path not in uneven}
    return replace(hierarchy, nodes=nodes, problems=hierarchy.problems + problems)


def _is_version_1() -> bool:
    import icechunk

    return bool(icechunk.__version__.startswith("1."))
