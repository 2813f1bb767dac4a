"""Compares a scan with h5py: links, attributes, types, shapes, filters, the bytes of every stored chunk, and values.

Chunk tables are checked by the bytes that they point to. h5py's own list of chunks has wrong coordinates for an
extensible array whose unlimited axis is not the first, but reading one chunk by its coordinates is right.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import h5zarr
from h5zarr.errors import H5ZarrError
from h5zarr.filters.pipeline import UnknownFilter
from h5zarr.hdf5 import model
from h5zarr.hdf5.cursor import text
from h5zarr.hdf5.datatype import Compound, Datatype
from h5zarr.hdf5.model import Dataset, Group, H5File
from h5zarr.hdf5.numpy_values import plain_dtype
from h5zarr.hdf5.object_references import AttributeReference, ObjectReference, RegionReference
from h5zarr.hdf5.selection import RegularSelection
from h5zarr.io.source import Source, open_source
from h5zarr.io.span import Span
from h5zarr.io.steps import run
from tests.truth.agreement import Agreement, Comparing
from tests.truth.same import Hdf5Values

MOST_VALUES, MOST_CHUNKS = 2_000_000, 5_000
UNREADABLE = (OSError, RuntimeError, TypeError, ValueError, KeyError)


class NotFollowed(Exception):
    """h5py cannot follow a reference."""


def compare(path: Path, file: H5File | None = None) -> Agreement:
    """Return how the scan of a file agrees with h5py. Counts `attributes`, `values` and `chunks`."""
    found = Agreement()
    try:
        theirs = h5py.File(path, "r")
    except OSError as error:
        found.unopened[""] = str(error).partition("\n")[0]
        theirs = None
    try:
        file = file or h5zarr.scan(str(path))
    except H5ZarrError as error:
        found.refused = f"{type(error).__name__}: {error}"
        if theirs is not None:
            found.differences.append(f"h5py opens it, the scan does not: {error}")
            theirs.close()
        return found
    found.problems = [str(problem) for problem in file.problems]
    if theirs is not None:
        with theirs, open_source(str(path)) as source:
            _Comparing(found, file, theirs, source).objects()
    return found


class _Comparing(Comparing):
    def __init__(self, found: Agreement, file: H5File, theirs: h5py.File, source: Source) -> None:
        super().__init__(found)
        self.file, self.theirs, self.source = file, theirs, source
        self.base = file.root.address - h5py.h5o.get_info(theirs.id).addr
        self.broken = {problem.path for problem in file.problems}
        self.values = Hdf5Values(self.target_of, as_stored=True)

    def objects(self) -> None:
        for path, ours in self.file.walk():
            try:
                theirs = self.theirs[path]
            except (KeyError, OSError, RuntimeError) as error:
                if not self.file.problems:
                    self.differ(path, f"h5py cannot open it: {error}")
                continue
            self.attributes(path, ours, theirs)
            self.equal(path, "reference count", ours.notes.reference_count, h5py.h5o.get_info(theirs.id).rc)
            if isinstance(ours, Group):
                self.links(path, ours, theirs)
            elif isinstance(ours, Dataset):
                self.found.compared.add(path)
                self.dataset(path, ours, theirs)

    def target_of(self, reference: Any) -> int | None:
        """Return the address that a reference points to, None for a null reference."""
        if isinstance(reference, RegionReference | AttributeReference):
            reference = reference.target
        if isinstance(reference, ObjectReference):
            return reference.address
        if not reference:
            return None
        try:
            return int(h5py.h5o.get_info(h5py.h5r.dereference(reference, self.theirs.id)).addr) + self.base
        except UNREADABLE as error:
            raise NotFollowed from error

    # --- links and attributes

    def links(self, path: str, ours: Group, theirs: h5py.Group) -> None:
        try:
            stored_names = {name if isinstance(name, str) else text(name): name for name in theirs}
        except RuntimeError:
            return  # h5py lists no link if there is one that it cannot show
        if not self.equal(path, "links", sorted(ours.links), sorted(stored_names)):
            return
        for name, link in ours.links.items():
            place = f"{path.rstrip('/')}/{name}"
            try:
                expected = theirs.get(stored_names[name], getlink=True)
            except TypeError:  # a user-defined link
                expected = None
            except UnicodeDecodeError:  # a name that h5py lists, but cannot look up
                continue
            if expected is None and self.file.problems:
                continue  # h5py cannot look up any link in a group with a broken one
            if isinstance(link, model.HardLink) and link.address not in self.file.objects:
                is_named = any(one.partition("@")[0] == self.file.paths[link.address] for one in self.broken)
                self.equal(place, "missing object is named as a problem:", is_named, True)
            self.equal(place, "link", _link(link), _link(expected))

    def attributes(self, path: str, ours: model.Object, theirs: Any) -> None:
        try:
            names = set(theirs.attrs)
        except (RuntimeError, OSError):
            return
        broken = {place.partition("@")[2] for place in self.broken if place.startswith(f"{path}@")}
        self.equal(path, "attributes", sorted(ours.attributes.keys() | broken), sorted(names))
        for name, attribute in ours.attributes.items():
            if name not in names:
                continue
            self.found.counts["attributes"] += 1
            try:
                expected = theirs.attrs[name]
            except UNREADABLE:
                continue  # h5py cannot show every type
            where = f"{path}@{name}"
            if attribute.value is None:
                self.equal(where, "value", h5py.Empty, type(expected))
            else:
                self.same_values(where, theirs.attrs.get_id(name).get_type(), attribute.value, expected)

    def same_values(self, where: str, kind: Any, ours: Any, expected: Any) -> None:
        is_padded = isinstance(kind, h5py.h5t.TypeStringID) and not kind.is_variable_str()
        theirs = np.asarray(expected, f"S{kind.get_size()}" if is_padded else None)  # numpy's scalars have no padding
        if theirs.shape != ours.shape and ours.dtype == object:  # one sequence, which h5py returns without an array
            theirs = np.empty((), object)
            theirs[()] = expected
        try:
            difference = self.values.differ(kind, ours, theirs)
        except NotFollowed:
            return
        if difference:
            self.differ(where, difference)

    # --- datasets

    def dataset(self, path: str, ours: Dataset, theirs: h5py.Dataset) -> None:
        layout = ours.layout
        stated = _facts(ours)
        if isinstance(layout, model.VirtualLayout) and None in ours.dataspace.max_shape:
            stated["shape"] = theirs.shape  # libhdf5 derives the extent from the sources; the file has an older one
        is_same = self.all_equal(path, stated, _their_facts(theirs))
        self.same_type(path, ours.datatype, theirs)
        if not is_same:
            return
        if isinstance(layout, model.ChunkedLayout):
            self.chunks(path, layout, theirs)
        if isinstance(layout, model.VirtualLayout):
            for mapping, other in zip(layout.mappings, theirs.virtual_sources(), strict=True):
                self.same_selection(path, mapping.virtual_selection, other.vspace)
                self.same_selection(path, mapping.source_selection, other.src_space)
        elif not isinstance(layout, model.ExternalLayout):
            self.contents(path, ours, theirs)

    def same_type(self, path: str, ours: Datatype, theirs: h5py.Dataset) -> None:
        try:
            expected = theirs.dtype
        except UNREADABLE:
            return  # h5py has no numpy type for it
        plain = plain_dtype(ours)
        if plain is None or expected.kind in "bmM" or expected in (plain, plain.base) or expected.base == plain.base:
            return
        is_pair = isinstance(ours, Compound) and expected.kind == "c" and ours.nbytes == expected.itemsize
        if not is_pair:
            self.differ(path, f"type {plain} is {expected}")

    def same_selection(self, path: str, ours: Any, theirs: Any) -> None:
        if isinstance(ours, RegularSelection) and theirs.is_regular_hyperslab():
            unlimited = h5py.h5s.UNLIMITED
            stated = tuple(
                tuple(None if number == unlimited else number for number in part)
                for part in theirs.get_regular_hyperslab()
            )
            self.equal(path, "selection", (ours.start, ours.stride, ours.count, ours.block), stated)

    def chunks(self, path: str, layout: model.ChunkedLayout, theirs: h5py.Dataset) -> None:
        """Compare stored chunks, some if there are many. A chunk without a row must be missing in h5py too."""
        rows = {tuple(index): row for row, index in enumerate(layout.chunks.index.tolist())}
        indices = list(rows)[:: max(1, -(-len(rows) // MOST_CHUNKS))]
        grid = [range(-(-extent // chunk)) for extent, chunk in zip(theirs.shape, theirs.chunks, strict=True)]
        if np.prod([len(axis) for axis in grid], dtype=object) <= MOST_CHUNKS:
            indices += [index for index in itertools.product(*grid) if index not in rows]
        for index in indices:
            if difference := self.chunk_differs(layout, index, rows.get(index), theirs):
                self.differ(path, f"chunk {index} {difference}")
                return

    def chunk_differs(self, layout: Any, index: tuple[int, ...], row: int | None, theirs: h5py.Dataset) -> str | None:
        try:
            origin = tuple(number * chunk for number, chunk in zip(index, layout.chunk_shape, strict=True))
            mask, content = theirs.id.read_direct_chunk(origin)
        except (
            OSError,
            RuntimeError,
            ValueError,
            MemoryError,
        ) as error:  # each was seen for a chunk that is not stored
            return None if row is None else f"is not in h5py: {error}"
        if row is None:
            return "is stored, but not in the table"
        self.found.counts["chunks"] += 1
        table, extents = layout.chunks, zip(index, layout.chunk_shape, theirs.shape, strict=True)
        if self.source.read_many([Span(int(table.address[row]), int(table.nbytes[row]))])[0] != content:
            return "has other bytes than in h5py"
        is_unfiltered = layout.edge_chunks_unfiltered and any((n + 1) * chunk > extent for n, chunk, extent in extents)
        is_same = int(table.filter_mask[row]) == mask or is_unfiltered
        return None if is_same else f"has mask {table.filter_mask[row]}, h5py {mask}"

    def contents(self, path: str, ours: Dataset, theirs: h5py.Dataset) -> None:
        """Compare all values, read with the chunk table, filters and fill value of the scan."""
        if ours.dataspace.count > MOST_VALUES or ours.dataspace.kind is model.SpaceKind.NULL:
            return
        try:
            expected = theirs[()]
        except UNREADABLE:
            return
        try:
            values = run(self.file.contents.read_values(ours), self.source.read_many)
        except UnknownFilter:
            return
        except H5ZarrError as error:
            self.differ(path, f"h5py reads it, h5zarr does not: {error}")
            return
        self.found.counts["values"] += 1
        self.same_values(path, theirs.id.get_type(), values, expected)


def _facts(ours: Dataset) -> dict[str, Any]:
    layout, space = ours.layout, ours.dataspace
    is_null = space.kind is model.SpaceKind.NULL
    mappings = layout.mappings if isinstance(layout, model.VirtualLayout) else ()
    segments = layout.segments if isinstance(layout, model.ExternalLayout) else ()
    return {
        "shape": None if is_null else space.shape,
        "largest shape": None if is_null else space.max_shape,
        "filters": [(one.number, one.values) for one in ours.filters],
        "chunk shape": layout.chunk_shape if isinstance(layout, model.ChunkedLayout) else None,
        "virtual sources": [(one.source_file, one.source_dataset) for one in mappings],
        "external segments": [(one.file, one.address, one.nbytes) for one in segments],
    }


def _their_facts(theirs: h5py.Dataset) -> dict[str, Any]:
    settings = theirs.id.get_create_plist()
    filters = [settings.get_filter(number) for number in range(settings.get_nfilters())]
    segments = [settings.get_external(number) for number in range(settings.get_external_count())]
    unlimited = h5py.h5f.UNLIMITED
    return {
        "shape": theirs.shape,
        "largest shape": None if theirs.shape is None else theirs.maxshape,
        "filters": [(code, values) for code, _, values, _ in filters],
        "chunk shape": theirs.chunks,
        "virtual sources": [(one.file_name, one.dset_name) for one in theirs.virtual_sources()]
        if theirs.is_virtual
        else [],
        "external segments": [
            (name.decode(), start, None if size == unlimited else size) for name, start, size in segments
        ],
    }


def _link(link: Any) -> tuple[str, Any, Any]:
    """Return the kind, file and target of a link of h5zarr or h5py, which shows a user-defined link as None."""
    kind = "UserLink" if link is None else type(link).__name__
    target = getattr(link, "target", None) or getattr(link, "path", None)
    return kind, getattr(link, "file", None) or getattr(link, "filename", None), target
