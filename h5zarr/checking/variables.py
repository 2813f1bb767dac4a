"""What becomes of each variable of a file, and what it takes to read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import prod

import numpy as np

from h5zarr.encode.encode import STORED
from h5zarr.encode.filters import OWN
from h5zarr.errors import H5ZarrError, Problem
from h5zarr.hierarchy import ArrayNode, GroupNode, Hierarchy, Json
from h5zarr.refs.v2_types import decode_data_type


class Verdict(StrEnum):
    """What becomes of a variable: chunks are referred to, the references hold all of it, or it is left out.

    Of one that is `UNWRITTEN` nothing is stored: it reads as fill.
    """

    REFERENCED = "referenced"
    INLINED = "inlined"
    UNWRITTEN = "unwritten"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedVariable:
    """A variable, or something else that is refused. `problems` say why, or which part of a variable is left out.

    `stored_nbytes` and `decoded_nbytes` are those of the chunks that are referred to, without what hangs over the edge
    of the array; `chunk_nbytes` is one whole chunk, decoded. `has_chunks` is None where nobody has said. `own_codecs`
    are those that zarr alone does not have.
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
    problems: tuple[Problem, ...] = ()

    @property
    def requests_per_gb(self) -> float | None:
        """How many chunks a reader asks for to have a gigabyte of values, one by one; None where there are none."""
        return self.chunk_count * 1e9 / self.decoded_nbytes if self.decoded_nbytes else None

    @property
    def compression_ratio(self) -> float | None:
        """How much larger chunks are when they are decoded; None where there are none."""
        return self.chunk_count * self.chunk_nbytes / self.stored_nbytes if self.stored_nbytes else None

    @property
    def stored_chunk_nbytes(self) -> int:
        """What a chunk takes in the file, on average."""
        return self.stored_nbytes // self.chunk_count if self.chunk_count else 0

    def to_json(self) -> dict[str, Json]:
        """Return it for machines; what a refused variable has not is left out."""
        told: dict[str, Json] = {"path": self.path, "verdict": self.verdict.value}
        if self.verdict is not Verdict.REFUSED:
            per_gb, ratio = self.requests_per_gb, self.compression_ratio
            told |= {
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
        return told | {"problems": [describe_problem(problem) for problem in self.problems]}


def describe_problem(problem: Problem) -> dict[str, str]:
    """Return a problem for machines."""
    return {"path": problem.path, "kind": problem.kind, "message": problem.message, "remedy": problem.remedy}


def check_variables(hierarchy: Hierarchy) -> tuple[CheckedVariable, ...]:
    """Return all arrays, in the order of the hierarchy, then all that is named by a problem and is not there."""
    problems: dict[str, list[Problem]] = {}
    for problem in hierarchy.problems:
        problems.setdefault(problem.path, []).append(problem)
    forms = _stored_forms(hierarchy)
    found = [
        check_array(path, node, forms.get(path), problems.get(path, ()))
        for path, node in hierarchy.nodes.items()
        if isinstance(node, ArrayNode)
    ]
    refused = [
        CheckedVariable(path=path, verdict=Verdict.REFUSED, problems=tuple(told))
        for path, told in problems.items()
        if path not in hierarchy.nodes
    ]
    return (*found, *refused)


def check_array(
    path: str, node: ArrayNode, form: Mapping[str, Json] | None, problems: Iterable[Problem] = ()
) -> CheckedVariable:
    """Return what becomes of an array; `form` is what the record of its group says of it, None if there is none."""
    manifest = node.manifest
    verdict = Verdict.REFERENCED if manifest.count else Verdict.INLINED if manifest.inline else Verdict.UNWRITTEN
    element_nbytes = _element_nbytes(node)
    compressors = [codec["name"] for codec in node.codecs if codec["name"] not in _NOT_COMPRESSING]
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
        has_chunks=None if form is None else "chunks" in form,
        is_compressed=bool(compressors),
        own_codecs=tuple(dict.fromkeys(codec["name"] for codec in node.codecs if codec["name"].startswith(OWN))),
        problems=tuple(problems),
    )


_NOT_COMPRESSING = frozenset({"bytes", "vlen-utf8", "numcodecs.shuffle", "numcodecs.fletcher32"}) | {
    f"{OWN}{name}" for name in ("shuffle", "elements")
}


def _element_nbytes(node: ArrayNode) -> int:
    try:
        return decode_data_type(node.data_type, "<").itemsize
    except H5ZarrError:  # no type that a number of bytes is known for
        return 0


def _count_elements(node: ArrayNode) -> int:
    """Return how many elements of the array are in chunks that are referred to."""
    index = node.manifest.index
    if not len(index):
        return 0
    counts = np.ones(len(index), np.float64)  # extents may be larger than any integer of numpy, if a file says so
    for axis, (extent, length) in enumerate(zip(node.shape, node.chunk_shape, strict=True)):
        counts *= np.clip(float(extent) - index[:, axis].astype(np.float64) * length, 0, length)
    total = counts.sum()
    return int(total) if np.isfinite(total) else 0


def _stored_forms(hierarchy: Hierarchy) -> dict[str, Mapping[str, Json]]:
    """Return what the records of groups say of their variables, by path; an empty record where nothing is unusual."""
    forms: dict[str, Mapping[str, Json]] = {}
    for path, node in hierarchy.nodes.items():
        parent, _, name = path.rpartition("/")
        group = hierarchy.nodes.get(parent or "/")
        if isinstance(node, ArrayNode) and isinstance(group, GroupNode) and STORED in group.attributes:
            forms[path] = group.attributes[STORED].get("variables", {}).get(name, {})
    return forms
