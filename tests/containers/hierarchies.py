"""Hierarchies made by hand, over a file that contains only chunks."""

from __future__ import annotations

import io
import itertools
import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.commands.translate.translation import Translation
from h5zarr.containers.fitting import fit
from h5zarr.containers.json.json_writing import write_json
from h5zarr.containers.output import Sink
from h5zarr.containers.provenance import Provenance
from h5zarr.containers.source_state import SourceState
from h5zarr.errors import Problem
from h5zarr.io.source import Identity
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Hierarchy, Manifest
from h5zarr.zarr_model.names import URL_KIND

PROVENANCE = Provenance("0", (SourceState("data.bin", Identity(nbytes=0)),))
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
ONE_BYTE = {"name": "bytes"}
UTF8 = {"name": "vlen-utf8"}


class RawFile:
    """A file to which chunks are appended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"file://{path}"
        # Not from 0, so that addresses have several digits and a wrong address is noticed.
        path.write_bytes(b"\xff" * 1000)

    def append(self, chunk: bytes) -> int:
        address = self.path.stat().st_size
        with self.path.open("ab") as file:
            file.write(chunk)
        return address


def chunks_of(values: npt.NDArray[Any], chunk_shape: tuple[int, ...]) -> Iterable[tuple[tuple[int, ...], Any]]:
    """Yield the coordinates and values of each chunk, those at the edge padded to full size."""
    grid = [-(-length // size) for length, size in zip(values.shape, chunk_shape, strict=True)]
    for index in itertools.product(*map(range, grid)):
        part = values[tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, chunk_shape, strict=True))]
        whole = np.zeros(chunk_shape, values.dtype)
        whole[tuple(map(slice, part.shape))] = part
        yield index, whole


def encode_text(values: npt.NDArray[Any]) -> bytes:
    """Return the chunk of `vlen-utf8`: the count, then the length and the bytes of each text."""
    texts = [str(value).encode() for value in values.ravel()]
    lengths = [len(text).to_bytes(4, "little") + text for text in texts]
    return len(texts).to_bytes(4, "little") + b"".join(lengths)


def make_array(
    files: RawFile | list[RawFile],
    values: Any,
    chunk_shape: tuple[int, ...] | None = None,
    *,
    data_type: Any = None,
    codecs: tuple[Any, ...] | None = None,
    encode: Any = None,
    fill_value: Any = 0,
    missing: Iterable[tuple[int, ...]] = (),
    inline: Iterable[tuple[int, ...]] = (),
    dimension_names: tuple[str, ...] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> ArrayNode:
    """Return an array of `values`. Its chunks are, in turn, in `files`, inlined, or missing."""
    values = np.asarray(values)
    files = files if isinstance(files, list) else [files]
    chunk_shape = values.shape if chunk_shape is None else chunk_shape
    encode = encode or (lambda chunk: chunk.tobytes())
    rows = []
    kept = {}
    for number, (index, chunk) in enumerate(chunks_of(values, chunk_shape)):
        stored = encode(chunk)
        if index in set(inline):
            kept[index] = stored
        elif index not in set(missing):
            source = number % len(files)
            rows.append((*index, files[source].append(stored), len(stored), source))
    columns = np.array(rows, np.int64).reshape(len(rows), values.ndim + 3)
    order = values.dtype.byteorder
    return ArrayNode(
        grid=RegularGrid(values.shape, chunk_shape),
        data_type=data_type or values.dtype.name,
        codecs=codecs or ((ONE_BYTE if order == "|" else BIG if order == ">" else LITTLE),),
        fill_value=fill_value,
        dimension_names=tuple(f"d{n}" for n in values.shape) if dimension_names is None else dimension_names,
        attributes=attributes or {},
        manifest=Manifest(
            index=np.ascontiguousarray(columns[:, : values.ndim]),
            address=columns[:, -3].copy(),
            nbytes=columns[:, -2].copy(),
            source=columns[:, -1].astype(np.int32) if len(files) > 1 else 0,
            inline=kept,
        ),
    )


def make_hierarchy(files: RawFile | list[RawFile], nodes: Mapping[str, GroupNode | ArrayNode]) -> Hierarchy:
    """Return a hierarchy of `nodes`, with a root."""
    files = files if isinstance(files, list) else [files]
    return Hierarchy(nodes={"/": GroupNode(attributes={}), **nodes}, urls=tuple(file.url for file in files))


def write_json_v3(hierarchy: Hierarchy, provenance: Provenance, out: Sink) -> tuple[Problem, ...]:
    """Fit and write `hierarchy` with Zarr v3 metadata. Return a problem for each node that is left out."""
    return _write_json(hierarchy, provenance, out, 3)


def write_json_v2(hierarchy: Hierarchy, provenance: Provenance, out: Sink) -> tuple[Problem, ...]:
    """Fit and write `hierarchy` with Zarr v2 metadata. Return a problem for each node that is left out."""
    return _write_json(hierarchy, provenance, out, 2)


def _write_json(hierarchy: Hierarchy, provenance: Provenance, out: Sink, zarr_format: int) -> tuple[Problem, ...]:
    fitted = fit(hierarchy, zarr_format=zarr_format)
    write_json(fitted, provenance, out)
    return tuple(one for one in fitted.hierarchy.problems if one.kind != URL_KIND)


def with_hierarchy(translation: Translation, hierarchy: Hierarchy) -> Translation:
    """Return a translation with its hierarchy replaced."""
    return replace(translation, fitted=fit(hierarchy, zarr_format=translation.fitted.zarr_format))


def v3_text(hierarchy: Hierarchy) -> bytes:
    out = io.BytesIO()
    write_json_v3(hierarchy, PROVENANCE, out)
    return out.getvalue()


def v2_text(hierarchy: Hierarchy) -> bytes:
    out = io.BytesIO()
    assert write_json_v2(hierarchy, PROVENANCE, out) == ()
    return out.getvalue()


def open_store(references: bytes) -> Any:
    """Return a zarr store over `references`, as fsspec reads them."""
    import fsspec
    from zarr.storage import FsspecStore

    filesystem = fsspec.filesystem(
        "reference",
        fo=json.loads(references),
        remote_protocol="file",
        remote_options={"asynchronous": True},
        asynchronous=True,
        skip_instance_cache=True,
    )
    return FsspecStore(filesystem, read_only=True, path="")


def assert_same(one: Hierarchy, other: Hierarchy) -> None:
    """Check that two hierarchies have the same nodes in the same order, with the same chunks."""
    assert list(one.nodes) == list(other.nodes)
    assert one.urls == other.urls
    for path, node in one.nodes.items():
        assert_same_node(node, other.nodes[path])


def assert_same_node(one: GroupNode | ArrayNode, other: GroupNode | ArrayNode) -> None:
    assert type(one) is type(other)
    # As text: NaN is not equal to itself, and a tuple is a list in JSON.
    assert json.dumps(dict(one.attributes)) == json.dumps(dict(other.attributes))
    if isinstance(one, ArrayNode) and isinstance(other, ArrayNode):
        for name in ("shape", "data_type", "codecs", "fill_value", "dimension_names"):
            assert json.dumps(getattr(one, name)) == json.dumps(getattr(other, name)), name
        assert one.grid == other.grid
        assert_same_chunks(one.manifest, other.manifest)


def assert_same_chunks(one: Manifest, other: Manifest) -> None:
    for name in ("index", "address", "nbytes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), strict=True)
    sources = [np.broadcast_to(manifest.source, manifest.count) for manifest in (one, other)]
    np.testing.assert_array_equal(*sources)
    assert dict(one.inline) == dict(other.inline)


def inline_references(store: Mapping[str, Any]) -> dict[str, str]:
    """Return version 0 references with the whole content of a zarr memory store."""
    found = {}
    for key, value in store.items():
        content = value.to_bytes()
        is_metadata = key.rpartition("/")[2].startswith((".z", "zarr.json"))
        found[key] = content.decode() if is_metadata else "base64:" + b64encode(content).decode()
    return found
