"""On-disk structures, declared field by field in the order of the specification.

    @on_disk(b"FAHD")
    class FixedArrayHeader(OnDisk):
        version: U8
        entry_count: Length
        data_block: Address
        checksum: U32

`decode` checks the signature and the version (zero unless the decorator says otherwise). If the last field is called
`checksum`, it checks that too. Addresses are absolute, or None if undefined.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any, ClassVar, Self, TypeAlias, TypeVar, dataclass_transform, get_type_hints

from h5zarr.errors import MalformedFile
from h5zarr.hdf5.checksum import check_checksum
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.span import Span

U8: TypeAlias = Annotated[int, "B"]
U16: TypeAlias = Annotated[int, "H"]
U32: TypeAlias = Annotated[int, "I"]
Address: TypeAlias = Annotated[int | None, "offset"]
Length: TypeAlias = Annotated[int, "length"]
Reserved3: TypeAlias = Annotated[bytes, "3s"]

WIDTHS = {1: "B", 2: "H", 4: "I", 8: "Q"}


class OnDisk:
    """Base class of structures declared with `on_disk`."""

    signature: ClassVar[bytes]
    versions: ClassVar[tuple[int, ...]]

    @classmethod
    @cache
    def _layout(cls, offset_nbytes: int, length_nbytes: int) -> tuple[struct.Struct, tuple[str, ...], tuple[str, ...]]:
        """Return the structure's format, its field names, and the names of its address fields."""
        codes = {"offset": WIDTHS[offset_nbytes], "length": WIDTHS[length_nbytes]}
        hints: dict[str, Any] = get_type_hints(cls, include_extras=True)
        names = tuple(declared.name for declared in fields(cls))  # type: ignore[arg-type]
        kinds = [hints[name].__metadata__[0] for name in names]
        layout = struct.Struct(f"<{len(cls.signature)}s" + "".join(codes.get(kind, kind) for kind in kinds))
        return layout, names, tuple(name for name, kind in zip(names, kinds, strict=True) if kind == "offset")

    @classmethod
    def nbytes(cls, sizes: Sizes) -> int:
        """The size of the structure's fixed part, including the signature."""
        return cls._layout(sizes.offset_nbytes, sizes.length_nbytes)[0].size

    @classmethod
    def span(cls, address: int, sizes: Sizes) -> Span:
        """Return the span of the structure's fixed part."""
        return sizes.span(address, cls.nbytes(sizes), cls.title())

    @classmethod
    @cache
    def title(cls) -> str:
        """The name of the structure in words: "fixed array header" for `FixedArrayHeader`."""
        return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in cls.__name__).strip()

    @classmethod
    def decode(cls, block: bytes | memoryview, sizes: Sizes, *, at: int) -> Self:
        """Return the structure at the beginning of `block`, whose address in the file is `at`."""
        layout, names, addresses = cls._layout(sizes.offset_nbytes, sizes.length_nbytes)
        if len(block) < layout.size:
            raise MalformedFile(f"{cls.title()} is truncated", at=at)
        signature, *values = layout.unpack_from(block)
        if signature != cls.signature:
            check_signature(block, cls.signature, cls.title(), at)
        found = dict(zip(names, values, strict=True))
        for name in addresses:
            found[name] = sizes.address(found[name])
        if found.get("version", cls.versions[0]) not in cls.versions:
            raise MalformedFile(f"{cls.title()} has unknown version {found['version']}", at=at)
        if names[-1] == "checksum":
            check_checksum(block[: layout.size], cls.title(), at)
        structure = cls.__new__(cls)
        object.__setattr__(structure, "__dict__", found)  # faster than the __init__ of a frozen dataclass
        return structure


Declared = TypeVar("Declared", bound=OnDisk)


@dataclass_transform(kw_only_default=True, frozen_default=True)
def on_disk(signature: bytes, *, versions: tuple[int, ...] = (0,)) -> Callable[[type[Declared]], type[Declared]]:
    """Declare a structure that begins with `signature` and has one of `versions`."""

    def declare(cls: type[Declared]) -> type[Declared]:
        declared = dataclass(frozen=True, kw_only=True)(cls)
        declared.signature = signature
        declared.versions = versions
        return declared

    return declare


def check_signature(block: bytes | memoryview, expected: bytes, what: str, at: int) -> None:
    """Raise MalformedFile unless `block` begins with `expected`."""
    if (found := bytes(block[: len(expected)])) != expected:
        raise MalformedFile(f"{what} has signature {found!r}, expected {expected!r}", at=at)
