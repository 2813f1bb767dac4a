"""h5py as the oracle: does a scan say what h5py says, value for value?

`compare(path)` returns everything that differs. Chunk tables are checked by the bytes that they point to: h5py's own
enumeration of chunks gives wrong coordinates for an extensible array whose unlimited axis is not the first, but reading
one chunk by its coordinates is right.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import h5zarr
from h5zarr.errors import H5ZarrError
from h5zarr.filters.pipeline import is_known, undo_filters
from h5zarr.hdf5 import model
from h5zarr.hdf5.cache_image import CachedEntry, overlay, read_cache_image
from h5zarr.hdf5.context import Context
from h5zarr.hdf5.cursor import text
from h5zarr.hdf5.datatype import (
    Array,
    ByteOrder,
    Compound,
    Datatype,
    Enumeration,
    Padding,
    Reference,
    String,
    VariableLengthSequence,
    VariableLengthString,
)
from h5zarr.hdf5.header import read_object_header
from h5zarr.hdf5.model import Dataset, Group, H5File, ObjectReference, RegionReference
from h5zarr.hdf5.numpy_values import ValueReader, plain_dtype
from h5zarr.hdf5.selection import RegularSelection
from h5zarr.hdf5.shared import SharedMessages
from h5zarr.hdf5.sizes import Sizes
from h5zarr.hdf5.superblock import read_superblock
from h5zarr.io.source import Source, open_source
from h5zarr.io.steps import Step, run

MAX_VALUES = 2_000_000
MAX_CHUNKS = 5_000


@dataclass
class Comparison:
    """How a file fared: datasets that agree in everything, and all differences."""

    datasets: int = 0
    agreeing: int = 0
    attributes: int = 0
    values_checked: int = 0
    chunks_checked: int = 0
    differences: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    refused: str | None = None  # the scan's own reason to refuse the whole file
    unreadable: str | None = None  # h5py's


def compare(path: Path) -> Comparison:
    """Return how the scan of the file at `path` differs from what h5py says."""
    found = Comparison()
    try:
        theirs = h5py.File(path, "r")
    except OSError as error:
        found.unreadable = str(error).partition("\n")[0]
        theirs = None
    with open_source(str(path)) as source:
        try:
            file = h5zarr.scan(str(path))
        except H5ZarrError as error:
            found.refused = f"{type(error).__name__}: {error}"
            if theirs is not None:
                found.differences.append(f"h5py opens it, the scan does not: {error}")
                theirs.close()
            return found
        found.problems = [str(problem) for problem in file.problems]
        if theirs is None:
            return found
        with theirs:
            _Comparing(found, file, theirs, source).all()
    return found


class _Comparing:
    def __init__(self, found: Comparison, file: H5File, theirs: h5py.File, source: Source) -> None:
        self.found = found
        self.file = file
        self.theirs = theirs
        self.source = source
        self.base = file.root.address - h5py.h5o.get_info(theirs.id).addr
        self.offset_nbytes, self.length_nbytes = theirs.id.get_create_plist().get_sizes()
        self.sizes = Sizes(
            offset_nbytes=self.offset_nbytes, length_nbytes=self.length_nbytes, base=self.base, end=source.nbytes
        )
        context = Context.of(self.sizes, SharedMessages(self.sizes))
        self.values: ValueReader = context.values
        self.cached = run(_read_cached(source.nbytes), source.read_many)
        self.broken = {problem.path.partition("@")[0] for problem in file.problems}

    def differ(self, path: str, what: str) -> None:
        self.found.differences.append(f"{path}: {what}")

    def all(self) -> None:
        for path, found in self.file.walk():
            before = len(self.found.differences)
            try:
                theirs = self.theirs[path]
            except (KeyError, OSError, RuntimeError) as error:
                if not self.file.problems:
                    self.differ(path, f"h5py cannot open it: {error}")
                continue
            self.attributes(path, found, theirs)
            self.notes(path, found, theirs)
            if isinstance(found, Group):
                self.links(path, found, theirs)
            elif isinstance(found, Dataset):
                self.found.datasets += 1
                self.dataset(path, found, theirs)
                self.found.agreeing += len(self.found.differences) == before

    def notes(self, path: str, ours: model.Object, theirs: Any) -> None:
        info = h5py.h5o.get_info(theirs.id)
        if ours.notes.reference_count != info.rc:
            self.differ(path, f"reference count {ours.notes.reference_count} is {info.rc}")

    # --- links

    def links(self, path: str, ours: Group, theirs: h5py.Group) -> None:
        try:
            raw_names = {name if isinstance(name, str) else text(name): name for name in theirs}
        except RuntimeError:
            return  # one link that it cannot show, and it shows none
        names = set(raw_names)
        if set(ours.links) != names:
            self.differ(path, f"links {sorted(set(ours.links) ^ names)[:5]} are in one only")
            return
        for name, link in ours.links.items():
            try:
                expected = theirs.get(raw_names[name], getlink=True)
            except TypeError:  # how h5py shows a user-defined link
                expected = None
            except UnicodeDecodeError:  # a name that h5py lists, but does not look up
                continue
            if expected is None and self.file.problems:
                continue  # h5py cannot look up any link of a group with a broken one
            shown: Any
            match link:
                case model.HardLink(address=address):
                    shown = isinstance(expected, h5py.HardLink)
                    target = address in self.file.objects or self.file.paths[address] in self.broken
                    if not target:
                        self.differ(f"{path}/{name}", "object missing, and no problem named")
                case model.SoftLink(target=target_path):
                    shown = isinstance(expected, h5py.SoftLink) and expected.path == target_path
                case model.ExternalLink(file=file, target=target_path):
                    shown = isinstance(expected, h5py.ExternalLink)
                    shown = shown and (expected.filename, expected.path) == (file, target_path)
                case _:
                    shown = expected is None
            if not shown:
                self.differ(f"{path}/{name}", f"link {link} is {expected}")

    # --- attributes

    def attributes(self, path: str, ours: model.Object, theirs: Any) -> None:
        try:
            names = set(theirs.attrs)
        except (RuntimeError, OSError):
            return
        broken = {
            problem.path.partition("@")[2] for problem in self.file.problems if problem.path.startswith(f"{path}@")
        }
        if set(ours.attributes) | broken != names:
            self.differ(path, f"attributes {sorted((set(ours.attributes) | broken) ^ names)[:5]} are in one only")
        for name, attribute in ours.attributes.items():
            if name not in names:
                continue
            self.found.attributes += 1
            try:
                expected = theirs.attrs[name]
            except (OSError, TypeError, ValueError, RuntimeError, KeyError):
                continue  # h5py cannot show every type
            where = f"{path}@{name}"
            if attribute.value is None:
                if not isinstance(expected, h5py.Empty):
                    self.differ(where, f"null, h5py has {expected!r}")
                continue
            self.same_values(where, attribute.datatype, attribute.value, expected)

    # --- datasets

    def dataset(self, path: str, ours: Dataset, theirs: h5py.Dataset) -> None:
        shape = None if ours.dataspace.kind is model.SpaceKind.NULL else ours.dataspace.shape
        if isinstance(ours.layout, model.VirtualLayout) and None in ours.dataspace.max_shape:
            shape = theirs.shape  # libhdf5 works the extent out from the sources; the file states an older one
        if shape != theirs.shape or (shape is not None and ours.dataspace.max_shape != theirs.maxshape):
            self.differ(path, f"shape {shape} of {ours.dataspace.max_shape} is {theirs.shape} of {theirs.maxshape}")
            return
        self.same_type(path, ours.datatype, theirs)
        plist = theirs.id.get_create_plist()
        expected = [plist.get_filter(number) for number in range(plist.get_nfilters())]
        if [(one.number, one.values) for one in ours.filters] != [(code, values) for code, _, values, _ in expected]:
            self.differ(path, f"filters {ours.filters} are {expected}")
        layout = ours.layout
        chunks = layout.chunk_shape if isinstance(layout, model.ChunkedLayout) else None
        if chunks != theirs.chunks:
            self.differ(path, f"chunks of {chunks} are {theirs.chunks}")
            return
        if isinstance(layout, model.ChunkedLayout):
            self.chunks(path, ours, layout, theirs)
        if isinstance(layout, model.VirtualLayout):
            self.virtual(path, layout, theirs)
        if isinstance(layout, model.ExternalLayout):
            shown = [(one.file, one.address, one.nbytes) for one in layout.segments]
            stated = [plist.get_external(number) for number in range(plist.get_external_count())]
            unlimited = h5py.h5f.UNLIMITED
            if shown != [(name.decode(), start, None if size == unlimited else size) for name, start, size in stated]:
                self.differ(path, f"external segments {shown} are {stated}")
        self.contents(path, ours, theirs)

    def same_type(self, path: str, ours: Datatype, theirs: h5py.Dataset) -> None:
        try:
            expected = theirs.dtype
        except (TypeError, KeyError, ValueError):
            return  # a type that h5py has no numpy form for
        plain = plain_dtype(ours)
        if plain is None:
            return
        base, _ = plain.base, plain.shape
        if (
            expected.base != base
            and expected.kind not in "bmM"
            and expected != plain
            and not _is_complex_pair(ours, expected)
        ):
            self.differ(path, f"type {plain} is {expected}")

    def chunks(self, path: str, ours: Dataset, layout: model.ChunkedLayout, theirs: h5py.Dataset) -> None:
        table = layout.chunks
        if len(table) > MAX_CHUNKS:
            rows: Iterator[int] = iter(range(0, len(table), len(table) // MAX_CHUNKS + 1))
        else:
            rows = iter(range(len(table)))
        stored = set()
        for row in rows:
            index = tuple(int(number) for number in table.index[row])
            stored.add(index)
            origin = tuple(number * chunk for number, chunk in zip(index, layout.chunk_shape, strict=True))
            try:
                mask, content = theirs.id.read_direct_chunk(origin)
            except (OSError, RuntimeError, ValueError) as error:
                self.differ(path, f"chunk {index} is not in h5py: {error}")
                return
            self.found.chunks_checked += 1
            raw = self.bytes_at(int(table.address[row]), int(table.nbytes[row]))
            if raw != content:
                self.differ(path, f"chunk {index} has other bytes than in h5py")
                return
            unfiltered_edge = layout.edge_chunks_unfiltered and _is_edge(index, theirs)
            if int(table.filter_mask[row]) != mask and not unfiltered_edge:
                self.differ(path, f"chunk {index} has mask {table.filter_mask[row]}, h5py {mask}")
        self.missing(path, theirs, stored, len(table))

    def missing(self, path: str, theirs: h5py.Dataset, stored: set[tuple[int, ...]], count: int) -> None:
        """Every chunk without a row must be missing in h5py too."""
        if theirs.chunks is None or 0 in theirs.shape:
            return
        grid = [range(-(-extent // chunk)) for extent, chunk in zip(theirs.shape, theirs.chunks, strict=True)]
        total = int(np.prod([len(axis) for axis in grid], dtype=object))
        if total > MAX_CHUNKS or count > MAX_CHUNKS:
            return
        for index in itertools.product(*grid):
            if index in stored:
                continue
            origin = tuple(number * chunk for number, chunk in zip(index, theirs.chunks, strict=True))
            try:
                theirs.id.read_direct_chunk(origin)
            except (
                OSError,
                RuntimeError,
                ValueError,
                MemoryError,
            ):  # each seen for a chunk that is not stored
                continue
            self.differ(path, f"chunk {index} is stored, but not in the table")
            return

    def virtual(self, path: str, layout: model.VirtualLayout, theirs: h5py.Dataset) -> None:
        expected = theirs.virtual_sources()
        shown = [(one.source_file, one.source_dataset) for one in layout.mappings]
        if shown != [(one.file_name, one.dset_name) for one in expected]:
            self.differ(path, f"virtual mappings {shown[:3]} are {expected[:3]}")
        for mapping, other in zip(layout.mappings, expected, strict=False):
            for ours, space in ((mapping.virtual_selection, other.vspace), (mapping.source_selection, other.src_space)):
                if isinstance(ours, RegularSelection) and space.is_regular_hyperslab():
                    stated = space.get_regular_hyperslab()
                    unlimited = h5py.h5s.UNLIMITED
                    shown_slab = (ours.start, ours.stride, ours.count, ours.block)
                    stated = tuple(tuple(None if n == unlimited else n for n in part) for part in stated)
                    if shown_slab != stated:
                        self.differ(path, f"selection {shown_slab} is {stated}")

    def bytes_at(self, address: int, nbytes: int) -> bytes:
        from h5zarr.io.span import Span

        return bytes(self.source.read_many([Span(address, nbytes)])[0])

    # --- values

    def contents(self, path: str, ours: Dataset, theirs: h5py.Dataset) -> None:
        """The whole dataset, put together from the scan and compared with h5py's values; fill included."""
        if ours.dataspace.count > MAX_VALUES or ours.dataspace.kind is model.SpaceKind.NULL:
            return
        try:
            expected = theirs[()]
        except (OSError, TypeError, ValueError, RuntimeError, KeyError):
            return
        try:
            raw = self.assemble(ours)
        except H5ZarrError as error:
            self.differ(path, f"h5py reads it, but its chunks cannot be decoded: {error}")
            return
        if raw is None:
            return
        try:
            step = overlay(self.values.read(ours.datatype, raw, ours.dataspace.count), self.cached)
            values = run(step, self.source.read_many)
        except H5ZarrError as error:
            self.differ(path, f"values cannot be decoded: {error}")
            return
        self.found.values_checked += 1
        values = values.reshape(ours.dataspace.shape + values.shape[1:])
        self.same_values(path, ours.datatype, values, expected)

    def assemble(self, ours: Dataset) -> bytes | None:
        """Return the raw elements of a dataset; None where the oracle lacks the filter, or the values are elsewhere."""
        count, nbytes = ours.dataspace.count, ours.datatype.nbytes
        fill = ours.fill.unwritten or bytes(nbytes)
        match ours.layout:
            case model.CompactLayout(content=content):
                return content
            case model.ContiguousLayout(address=None):
                return fill * count
            case model.ContiguousLayout(address=address, nbytes=total):
                assert address is not None
                return self.bytes_at(address, total)
            case model.ChunkedLayout() as layout:
                return self.assemble_chunks(ours, layout, fill)
        return None

    def assemble_chunks(self, ours: Dataset, layout: model.ChunkedLayout, fill: bytes) -> bytes | None:
        shape, width = ours.dataspace.shape, ours.datatype.nbytes
        whole = np.empty((*shape, width), np.uint8)
        whole[...] = np.frombuffer(fill, np.uint8)
        table, chunk_shape = layout.chunks, layout.chunk_shape
        chunk_nbytes = int(np.prod(chunk_shape, dtype=object)) * width
        for row in range(len(table)):
            applied = [one for number, one in enumerate(ours.filters) if not int(table.filter_mask[row]) >> number & 1]
            if any(not is_known(one.number) for one in applied):
                return None
            content = self.bytes_at(int(table.address[row]), int(table.nbytes[row]))
            content = undo_filters(content, ours.filters, int(table.filter_mask[row]), chunk_nbytes)
            block = np.frombuffer(content, np.uint8, chunk_nbytes).reshape((*chunk_shape, width))
            place, part = [], []
            for number, chunk, extent in zip(table.index[row], chunk_shape, shape, strict=True):
                start = int(number) * chunk
                place.append(slice(start, min(start + chunk, extent)))
                part.append(slice(0, min(chunk, extent - start)))
            whole[tuple(place)] = block[tuple(part)]
        return whole.tobytes()

    def same_values(self, where: str, datatype: Datatype, ours: Any, theirs: Any) -> None:
        if isinstance(datatype, VariableLengthSequence) and getattr(datatype.base, "order", None) is ByteOrder.BIG:
            return  # h5py hands out the bytes of such sequences in the wrong order
        if isinstance(datatype, VariableLengthSequence) and ours.ndim == 0:  # h5py hands out the element itself
            element, theirs = theirs, np.empty((), object)
            theirs[()] = element
        try:
            expected = _canonical(datatype, theirs if _needs_objects(datatype) else np.asarray(theirs), self)
        except (OSError, RuntimeError, ValueError, TypeError, KeyError):
            return  # a reference that h5py cannot follow
        shown = _canonical(datatype, ours, self)
        if not _equal(shown, expected):
            self.differ(where, f"value {_short(shown)} is {_short(expected)}")

    def address_of(self, reference: Any) -> int | None:
        if not reference:
            return None
        found = h5py.h5r.dereference(reference, self.theirs.id)
        return int(h5py.h5o.get_info(found).addr) + self.base


