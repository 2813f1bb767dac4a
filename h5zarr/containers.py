"""Which container references go into, by the name of the output: JSON, Parquet, or an Icechunk repository."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from h5zarr.hierarchy import ArrayNode, Hierarchy
from h5zarr.icechunk.commit import Commit, check_form
from h5zarr.icechunk.numbers import spell_out
from h5zarr.icechunk.storage import check_place, is_icechunk
from h5zarr.refs.json_v2 import write_nodes_v2
from h5zarr.refs.json_v3 import write_json_v3
from h5zarr.refs.names import check_parquet
from h5zarr.refs.output import check_output, open_output
from h5zarr.refs.output_directory import is_directory_output, open_directory
from h5zarr.refs.parquet_writing import write_parquet_v2, write_parquet_v3
from h5zarr.refs.provenance import Provenance
from h5zarr.refs.v2_metadata import NodeV2


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """What goes into a container; `nodes_v2` where that is Zarr version 2."""

    hierarchy: Hierarchy
    nodes_v2: Mapping[str, NodeV2] | None = None


def check_container(
    out: str | os.PathLike[str],
    source: str,
    zarr_format: int,
    commit: Commit | None,
    storage_options: Mapping[str, Any] | None,
) -> None:
    """Raise OutputError for what can be known to fail before `source` is read."""
    check_output(out, source)
    check_form(out, zarr_format, commit)
    if is_icechunk(out):
        check_place(os.fspath(out), storage_options)


def fit_container(content: Content, out: str | os.PathLike[str]) -> Content:
    """Return what the container at `out` can hold; the rest is among the problems and warnings of the hierarchy."""
    hierarchy = content.hierarchy
    if is_icechunk(out):
        _, warnings = spell_out(hierarchy)  # which the writer does, and tells how to undo it
        new = tuple(warning for warning in warnings if warning not in hierarchy.warnings)
        return replace(content, hierarchy=replace(hierarchy, warnings=hierarchy.warnings + new))
    if not is_directory_output(out):
        return content
    arrays = {path: node for path, node in hierarchy.nodes.items() if isinstance(node, ArrayNode)}
    problems = check_parquet(arrays)
    left_out = {problem.path for problem in problems}
    nodes = {path: node for path, node in hierarchy.nodes.items() if path not in left_out}
    nodes_v2 = content.nodes_v2 and {path: node for path, node in content.nodes_v2.items() if path not in left_out}
    return Content(replace(hierarchy, nodes=nodes, problems=hierarchy.problems + problems), nodes_v2)


def write_references(
    content: Content,
    provenance: Provenance,
    out: str | os.PathLike[str],
    storage_options: Mapping[str, Any] | None,
    commit: Commit | None,
    source_options: Mapping[str, Any] | None,
) -> None:
    """Write what fits the container at `out`, all or nothing."""
    hierarchy, nodes_v2 = content.hierarchy, content.nodes_v2
    if is_icechunk(out):
        from h5zarr.icechunk.writing import write_icechunk

        choices: dict[str, Any] = {"storage_options": storage_options, "source_options": source_options}
        commit = commit or Commit()
        write_icechunk(hierarchy, provenance, os.fspath(out), branch=commit.branch, message=commit.message, **choices)
    elif is_directory_output(out):
        with open_directory(out, storage_options) as directory:
            if nodes_v2 is None:
                write_parquet_v3(hierarchy, provenance, directory)
            else:
                write_parquet_v2(nodes_v2, hierarchy.urls, provenance, directory)
    else:
        with open_output(out, storage_options) as sink:
            if nodes_v2 is None:
                write_json_v3(hierarchy, provenance, sink)
            else:
                write_nodes_v2(nodes_v2, hierarchy.urls, provenance, sink)
