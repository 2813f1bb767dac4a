"""Limits on the resources that one untrusted input may use. Imports no numpy, so that the command line starts fast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

from h5zarr.errors import H5ZarrError

_GIB = 1 << 30


class LimitReached(H5ZarrError):
    """The input exceeds a limit. It may be unusually large, or made to exhaust this machine."""

    kind = "limit"

    def __init__(self, what: str, name: str, most: int) -> None:
        remedy = f"If you trust the input, raise the limit: limits={{{name!r}: NUMBER}}."
        super().__init__(f"{what}; the limit is {most:,}", remedy=remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resources that one input may use. The defaults are far above normal files, and protect a process with a few GB.

    Inlined data has its own limits: see `Inlining`.
    """

    depth: int = 10_000
    """Depth of nested groups."""

    object_count: int = 1_000_000
    """Number of groups, datasets and datatypes in a file, or of variables and dimensions."""

    metadata_nbytes: int = 8 * _GIB
    """Bytes of metadata read from one file. The metadata of a chunk takes 16 to 100 bytes."""

    file_count: int = 10_000
    """Number of other files that a file may refer to, directly or indirectly."""

    chunk_nbytes: int = 4 * _GIB
    """Size of one decoded chunk. The default is the maximum chunk size before HDF5 2.0."""

    references_nbytes: int = 2 * _GIB
    """Size of a decompressed reference file. A million chunks take 100 MB."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{field.name} must be an integer, not {type(value).__name__}")
            if value < 1:
                raise ValueError(f"{field.name} is {value}, but must be at least 1")

    @classmethod
    def from_mapping(cls, values: Mapping[str, int]) -> Self:
        """Return the limits with these fields. Raises ValueError or TypeError for a wrong one."""
        known = [field.name for field in fields(cls)]
        if unknown := [str(name) for name in values if name not in known]:
            raise ValueError(f"limits has no {', '.join(map(repr, unknown))}; it has {', '.join(known)}")
        return cls(**values)

    def check(self, name: str, found: int, what: str) -> None:
        """Raise LimitReached if `found` exceeds the limit called `name`. `what` describes what was found."""
        if found > (most := getattr(self, name)):
            raise LimitReached(what, name, most)


USUAL = Limits()
