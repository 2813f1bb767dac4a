"""What a file, or a reference file, may make this machine do. Without numpy, so that a command line can be read."""

from __future__ import annotations

from dataclasses import dataclass, fields

from h5zarr.errors import H5ZarrError

_GIB = 1 << 30


class LimitReached(H5ZarrError):
    """The input asks for more than it may. Nothing is wrong with it, or it was made to exhaust this machine."""

    kind = "limit"

    def __init__(self, what: str, name: str, most: int) -> None:
        remedy = f"If you trust where it comes from, allow more: --limit {name}=NUMBER, or h5zarr.Limits({name}=...)."
        super().__init__(f"{what}, more than the {most:,} that are allowed", remedy=remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one input may take. Far above what people write, and so that a process of a few GB survives the rest.

    What is inlined has limits of its own: `Inlining`.
    """

    depth: int = 10_000
    """How deep groups may be nested."""

    object_count: int = 1_000_000
    """How many groups, datasets and datatypes a file may have, or variables and dimensions."""

    metadata_nbytes: int = 8 * _GIB
    """How many bytes of metadata are read from one file. Those of a chunk take 16 to 100."""

    file_count: int = 10_000
    """How many other files a file may refer to, directly or through others."""

    chunk_nbytes: int = 4 * _GIB
    """What one filtered chunk may take when it is decoded to be read: the most that HDF5 had before version 2."""

    references_nbytes: int = 2 * _GIB
    """What a reference file may take, decompressed. A million chunks take 100 MB."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{field.name} is {value!r}, but must be a positive number")

    def check(self, name: str, found: int, what: str) -> None:
        """Raise LimitReached where `found` is more than the limit called `name` allows; `what` says of what."""
        if found > (most := getattr(self, name)):
            raise LimitReached(what, name, most)


USUAL = Limits()
