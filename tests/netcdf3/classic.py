"""Make classic files, parse them, and read them as users do."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from h5zarr.io.span import Span
from h5zarr.io.steps import run
from h5zarr.netcdf3.classic_file import ClassicFile
from h5zarr.netcdf3.layout import read_classic
from h5zarr.zarr_model.hierarchy import Hierarchy
from tests.collections_of_files import SAMPLES
from tests.containers.hierarchies import open_store, v3_text

sys.path.insert(0, str(SAMPLES))

from recipes.classic import Var, encode_classic

__all__ = ["Reading", "Var", "encode_classic", "read_back"]


class Reading:
    """The bytes of a file. `requests` has the spans of each round of the parser."""

    def __init__(self, content: bytes, beginning: int = 0) -> None:
        self.content = content
        self.requests: list[list[Span]] = []
        self.file: ClassicFile = run(read_classic("file", len(content), content[:beginning]), self._read_many)

    def _read_many(self, spans: Sequence[Span]) -> list[memoryview]:
        assert all(span.address >= 0 and span.nbytes > 0 and span.end <= len(self.content) for span in spans)
        self.requests.append(list(spans))
        return [memoryview(self.content)[span.address : span.end] for span in spans]


def read_back(hierarchy: Hierarchy) -> dict[str, np.ndarray[Any, Any]]:
    """Return the values of all arrays, as zarr reads them through the references."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zarr's, about letters and consolidated metadata
        group = zarr.open_group(open_store(v3_text(hierarchy)), mode="r")
        return {name: np.asarray(array[...]) for name, array in group.arrays()}


def write(folder: Path, *arguments: Any, **options: Any) -> Path:
    """Return the path of a new file; for the arguments see `encode_classic`."""
    path = folder / "file.nc"
    path.write_bytes(encode_classic(*arguments, **options))
    return path
