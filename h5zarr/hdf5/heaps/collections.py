"""The global heap: variable-length values in collections that objects share. Spec: III.E."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from h5zarr.errors import H5ZarrError, MalformedFile
from h5zarr.hdf5.on_disk import U8, WIDTHS, Length, OnDisk, Reserved3, on_disk
from h5zarr.hdf5.sizes import Sizes
from h5zarr.io.span import AmongData
from h5zarr.io.steps import Hints, Step

_LEAST_NBYTES = 4096  # the smallest collection that the HDF5 library creates


@on_disk(b"GCOL", versions=(1,))
class CollectionHeader(OnDisk):
    """Header of a global heap collection. `nbytes_in_all` includes the header. Spec: III.E."""

    version: U8
    reserved: Reserved3
    nbytes_in_all: Length


class CollectionsMissing(Exception):
    """Some collections must be read before a value can be decoded. Caught inside the parser."""

    def __init__(self, addresses: set[int]) -> None:
        self.addresses = addresses


class GlobalHeap:
    """The collections read so far. Each collection is read only once.

    Value decoders call `require` and `object` as if all collections were available. If some are missing, the caller
    reads them and runs the decoder again.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._collections: dict[int, dict[int, bytes] | H5ZarrError] = {}

    def read(self, addresses: Iterable[int]) -> Step[None]:
        """Read the collections at `addresses`, in at most two rounds. An error in a collection is raised on use."""
        missing = [address for address in set(addresses) if address not in self._collections]
        if not missing:
            return
        least = CollectionHeader.nbytes(self._sizes)
        spans = []
        for address in missing:
            try:
                spans.append(self._sizes.span_up_to(address, least, _LEAST_NBYTES, "global heap collection"))
            except MalformedFile as error:
                self._collections[address] = error
        yield Hints([AmongData(spans)])  # HDF5 allocates collections among raw data
        buffers = yield spans
        longer = []
        for span, buffer in zip(spans, buffers, strict=True):
            if span.address in self._collections:  # another step asked for it in the same round
                continue
            try:
                header = CollectionHeader.decode(buffer, self._sizes, at=span.address)
                whole = self._sizes.span(span.address, header.nbytes_in_all, "global heap collection")
            except MalformedFile as error:
                self._collections[span.address] = error
                continue
            if whole.nbytes > span.nbytes:
                longer.append(whole)
            else:
                self._collections[span.address] = self._decode(bytes(buffer[: whole.nbytes]), span.address)
        if longer:
            buffers = yield longer
            for span, buffer in zip(longer, buffers, strict=True):
                if span.address not in self._collections:
                    self._collections[span.address] = self._decode(bytes(buffer), span.address)

    def __contains__(self, address: int) -> bool:
        """Return whether the collection at `address` has been read."""
        return address in self._collections

    def require(self, addresses: Iterable[int]) -> None:
        """Raise `CollectionsMissing` unless all collections at `addresses` have been read."""
        if missing := {address for address in addresses if address not in self._collections}:
            raise CollectionsMissing(missing)

    def object(self, address: int, index: int, nbytes: int | None = None) -> bytes:
        """Return an object of a collection that has been read, or its first `nbytes` bytes."""
        collection = self._collections[address]
        if isinstance(collection, H5ZarrError):
            raise MalformedFile(str(collection))
        if index not in collection:
            raise MalformedFile(f"global heap collection has no object {index}", at=address)
        found = collection[index]
        if nbytes is None or nbytes == len(found):
            return found
        if nbytes > len(found):
            raise MalformedFile(
                f"global heap object {index} has {len(found)} bytes, but {nbytes} are needed", at=address
            )
        return found[:nbytes]

    def _decode(self, collection: bytes, address: int) -> dict[int, bytes] | H5ZarrError:
        prefix = struct.Struct(f"<HHI{WIDTHS[self._sizes.length_nbytes]}")
        step = prefix.size + -prefix.size % 8
        objects: dict[int, bytes] = {}
        position = CollectionHeader.nbytes(self._sizes)
        position += -position % 8
        while position + prefix.size <= len(collection):
            index, _, _, nbytes = prefix.unpack_from(collection, position)
            if index == 0:  # free space; its size includes its header
                if nbytes < step:
                    break
                position += nbytes
                continue
            start = position + step
            if start + nbytes > len(collection):
                return MalformedFile(f"global heap object {index} extends beyond its collection", at=address + position)
            objects[index] = collection[start : start + nbytes]
            position = start + nbytes + -nbytes % 8
        return objects
