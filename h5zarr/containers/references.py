"""References: what a container holds, and how its entries become a `Hierarchy`.

Every container describes itself as a `Document`: entries by key, as in reference JSON, and chunk references in columns.
`assemble` decodes the metadata and joins the chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from h5zarr.containers.chunk_runs import Chunks, Index, Run, arrange_urls, decode_entries, join_runs
from h5zarr.containers.node_metadata import Nodes, take_nodes
from h5zarr.containers.provenance import Provenance
from h5zarr.errors import SURPRISES, H5ZarrError, MalformedFile, Unsupported, surprised
from h5zarr.io.source import Identity
from h5zarr.zarr_model.chunk_keys import group_entries
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Hierarchy, Json
from h5zarr.zarr_model.metadata import ArrayMetadata, name_dimensions
from h5zarr.zarr_model.record import decode_group

_REMEDY = "The references may be damaged. Write them again with the tool that made them."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Document:
    """Entries by key, the entries that were read in bulk as runs, and the provenance, if h5zarr wrote them."""

    entries: dict[str, Json]
    runs: tuple[Run, ...] = ()
    provenance: Provenance | None = None


@dataclass(frozen=True, slots=True)
class LateFiles:
    """Files of a cube whose list is read when it is needed: the first URL, and the recorded state of each."""

    first: str
    expected: Sequence[Identity | None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class References:
    """The content of a reference file, in terms of Zarr version 3.

    An empty URL must be supplied by the reader: the references are to one file that may be anywhere. `provenance` is
    None if h5zarr did not write the file. `unfilled` are the paths of version 2 arrays whose fill value is null. `late`
    describes files that are listed elsewhere.
    """

    hierarchy: Hierarchy
    provenance: Provenance | None
    unfilled: frozenset[str] = frozenset()
    late: LateFiles | None = None


@contextmanager
def naming_errors(name: str) -> Iterator[None]:
    """Prefix errors with the name of the file."""
    try:
        yield
    except MalformedFile as error:
        raise MalformedFile(f"{name}: {error}", remedy=_REMEDY) from None
    except H5ZarrError as error:
        raise error.naming(name) from None
    except SURPRISES as error:
        raise MalformedFile(f"{name}: {surprised(error)}", remedy=_REMEDY) from error


def assemble(document: Document) -> References:
    """Return the references that the entries of a document describe. Consumes the entries."""
    nodes = take_nodes(document.entries)
    chunks = _find_chunks(document, nodes)
    arrays = nodes.arrays()
    names = name_dimensions(arrays)
    urls, numbers = arrange_urls(
        dict.fromkeys(url for found in chunks.values() for url in found.run.urls), document.provenance
    )
    made: dict[str, GroupNode | ArrayNode] = {}
    warnings = tuple(warning for array in arrays.values() for warning in array.warnings)
    for path, node in nodes.found.items():
        if isinstance(node, ArrayMetadata):
            made[path] = ArrayNode(
                grid=node.grid,
                data_type=node.data_type,
                codecs=node.codecs,
                fill_value=node.fill_value,
                dimension_names=names[path],
                attributes=node.attributes,
                manifest=chunks[path].to_manifest(numbers),
            )
        else:
            made[path], ignored = decode_group(path, node)
            warnings += ignored
    recorded = document.provenance.problems if document.provenance is not None else ()
    problems = (*recorded, *nodes.problems)
    hierarchy = Hierarchy(nodes=made, urls=urls, problems=problems, warnings=warnings)
    unfilled = frozenset(path for path, array in arrays.items() if array.is_unfilled)
    return References(hierarchy=hierarchy, provenance=document.provenance, unfilled=unfilled)


def _find_chunks(document: Document, nodes: Nodes) -> dict[str, Chunks]:
    """Return the chunks of each array, by path. Arrays whose chunks cannot be decoded are removed from `nodes`."""
    arrays = nodes.arrays()
    below = group_entries(document.entries, [*arrays, *nodes.skipped], nodes.mark)
    runs = {run.layout: run for run in document.runs}
    known = {array.keys for array in arrays.values()}
    if len(runs) < len(document.runs) or any(one not in known and one.path not in nodes.skipped for one in runs):
        raise MalformedFile("there are chunk references outside any array")
    chunks = {}
    for path, array in arrays.items():
        run, inline = decode_entries(below[path], array.keys)
        if array.convert is not None:
            try:
                inline = _convert(run, inline, array.convert)
            except Unsupported as error:
                nodes.skip(path, error)
                continue
        lifted = runs.get(array.keys)
        chunks[path] = join_runs([run] if lifted is None else [lifted, run] if len(run.address) else [lifted], inline)
    return chunks


def _convert(run: Run, inline: Mapping[Index, bytes], convert: Callable[[bytes], bytes]) -> Mapping[Index, bytes]:
    """Return chunks in the form that the codecs expect. Raises Unsupported if some are not inlined."""
    if len(run.address):
        raise Unsupported("it has a codec without a counterpart in Zarr version 3, and chunks that are not inlined")
    return {index: convert(content) for index, content in inline.items()}
