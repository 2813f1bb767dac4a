"""The superblock, the entry point of a file. Spec: II.A."""

from __future__ import annotations

from dataclasses import dataclass

from h5zarr.errors import H5ZarrError, MalformedFile, Unsupported
from h5zarr.hdf5.checksum import check_checksum
from h5zarr.hdf5.cursor import Cursor, text
from h5zarr.hdf5.header import Message
from h5zarr.hdf5.messages.kinds import Kind
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.span import Span
from h5zarr.io.steps import Step
from h5zarr.signatures import wrong_format


class NotHdf5(Unsupported):
    """The file is a netCDF classic file, but HDF5 is required."""

    remedy = (
        "h5zarr can translate and inspect netCDF-3 files. `nccopy -k nc4` converts the file to netCDF-4, which is HDF5."
    )


SIGNATURE = b"\x89HDF\r\n\x1a\n"
_FIRST_READ_NBYTES = 2048  # covers the first possible positions of the signature
_NBYTES = 128  # larger than a superblock of any version
_PAGED = b"\x01\x01"  # a file space message of version 1, followed by the strategy
_DRIVERS = {"NCSAfami": "family", "NCSAmult": "multi or split", "Subfilin": "subfiling"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Superblock:
    """The content of the superblock. `stated_end` is the end of the file according to the superblock."""

    version: int
    sizes: Sizes
    root: int
    extension: int | None
    stated_end: int
    driver_block: int | None = None


def read_superblock(nbytes: int) -> Step[Superblock]:
    """Return the superblock of a source of `nbytes` bytes.

    Takes one round, or two if a large user block precedes it.
    """
    (head,) = yield [Span(0, min(nbytes, _FIRST_READ_NBYTES))]
    places = [0]
    while (place := max(512, 2 * places[-1])) < nbytes:
        places.append(place)
    near = [place for place in places if place + len(SIGNATURE) <= len(head)]
    for place in near:
        if bytes(head[place : place + 8]) == SIGNATURE:
            block = head[place : place + _NBYTES]
            if len(block) < _NBYTES and place + len(block) < nbytes:
                (block,) = yield [Span(place, min(_NBYTES, nbytes - place))]
            return _decode(bytes(block), place, nbytes)
    far = [Span(place, min(_NBYTES, nbytes - place)) for place in places if place not in near]
    blocks = yield far
    for span, block in zip(far, blocks, strict=True):
        if bytes(block[:8]) == SIGNATURE:
            return _decode(bytes(block), span.address, nbytes)
    raise _not_hdf5(bytes(head))


def _not_hdf5(head: bytes) -> H5ZarrError:
    if head[:4] in (b"CDF\x01", b"CDF\x02", b"CDF\x05"):
        return NotHdf5("this is a netCDF-3 file, but HDF5 is required here")
    return wrong_format(head)


def _decode(block: bytes, place: int, nbytes: int) -> Superblock:
    """Return the superblock at `place`. All addresses in the file are relative to `place`.

    The stored base address is not used. A user block may have been added after the file was written, and in that case
    the HDF5 library also relies on the actual position.
    """
    if len(block) < 9:
        raise MalformedFile("superblock is truncated", at=place)
    version = block[8]
    if version in (0, 1):
        return _decode_old(block, place, nbytes, version)
    if version in (2, 3):
        return _decode_new(block, place, nbytes, version)
    raise MalformedFile(f"superblock has unknown version {version}", at=place)


def _sizes(offset_nbytes: int, length_nbytes: int, place: int, nbytes: int) -> Sizes:
    if offset_nbytes not in (2, 4, 8) or length_nbytes not in (2, 4, 8):
        raise Unsupported(
            f"addresses of {offset_nbytes} bytes and lengths of {length_nbytes}: h5zarr supports 2, 4 and 8"
        )
    return Sizes(offset_nbytes=offset_nbytes, length_nbytes=length_nbytes, base=place, end=nbytes)


def _decode_old(block: bytes, place: int, nbytes: int, version: int) -> Superblock:
    cursor = Cursor(block, "superblock")
    cursor.skip(13)
    plain = _sizes(cursor.u8(), cursor.u8(), place, nbytes)
    cursor.skip(1)
    leaf_rank, internal_rank = cursor.u16(), cursor.u16()
    cursor.skip(4)  # consistency flags
    chunk_rank = plain.chunk_rank
    if version == 1:
        chunk_rank = cursor.u16()
        cursor.skip(2)
    sizes = _with_ranks(plain, leaf_rank, internal_rank, chunk_rank, place)
    cursor = Cursor(block[cursor.position :], "superblock", sizes)
    stated_base = cursor.uint(sizes.offset_nbytes)
    cursor.skip(sizes.offset_nbytes)  # address of free space information, which is never stored
    stated_end = cursor.uint(sizes.offset_nbytes)
    driver_block = cursor.address()
    cursor.skip(sizes.length_nbytes)  # the root's name, which is empty
    if (root := cursor.address()) is None:
        raise MalformedFile("superblock has no root group", at=place)
    return Superblock(
        version=version,
        sizes=sizes,
        root=root,
        extension=None,
        stated_end=stated_end - stated_base + place,
        driver_block=driver_block,
    )


def _decode_new(block: bytes, place: int, nbytes: int, version: int) -> Superblock:
    cursor = Cursor(block, "superblock")
    cursor.skip(9)
    sizes = _sizes(cursor.u8(), cursor.u8(), place, nbytes)
    end = 12 + 4 * sizes.offset_nbytes + 4
    if len(block) < end:
        raise MalformedFile("superblock is truncated", at=place)
    check_checksum(block[:end], "superblock", place)
    cursor = Cursor(block[12:], "superblock", sizes)
    stated_base = cursor.uint(sizes.offset_nbytes)
    extension = cursor.address()
    stated_end = cursor.uint(sizes.offset_nbytes) - stated_base + place
    if (root := cursor.address()) is None:
        raise MalformedFile("superblock has no root group", at=place)
    return Superblock(version=version, sizes=sizes, root=root, extension=extension, stated_end=stated_end)


def _with_ranks(sizes: Sizes, leaf: int, internal: int, chunk: int, at: int) -> Sizes:
    if 0 in (leaf, internal, chunk):
        raise MalformedFile("B-tree rank is zero", at=at)
    return Sizes(
        offset_nbytes=sizes.offset_nbytes,
        length_nbytes=sizes.length_nbytes,
        base=sizes.base,
        end=sizes.end,
        group_leaf_rank=leaf,
        group_internal_rank=internal,
        chunk_rank=chunk,
    )


def apply_extension(sizes: Sizes, messages: tuple[Message, ...]) -> Sizes:
    """Return the sizes, updated with the B-tree ranks of the superblock extension. Raises for multi-file drivers."""
    for message in messages:
        cursor = Cursor(message.content, "superblock extension message", sizes)
        if message.kind == Kind.BTREE_RANKS:
            if (version := cursor.u8()) != 0:
                raise MalformedFile(f"B-tree ranks message has unknown version {version}", at=message.address)
            chunk, internal, leaf = cursor.u16(), cursor.u16(), cursor.u16()
            sizes = _with_ranks(sizes, leaf, internal, chunk, message.address)
        elif message.kind == Kind.DRIVER_INFO:
            cursor.skip(1)
            refuse_driver(text(cursor.take(8)))
    return sizes


def has_pages(messages: tuple[Message, ...]) -> bool:
    """Return whether the superblock extension says that metadata is stored in separate pages. Spec: IV.A.2.x.

    This only affects how the file is read, so unknown content is ignored.
    """
    message = next((message for message in messages if message.kind == Kind.FILE_SPACE), None)
    return message is not None and message.content[:2] == _PAGED


def read_driver_block(superblock: Superblock) -> Step[None]:
    """Raise Unsupported if the file is one of several parts. Spec: II.B."""
    if superblock.driver_block is None:
        return
    (block,) = yield [superblock.sizes.span(superblock.driver_block, 16, "driver information block")]
    refuse_driver(text(bytes(block[8:16])))


def refuse_driver(name: str) -> None:
    """Raise Unsupported for a driver that splits a file into several. Other drivers do not change the file."""
    if name.startswith(tuple(_DRIVERS)):
        kind = next(kind for prefix, kind in _DRIVERS.items() if name.startswith(prefix))
        raise Unsupported(
            f"this is one part of a file written with the {kind} driver; join the parts with h5repart first"
        )
