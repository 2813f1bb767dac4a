"""JSON as a container: one file, perhaps compressed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from h5zarr.containers.beside import sweep_beside
from h5zarr.containers.container import Content, Fitted, Output, State, Traits
from h5zarr.containers.output import named, open_output
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.target import check_target, file_state, is_stream
from h5zarr.io.location import Location
from h5zarr.limits import Limits
from h5zarr.zarr_model.hierarchy import Hierarchy

if TYPE_CHECKING:
    from h5zarr.containers.references import References
    from h5zarr.read.sources import Sources

_FORMATS = {"json": ".json", "json.gz": ".json.gz", "json.zst": ".json.zst"}
_SUFFIXES = tuple(_FORMATS.values())


class JsonContainer:
    """One file of reference JSON."""

    traits = Traits(
        name="json",
        title="a JSON file",
        formats=_FORMATS,
        allows_empty_urls=True,
        packages={".zst": "zstandard"},
    )

    def recognise_output(self, location: Location) -> bool:
        return is_stream(location) or named(location).endswith(_SUFFIXES)

    def recognise_input(self, location: Location) -> bool:
        if location.path is not None:
            return False  # its first bytes decide
        return location.address.endswith(_SUFFIXES)

    def recognise_bytes(self, head: bytes) -> bool:
        from h5zarr.containers.json.json_recognition import is_references

        return is_references(head)

    def check(self, output: Output, source: Location) -> None:
        pass

    def fit(self, hierarchy: Hierarchy) -> Hierarchy:
        return hierarchy

    def write(self, fitted: Fitted, provenance: Provenance, output: Output) -> None:
        from h5zarr.containers.json.json_writing import write_json

        def confirm() -> None:
            check_target(output, self.state(output))

        if output.replaces is not None and output.location.path is not None:
            sweep_beside(os.path.realpath(output.location.path))
        with open_output(
            output.location, output.storage_options, confirm, output.network, replaces=output.replaces
        ) as sink:
            write_json(fitted, provenance, sink)

    def read(self, location: Location, sources: Sources, at: str | None) -> tuple[References, Sources]:
        from h5zarr.io.ranges import open_ranges

        reader = open_ranges(location, sources.access)
        sources.keep(reader)
        return self.decode(reader.read_whole(), str(location), sources.access.limits), sources

    def decode(self, content: bytes, name: str, limits: Limits) -> References:
        from h5zarr.containers.json.json_reading import decode_references

        return decode_references(content, name, limits)

    def state(self, output: Output, *, briefly: bool = False) -> State:
        from h5zarr.containers.json.json_recognition import holds_references, is_own_references, is_references

        def recognise(head: bytes, read_all: Callable[[], bytes]) -> Content:
            if is_own_references(head):
                return Content.OWN
            is_ours = not briefly and is_references(head) and holds_references(read_all())
            return Content.REFERENCES if is_ours else Content.OTHER

        return file_state(output.location, output.storage_options, recognise, output.network)