def _read_cached(nbytes: int) -> Step[list[CachedEntry]]:
    superblock = yield from read_superblock(nbytes)
    if superblock.extension is None:
        return []
    header = yield from read_object_header(superblock.extension, superblock.sizes)
    return (yield from read_cache_image(header.messages, superblock.sizes))


def _needs_objects(datatype: Datatype) -> bool:
    return isinstance(datatype, VariableLengthString | VariableLengthSequence | Reference)


def _canonical(datatype: Datatype, value: Any, comparing: _Comparing) -> Any:
    """Return plain Python that compares equal when two values mean the same, NaN and padding included."""
    match datatype:
        case Compound(members=members) if getattr(value, "dtype", None) is not None and value.dtype.names:
            names = value.dtype.names
            return [
                _canonical(member.datatype, value[name], comparing) for member, name in zip(members, names, strict=True)
            ]
        case Compound(members=members) if getattr(value, "dtype", None) is not None and value.dtype.kind == "c":
            return [
                _canonical(members[0].datatype, value.real, comparing),
                _canonical(members[1].datatype, value.imag, comparing),
            ]
        case String(padding=padding):
            return [_text(one, padding) for one in np.asarray(value).ravel().tolist()]
        case VariableLengthString(padding=padding):
            return [_text(one, padding) for one in np.asarray(value, dtype=object).ravel().tolist()]
        case VariableLengthSequence(base=base):
            return [_canonical(base, one, comparing) for one in _flat(value)]
        case Array(base=base):
            return _canonical(base, value, comparing)
        case Enumeration(base=base):
            return _canonical(base, value, comparing)
        case Reference():
            return [_target(one, comparing) for one in _flat(value)]
    flat = np.asarray(value).ravel()
    if flat.dtype.kind in "VmM":  # h5py shows opaque values with a certain tag as times
        return flat.tobytes()
    return flat


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        is_float = one.dtype.kind in "fc" or other.dtype.kind in "fc"
        return bool(np.array_equal(one, other, equal_nan=is_float))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)


def _flat(value: Any) -> list[Any]:
    """Return the elements of an array of objects, of which there may be one."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return list(value.ravel())
    return [value]


def _text(value: Any, padding: Padding) -> bytes:
    stored = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)
    return stored.rstrip(b" \0") if padding is Padding.SPACE_PADDED else stored.partition(b"\0")[0]


def _target(value: Any, comparing: _Comparing) -> Any:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, ObjectReference):
        return value.address
    if isinstance(value, RegionReference):
        return value.target.address
    return comparing.address_of(value)


def _is_edge(index: tuple[int, ...], theirs: h5py.Dataset) -> bool:
    return any(
        (number + 1) * chunk > extent for number, chunk, extent in zip(index, theirs.chunks, theirs.shape, strict=True)
    )


def _is_complex_pair(datatype: Datatype, expected: np.dtype[Any]) -> bool:
    return isinstance(datatype, Compound) and expected.kind == "c" and datatype.nbytes == expected.itemsize


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 120 else f"{shown[:117]}…"
