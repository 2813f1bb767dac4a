"""Open Parquet references as other programs do, through fsspec's lazy reader."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import numpy.typing as npt
import zarr
from fsspec.implementations.reference import LazyReferenceMapper
from zarr.storage import FsspecStore


class Files(dict[str, bytes]):
    """Written files by name, in the order of writing."""

    shown = "refs.parquet"

    def start(self, token: str) -> None:
        pass

    def write_file(self, name: str, content: bytes | memoryview, /) -> None:
        assert name not in self
        self[name] = bytes(content)

    def save(self, directory: Path) -> Path:
        for name, content in self.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(content)
        return directory


@contextmanager
def lenient() -> Iterator[None]:
    """Ignore warnings of other packages: of pandas about fastparquet, of zarr about metadata of both versions."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The 'fastparquet' engine is deprecated")
        warnings.filterwarnings("ignore", message="Both zarr.json")
        yield


def lazy_mapper(directory: Path) -> LazyReferenceMapper:
    """Return fsspec's mapping from keys to references."""
    return LazyReferenceMapper(str(directory))


def lazy_group(directory: Path) -> zarr.Group:
    """Return the root group, as zarr sees it through fsspec."""
    filesystem = fsspec.filesystem(
        "reference",
        fo=str(directory),
        remote_protocol="file",
        remote_options={"asynchronous": True},
        asynchronous=True,
        skip_instance_cache=True,
    )
    return zarr.open_group(FsspecStore(filesystem, read_only=True, path=""), mode="r")


def same_values(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Return whether arrays are bitwise equal, or have equal texts."""
    one, other = np.asarray(one), np.asarray(other)
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    return (
        one.tolist() == other.tolist()
        if one.dtype.hasobject or one.dtype.kind == "T"
        else one.tobytes() == other.tobytes()
    )
