"""Commands that fix a file, ready to copy: h5repack for HDF5, and nccopy for netCDF-3, which converts it to
netCDF-4.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from h5zarr.commands.check.thresholds import GOOD_CHUNK_NBYTES, PAGE_NBYTES
from h5zarr.io.location import Location

_NOT_IN_LISTS = re.compile(r"[,:]")  # separators in an h5repack object list


@dataclass(frozen=True, slots=True, kw_only=True)
class Mending:
    """How to fix one file. `renamed` maps variables to their paths in the file, where netCDF's name differs."""

    source: Location
    is_classic: bool = False
    renamed: Mapping[str, str] = field(default_factory=dict)

    def rechunk(self, path: str, chunk_shape: tuple[int, ...], *, compress: bool = False) -> str:
        """Return the command that rechunks a variable; "" if the command line cannot express its name."""
        stored = self.renamed.get(path, path)
        if _NOT_IN_LISTS.search(stored):
            return ""
        if self.is_classic:
            lengths = ",".join(map(str, chunk_shape))
            return self._run("nccopy", "-k", "nc4", "-s", "-d", "4", "-c", f"{stored.lstrip('/')}:{lengths}")
        lengths = "x".join(map(str, chunk_shape))
        compressing = ["-f", f"{stored}:SHUF", "-f", f"{stored}:GZIP=4"] if compress else []
        return self._run("h5repack", "-l", f"{stored}:CHUNK={lengths}", *compressing)

    def compress(self, path: str) -> str:
        """Return the command that compresses a variable with a codec that every Zarr reader has."""
        stored = self.renamed.get(path, path)
        if _NOT_IN_LISTS.search(stored):
            return ""
        if self.is_classic:
            return self._run("nccopy", "-k", "nc4", "-s", "-d", "4")
        return self._run("h5repack", "-f", f"{stored}:SHUF", "-f", f"{stored}:GZIP=4")

    def gather(self) -> str:
        """Return the command that collects all metadata in pages at the start of the file."""
        return self._run("h5repack", "-S", "PAGE", "-G", str(PAGE_NBYTES))

    def drop_user_block(self) -> str:
        """Return the command that removes a user block."""
        return shlex.join(["h5unjam", "-i", self._name, "--delete", "-o", self._out])

    def as_parquet(self) -> str:
        """Return the command that writes references as Parquet."""
        return shlex.join(["h5zarr", "translate", str(self.source), "refs.parquet"])

    @property
    def _name(self) -> str:
        """The file name for a command. A remote file must be downloaded first."""
        path = self.source.path
        return str(self.source).rstrip("/").rpartition("/")[2] if path is None else path

    @property
    def _out(self) -> str:
        dot, suffix = self._name.rpartition("/")[2].rpartition(".")[1:]
        return f"out.{suffix}" if dot else "out.h5"

    def _run(self, *words: str) -> str:
        return shlex.join([*words, self._name, self._out])


def suggest_chunk_shape(shape: tuple[int, ...], chunk_shape: tuple[int, ...], element_nbytes: int) -> tuple[int, ...]:
    """Return a chunk shape of about the recommended size, as similar to the present one as possible.

    Small chunks grow along the axis with the most chunks; large ones are halved along their longest axis.
    """
    most = max(1, GOOD_CHUNK_NBYTES // max(1, element_nbytes))
    lengths = [max(1, min(length, extent)) for length, extent in zip(chunk_shape, shape, strict=True)]
    while _product(lengths) > most and max(lengths) > 1:
        axis = lengths.index(max(lengths))
        lengths[axis] = -(-lengths[axis] // 2)
    while True:
        pieces = [-(-extent // length) for extent, length in zip(shape, lengths, strict=True)]
        # Ties go to the last axis, whose values are adjacent.
        order = sorted(range(len(lengths)), key=lambda axis: (pieces[axis], axis), reverse=True)
        grown = next((_grow(lengths, axis, shape) for axis in order if _fits(lengths, axis, shape, most)), None)
        if grown is None:
            return tuple(lengths)
        lengths = grown


def _fits(lengths: list[int], axis: int, shape: tuple[int, ...], most: int) -> bool:
    return lengths[axis] < shape[axis] and _product(_grow(lengths, axis, shape)) <= most


def _grow(lengths: list[int], axis: int, shape: tuple[int, ...]) -> list[int]:
    grown = list(lengths)
    grown[axis] = min(2 * grown[axis], shape[axis])
    return grown


def _product(lengths: list[int]) -> int:
    count = 1
    for length in lengths:
        count *= length
    return count
