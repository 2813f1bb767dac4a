"""Parquet as a container: a directory of files, in the layout that kerchunk invented and fsspec reads lazily."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from h5zarr.containers.container import Fitted, Output, State, Traits
from h5zarr.containers.output import named
from h5zarr.containers.provenance import Provenance
from h5zarr.errors import Unsupported
from h5zarr.io.location import Location
from h5zarr.limits import Limits
from h5zarr.zarr_model.hierarchy import ArrayNode, Hierarchy
from h5zarr.zarr_model.names import check_parquet

if TYPE_CHECKING:
    from h5zarr.containers.references import References
    from h5zarr.read.sources import Sources

_SUFFIXES = (".parquet", ".parq")
_METADATA = ".zmetadata"


class ParquetContainer:
    """A directory of Parquet files, and one file with all metadata."""

    traits = Traits(
        name="parquet",
        title="a directory of Parquet files",
        formats={"parquet": ".parquet"},
        is_directory=True,
        packages={"": "pyarrow"},
    )

    def recognise_output(self, location: Location) -> bool:
        return named(location).rstrip("/").endswith(_SUFFIXES)

    def recognise_input(self, location: Location) -> bool:
        if location.path is not None:
            return os.path.isfile(os.path.join(location.path, _METADATA))
        return self.recognise_output(location)

    def recognise_bytes(self, head: bytes) -> bool:
        return False

    def check(self, output: Output, source: Location) -> None:
        pass

    def fit(self, hierarchy: Hierarchy) -> Hierarchy:
        problems = check_parquet(path for path, node in hierarchy.nodes.items() if isinstance(node, ArrayNode))
        left_out = {problem.path for problem in problems}
        nodes = {path: node for path, node in hierarchy.nodes.items() if path not in left_out}
        return replace(hierarchy, nodes=nodes, problems=hierarchy.problems + problems)

    def write(self, fitted: Fitted, provenance: Provenance, output: Output) -> None:
        from h5zarr.containers.parquet.parquet_output import open_directory
        from h5zarr.containers.parquet.parquet_writing import write_parquet

        with open_directory(output) as directory:
            write_parquet(fitted, provenance, directory)

    def read(self, location: Location, sources: Sources, at: str | None) -> tuple[References, Sources]:
        from h5zarr.containers.parquet.parquet_reading import read_parquet

        return read_parquet(location, sources), sources

    def decode(self, content: bytes, name: str, limits: Limits) -> References:
        raise Unsupported(f"{name}: references in Parquet are a directory, not one file")

    def state(self, output: Output, *, briefly: bool = False) -> State:
        from h5zarr.containers.parquet.parquet_output import directory_state

        return directory_state(output)
