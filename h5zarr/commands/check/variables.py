"""The verdict on each variable of a file, and the cost of reading it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import prod

import numpy as np

from h5zarr.errors import H5ZarrError, Problem
from h5zarr.zarr_model.codecs import is_compressing, needed_package, own_codec_label
from h5zarr.zarr_model.data_types import decode_data_type
from h5zarr.zarr_model.hierarchy import ArrayNode, Hierarchy, Json, VariableRecord


class Verdict(StrEnum):
    """How a variable is virtualised: its chunks are referenced, the references hold all of it, or it is left out.

    Nothing is stored of an `UNWRITTEN` variable: it reads as fill.
    """

    REFERENCED = "referenced"
    INLINED = "inlined"
    UNWRITTEN = "unwritten"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedVariable:
    """A variable, or another object that is refused. `problems` say why, or which part of a variable is left out.

    `stored_nbytes` and `decoded_nbytes` count the referenced chunks, without the parts beyond the edge of the array;
    `chunk_nbytes` is the decoded size of one whole chunk. `has_chunks` is None if unknown. `own_codecs` are the codecs
    that come with h5zarr, and `packages` the optional packages that decoding needs.
    """

    path: str
    verdict: Verdict
    data_type: Json = None
    shape: tuple[int, ...] = ()
    dimension_names: tuple[str, ...] = ()
    chunk_shape: tuple[int, ...] = ()
    chunk_count: int = 0
    stored_nbytes: int = 0
    decoded_nbytes: int = 0
    chunk_nbytes: int = 0
    inlined_count: int = 0
    inlined_nbytes: int = 0
    has_chunks: bool | None = None
    is_compressed: bool = False
    own_codecs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def requests_per_gb(self) -> float | None:
        """The number of chunks to request for a gigabyte of values, one by one; None if there are no chunks."""
        return self.chunk_count * 1e9 / self.decoded_nbytes if self.decoded_nbytes else None

    @property
    def compression_ratio(self) -> float | None:
        """The ratio of the decoded to the stored size of chunks; None if there are no chunks."""
        return self.chunk_count * self.chunk_nbytes / self.stored_nbytes if self.stored_nbytes else None

    @property
    def stored_chunk_nbytes(self) -> int:
        """The average stored size of a chunk."""
        return self.stored_nbytes // self.chunk_count if self.chunk_count else 0

    def to_json(self) -> dict[str, Json]:
        """Return this variable for machines, without the fields that a refused variable lacks."""
        document: dict[str, Json] = {"path": self.path, "verdict": self.verdict.value}
        if self.verdict is not Verdict.REFUSED:
            per_gb, ratio = self.requests_per_gb, self.compression_ratio
            document |= {
                "data_type": self.data_type,
                "shape": list(self.shape),
                "dimension_names": list(self.dimension_names),
                "chunk_shape": list(self.chunk_shape),
                "chunks": self.chunk_count,
                "stored_bytes": self.stored_nbytes,
                "decoded_bytes": self.decoded_nbytes,
                "stored_bytes_per_chunk": self.stored_chunk_nbytes,
                "decoded_bytes_per_chunk": self.chunk_nbytes,
                "requests_per_gb": None if per_gb is None else round(per_gb, 1),
                "compression_ratio": None if ratio is None else round(ratio, 2),
                "inlined_chunks": self.inlined_count,
                "inlined_bytes": self.inlined_nbytes,
                "chunked_in_file": self.has_chunks,
                "codecs_of_h5zarr": list(self.own_codecs),
            }
        return document | {"problems": [problem.to_json() for problem in self.problems]}


def check_variables(hierarchy: Hierarchy) -> tuple[CheckedVariable, ...]:
    """Return all arrays in the order of the hierarchy, then all objects that have a problem and are not in it."""
    problems: dict[str, list[Problem]] = {}
    for problem in hierarchy.problems:
        problems.setdefault(problem.path, []).append(problem)
    found = [
        check_array(path, node, hierarchy.record_of(path), problems.get(path, ()))
        for path, node in hierarchy.nodes.items()
        if isinstance(node, ArrayNode)
    ]
    refused = [
        CheckedVariable(path=path, verdict=Verdict.REFUSED, problems=tuple(some))
        for path, some in problems.items()
        if path not in hierarchy.nodes
    ]
    return (*found, *refused)


def check_array(
    path: str, node: ArrayNode, record: VariableRecord | None, problems: Iterable[Problem] = ()
) -> CheckedVariable:
    """Return the verdict on an array. `record` is None if its group has none."""
    manifest = node.manifest
    verdict = Verdict.REFERENCED if manifest.count else Verdict.INLINED if manifest.inline else Verdict.UNWRITTEN
    element_nbytes = _element_nbytes(node)
    return CheckedVariable(
        path=path,
        verdict=verdict,
        data_type=node.data_type,
        shape=node.shape,
        dimension_names=node.dimension_names,
        chunk_shape=node.chunk_shape,
        chunk_count=manifest.count,
        stored_nbytes=int(manifest.nbytes.sum()),
        decoded_nbytes=_count_elements(node) * element_nbytes,
        chunk_nbytes=prod(node.chunk_shape) * element_nbytes,
        inlined_count=len(manifest.inline),
        inlined_nbytes=sum(map(len, manifest.inline.values())),
        has_chunks=None if record is None else record.form.chunk_shape is not None,
        is_compressed=any(map(is_compressing, node.codecs)),
        own_codecs=tuple(dict.fromkeys(filter(None, map(own_codec_label, node.codecs)))),
        packages=tuple(dict.fromkeys(filter(None, map(needed_package, node.codecs)))),
        problems=tuple(problems),
    )


def _element_nbytes(node: ArrayNode) -> int:
    try:
        return decode_data_type(node.data_type, "<").itemsize
    except H5ZarrError:  # a data type without a known size
        return 0


def _count_elements(node: ArrayNode) -> int:
    """Return the number of array elements in referenced chunks."""
    index = node.manifest.index
    if not len(index):
        return 0
    counts = np.ones(len(index), np.float64)  # a file may declare extents beyond numpy's integers
    for axis, (extent, length) in enumerate(zip(node.shape, node.chunk_shape, strict=True)):
        counts *= np.clip(float(extent) - index[:, axis].astype(np.float64) * length, 0, length)
    total = counts.sum()
    return int(total) if np.isfinite(total) else 0
