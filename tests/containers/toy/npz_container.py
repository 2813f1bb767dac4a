"""A toy container that follows the recipe "Add a container" in CONTRIBUTING.md: one .npz file of columns."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import numpy as np

from h5zarr.containers.chunk_runs import Run
from h5zarr.containers.container import Content, Fitted, Output, State, Traits
from h5zarr.containers.output import open_output
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.references import Document, References, assemble, naming_errors
from h5zarr.containers.target import check_target, file_state
from h5zarr.io.location import Location
from h5zarr.io.ranges import open_ranges
from h5zarr.limits import Limits
from h5zarr.read.sources import Sources
from h5zarr.zarr_model.chunk_keys import KeyLayout
from h5zarr.zarr_model.hierarchy import Hierarchy

_ZIP = b"PK\x03\x04"


class NpzContainer:
    """One .npz file: the metadata as JSON, and the index, addresses, sizes and sources of each array as columns."""

    traits = Traits(name="npz", title="an .npz file", formats={"npz": ".npz"}, zarr_formats=(3,))

    def recognise_output(self, location: Location) -> bool:
        return location.text.endswith(".npz")

    def recognise_input(self, location: Location) -> bool:
        return location.path is None and location.text.endswith(".npz")

    def recognise_bytes(self, head: bytes) -> bool:
        return head.startswith(_ZIP)

    def check(self, output: Output, source: Location) -> None:
        pass

    def fit(self, hierarchy: Hierarchy) -> Hierarchy:
        return hierarchy

    def write(self, fitted: Fitted, provenance: Provenance, output: Output) -> None:
        columns: dict[str, Any] = {}
        entries: dict[str, Any] = {}
        for path, node in fitted.nodes.items():
            entries[f"{path}/zarr.json".lstrip("/")] = node.documents["zarr.json"]
            if node.manifest is not None:
                found = node.manifest
                columns[f"index{path}"], columns[f"address{path}"] = found.index, found.address
                columns[f"nbytes{path}"] = found.nbytes
                columns[f"source{path}"] = np.broadcast_to(np.int32(found.source), len(found.address))
                for index, content in found.inline.items():
                    key = "/".join([path[1:], "c", *map(str, index)])
                    entries[key] = "base64:" + b64encode(content).decode()
        document = {"h5zarr": provenance.to_json(), "urls": fitted.hierarchy.urls, "entries": entries}
        content = io.BytesIO()
        np.savez(content, metadata=np.frombuffer(json.dumps(document).encode(), np.uint8), **columns)

        def confirm() -> None:
            check_target(output, self.state(output))

        with open_output(output.location, output.storage_options, confirm) as sink:
            sink.write(content.getvalue())

    def read(self, location: Location, sources: Sources, at: str | None) -> tuple[References, Sources]:
        reader = open_ranges(location, sources.access)
        sources.keep(reader)
        return self.decode(reader.read_whole(), str(location), sources.access.limits), sources

    def decode(self, content: bytes, name: str, limits: Limits) -> References:
        with naming_errors(name), np.load(io.BytesIO(content)) as columns:
            document = json.loads(columns["metadata"].tobytes())
            runs = [
                Run(
                    layout=KeyLayout(path, "c", "/", columns[f"index{path}"].shape[1]),
                    index=columns[f"index{path}"],
                    address=columns[f"address{path}"],
                    nbytes=columns[f"nbytes{path}"],
                    source=columns[f"source{path}"],
                    urls=tuple(document["urls"]),
                )
                for path in (column.removeprefix("index") for column in columns.files if column.startswith("index"))
            ]
            some = tuple(run for run in runs if len(run.address))
            provenance = Provenance.from_json(document["h5zarr"])
            return assemble(Document(entries=document["entries"], runs=some, provenance=provenance))

    def state(self, output: Output, *, briefly: bool = False) -> State:
        def recognise(head: bytes, read_all: Callable[[], bytes]) -> Content:
            return Content.OWN if head.startswith(_ZIP) else Content.OTHER

        return file_state(output.location, output.storage_options, recognise)
