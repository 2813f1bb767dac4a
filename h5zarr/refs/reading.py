"""From a reference JSON back to a `Hierarchy`: that of h5zarr, kerchunk or VirtualiZarr, with Zarr version 2 or 3."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from h5zarr.errors import H5ZarrError, MalformedFile, Unsupported
from h5zarr.hdf5.guard import SURPRISES, surprised
from h5zarr.hierarchy import ArrayNode, GroupNode, Hierarchy
from h5zarr.limits import USUAL, Limits
from h5zarr.refs.array_metadata import ArrayMetadata, name_dimensions
from h5zarr.refs.chunk_entries import Index, Run, decode_entries
from h5zarr.refs.chunk_keys import group_entries
from h5zarr.refs.compression import GZIP, ZSTD, decompress, peek
from h5zarr.refs.container import OWN_BEGINNING
from h5zarr.refs.document import Document, decode_document, decode_own_document
from h5zarr.refs.manifests import Chunks, arrange_urls, join_runs
from h5zarr.refs.node_metadata import Nodes, take_nodes
from h5zarr.refs.provenance import Provenance

_REMEDY = "The references may be damaged, or were never right; write them again with the tool that made them."
_MARK = b"\xef\xbb\xbf"  # some put it in front of UTF-8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class References:
    """What a reference file holds, in the terms of Zarr version 3, whatever stood in it.

    A URL that is "" is for whoever reads to give: the references are to one file that may be anywhere. `provenance` is
    None where h5zarr did not write the file. `unfilled` are the paths of arrays of version 2 whose fill value is null.
    """

    hierarchy: Hierarchy
    provenance: Provenance | None
    unfilled: frozenset[str] = frozenset()


def is_references(content: bytes) -> bool:
    """Return whether a file with these first bytes may be a reference JSON: an object, or something compressed."""
    return content.startswith((GZIP, ZSTD)) or content.removeprefix(_MARK).lstrip(b" \t\r\n").startswith(b"{")


def is_own_references(content: bytes) -> bool:
    """Return whether a file with these first bytes is a reference JSON that h5zarr wrote, perhaps compressed."""
    return peek(content, len(OWN_BEGINNING)) == OWN_BEGINNING


def decode_references(content: bytes, name: str, limits: Limits = USUAL) -> References:
    """Return what a reference JSON holds, of which `content` are the bytes, perhaps compressed by gzip or zstd.

    `name` is how errors call the file: it must be safe to show. What is there, but cannot be understood, is among the
    problems of the hierarchy; raises an H5ZarrError where nothing can be trusted.
    """
    content = decompress(content, name, limits)
    with told_of(name):
        try:
            if (document := decode_own_document(content)) is not None:
                return assemble(document)
        except (H5ZarrError, *SURPRISES):
            pass  # so it is not as h5zarr writes it, which will be told better
        return assemble(decode_document(content))


@contextmanager
def told_of(name: str) -> Iterator[None]:
    """Put the name of the file in front of what is wrong with it."""
    try:
        yield
    except MalformedFile as error:
        raise MalformedFile(f"{name}: {error}", remedy=_REMEDY) from None
    except H5ZarrError as error:
        raise error.naming(name) from None
    except SURPRISES as error:
        raise MalformedFile(f"{name}: {surprised(error)}", remedy=_REMEDY) from error


def assemble(document: Document) -> References:
    """Return what the entries of a document say together. They are used up."""
    nodes = take_nodes(document.entries)
    chunks = _find_chunks(document, nodes)
    arrays = nodes.arrays()
    names = name_dimensions(arrays)
    urls, numbers = arrange_urls(
        dict.fromkeys(url for found in chunks.values() for url in found.run.urls), document.provenance
    )
    made: dict[str, GroupNode | ArrayNode] = {}
    for path, node in nodes.found.items():
        if isinstance(node, ArrayMetadata):
            made[path] = ArrayNode(
                shape=node.shape,
                data_type=node.data_type,
                chunk_shape=node.chunk_shape,
                codecs=node.codecs,
                fill_value=node.fill_value,
                dimension_names=names[path],
                attributes=node.attributes,
                manifest=chunks[path].to_manifest(numbers),
            )
        else:
            made[path] = GroupNode(attributes=node)
    warnings = tuple(warning for array in arrays.values() for warning in array.warnings)
    recorded = document.provenance.problems if document.provenance is not None else ()
    problems = (*recorded, *nodes.problems)
    hierarchy = Hierarchy(nodes=made, urls=urls, problems=problems, warnings=warnings)
    unfilled = frozenset(path for path, array in arrays.items() if array.is_unfilled)
    return References(hierarchy=hierarchy, provenance=document.provenance, unfilled=unfilled)


def _find_chunks(document: Document, nodes: Nodes) -> dict[str, Chunks]:
    """Return the chunks of each array, by its path. One whose chunks cannot be understood is taken out of `nodes`."""
    arrays = nodes.arrays()
    below = group_entries(document.entries, [*arrays, *nodes.skipped], nodes.mark)
    runs = {run.layout: run for run in document.runs}
    known = {array.keys for array in arrays.values()}
    if len(runs) < len(document.runs) or any(one not in known and one.path not in nodes.skipped for one in runs):
        raise MalformedFile("there are references to chunks of no array")
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
    """Return chunks as the codecs have them. Raises Unsupported if some of them are elsewhere."""
    if len(run.address):
        raise Unsupported("it has a codec without counterpart in Zarr version 3, and chunks that are not inline")
    return {index: convert(content) for index, content in inline.items()}
