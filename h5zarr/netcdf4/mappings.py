"""Resolve the mappings of a virtual dataset: expand names, find sources, and limit unlimited selections.

If a selection is unlimited, the shape of the virtual dataset follows from its sources. The shape stored in the file may
be outdated. This module follows the default view of the HDF5 library: up to the last available value, and numbered
sources up to the first missing one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeVar

from h5zarr.errors import SURPRISES, H5ZarrError, MalformedFile, SourceError, Unsupported
from h5zarr.hdf5.model import Dataset, H5File, SoftLink, VirtualLayout, VirtualMapping
from h5zarr.hdf5.selection import RegularSelection
from h5zarr.netcdf4.elsewhere import Elsewhere
from h5zarr.netcdf4.links import DeadEnd, follow
from h5zarr.netcdf4.regions import (
    Axis,
    Region,
    check_inside,
    find_unlimited,
    limited_axis,
    reach_of,
    resolve_selection,
    unlimited_axis,
)

T = TypeVar("T")
MOST_LEVELS = 16  # of nested virtual datasets
_MOST_NUMBERED = 1_000_000
_MOST_CELLS = 1 << 24  # elements of irregular selections, which are listed one by one


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MappedPart:
    """A region of a virtual dataset, and the region of a source dataset that supplies its elements in order."""

    file: H5File
    dataset: Dataset
    source_shape: tuple[int, ...]
    source: Region
    virtual: Region


@dataclass(frozen=True, slots=True, kw_only=True)
class Mappings:
    """The actual shape of a virtual dataset, its parts in file order, and its missing sources.

    Where parts overlap, the later one counts. Elements that no part covers read as the fill value.
    """

    shape: tuple[int, ...]
    parts: tuple[MappedPart, ...]
    missing: tuple[str, ...] = ()


def resolve_mappings(file: H5File, dataset: Dataset, elsewhere: Elsewhere, levels: int = MOST_LEVELS) -> Mappings:
    """Return the mappings of a virtual dataset.

    Raises an H5ZarrError if the HDF5 library could not read them all either.
    """
    assert isinstance(dataset.layout, VirtualLayout)
    if levels == 0:
        raise Unsupported(f"virtual datasets are nested more than {MOST_LEVELS} levels deep")
    return _Resolving(file, dataset, elsewhere, levels).all(dataset.layout)


def settle_virtual(file: H5File, elsewhere: Elsewhere) -> H5File:
    """Return the file with virtual datasets as the HDF5 library shows them.

    Their shape follows from their sources. Their fill value counts even if its write time is "never". A dataset whose
    sources cannot be read is unchanged.
    """
    changed = {
        address: _settle(file, found, elsewhere)
        for address, found in file.objects.items()
        if isinstance(found, Dataset) and isinstance(found.layout, VirtualLayout)
    }
    return replace(file, objects={**file.objects, **changed}) if changed else file


def _settle(file: H5File, dataset: Dataset, elsewhere: Elsewhere) -> Dataset:
    dataset = replace(dataset, fill=replace(dataset.fill, write_time=None))
    if not _is_unlimited(dataset):
        return dataset
    try:
        shape = resolve_mappings(file, dataset, elsewhere).shape
    except (H5ZarrError, *SURPRISES):
        return dataset  # the same error is reported when the values are needed
    return replace(dataset, dataspace=replace(dataset.dataspace, shape=shape))


def _is_unlimited(dataset: Dataset) -> bool:
    layout = dataset.layout
    return isinstance(layout, VirtualLayout) and any(
        find_unlimited(mapping.virtual_selection) is not None for mapping in layout.mappings
    )


class _Resolving:
    """Resolves the mappings of one virtual dataset."""

    def __init__(self, file: H5File, dataset: Dataset, elsewhere: Elsewhere, levels: int) -> None:
        self._file, self._dataset, self._elsewhere, self._levels = file, dataset, elsewhere, levels
        self._checked: set[int] = set()
        self._cells = 0
        self._missing: dict[str, None] = {}
        self._reach: dict[int, int] = {}  # along unlimited axes

    def all(self, layout: VirtualLayout) -> Mappings:
        # A selection may mean the whole extent, which is known only after all others have been resolved.
        drafts = [draft for mapping in layout.mappings for draft in self._drafts(mapping)]
        shape = list(self._dataset.dataspace.shape)
        for axis, reach in self._reach.items():
            shape[axis] = max(reach, _least_extent(layout, axis))
        parts = tuple([self._part(draft, tuple(shape)) for draft in drafts])
        return Mappings(shape=tuple(shape), parts=parts, missing=tuple(self._missing))

    def _drafts(self, mapping: VirtualMapping) -> Iterable[_Draft]:
        axis, source_axis = find_unlimited(mapping.virtual_selection), find_unlimited(mapping.source_selection)
        numbered = is_numbered(mapping.source_file) or is_numbered(mapping.source_dataset)
        if numbered and (axis is None or source_axis is not None):
            raise MalformedFile(
                f"the mapping to the numbered sources {mapping.source_file!r} {mapping.source_dataset!r} needs an "
                "unlimited selection in the virtual dataset, and a limited one in the sources"
            )
        if not numbered and (axis is None) != (source_axis is None):
            raise MalformedFile(f"the mapping to {mapping.source_file!r} is unlimited on one side only")
        if axis is None:
            yield from self._limited(mapping)
        elif numbered:
            yield from self._numbered(mapping, axis)
        else:
            assert source_axis is not None
            yield from self._unlimited(mapping, axis, source_axis)

    def _limited(self, mapping: VirtualMapping) -> Iterable[_Draft]:
        found = self._open(mapping)
        if found is None:
            self._note_missing(mapping)
            return
        yield _Draft(found, mapping, resolve_selection(mapping.source_selection, self._shape(*found)), None)

    def _unlimited(self, mapping: VirtualMapping, axis: int, source_axis: int) -> Iterable[_Draft]:
        """Map a growing source: as much of the virtual selection as the source has now."""
        self._reach.setdefault(axis, 0)
        found = self._open(mapping)
        if found is None:
            self._note_missing(mapping)
            return
        source, virtual = mapping.source_selection, mapping.virtual_selection
        assert isinstance(source, RegularSelection)
        assert isinstance(virtual, RegularSelection)
        shape = self._shape(*found)
        if len(shape) != len(source.start):
            raise MalformedFile(f"a selection of rank {len(source.start)} in an array of rank {len(shape)}")
        taken = unlimited_axis(source, source_axis, shape[source_axis])
        shown = unlimited_axis(virtual, axis, 0).first(taken.length) if taken.length else None
        if shown is None:
            return
        self._reach[axis] = max(self._reach[axis], shown.stop)
        yield _Draft(found, mapping, _with_axis(source, source_axis, taken), _with_axis(virtual, axis, shown))

    def _numbered(self, mapping: VirtualMapping, axis: int) -> Iterable[_Draft]:
        """Map one source to each block, up to the first missing source."""
        virtual = mapping.virtual_selection
        assert isinstance(virtual, RegularSelection)
        self._reach.setdefault(axis, 0)
        start, stride, block = virtual.start[axis], virtual.stride[axis], virtual.block[axis]
        if block is None:
            raise MalformedFile("an unlimited block is mapped to numbered sources")
        for number in count():
            found = self._open(mapping, number)
            if found is None:
                return
            if number >= _MOST_NUMBERED:
                raise Unsupported(f"more than {_MOST_NUMBERED} sources in {mapping.source_file!r}")
            one = replace(
                virtual, start=_at(virtual.start, axis, start + number * stride), count=_at(virtual.count, axis, 1)
            )
            region = Region(tuple(limited_axis(one, number) for number in range(len(one.start))))
            self._reach[axis] = max(self._reach[axis], start + number * stride + block)
            yield _Draft(found, mapping, resolve_selection(mapping.source_selection, self._shape(*found)), region)

    def _open(self, mapping: VirtualMapping, number: int | None = None) -> tuple[H5File, Dataset] | None:
        """Return the source of a mapping and its file, or None if either is missing."""
        name = spell(mapping.source_file, number)
        file = self._elsewhere.find(self._file, name)
        if file is None:
            return None
        link = SoftLink("", "/" + spell(mapping.source_dataset, number))
        try:
            found = follow(link, file.root, file, self._elsewhere.links)
        except DeadEnd as end:
            if end.kind == "source":
                raise SourceError(f"{mapping.source_dataset!r} in {name!r}: {end}") from None
            return None
        if not isinstance(found.target, Dataset):
            raise MalformedFile(f"{mapping.source_dataset!r} in {name!r} is not a readable dataset")
        return found.file, found.target

    def _shape(self, file: H5File, dataset: Dataset) -> tuple[int, ...]:
        """Return the shape of a source. For a virtual source, the HDF5 library uses the shape stored in its file."""
        shape = dataset.dataspace.shape
        if _is_unlimited(dataset) and id(dataset) not in self._checked:
            self._checked.add(id(dataset))
            now = resolve_mappings(file, dataset, self._elsewhere, self._levels - 1).shape
            if now != shape:
                raise Unsupported(
                    f"a source is itself virtual; its shape was {shape} when it was written, but is now {now}"
                )
        return shape

    def _part(self, draft: _Draft, shape: tuple[int, ...]) -> MappedPart:
        virtual = draft.virtual or resolve_selection(draft.mapping.virtual_selection, shape)
        check_inside(virtual, shape)
        self._cells += sum(len(one.cells) for one in (virtual, draft.source) if one.cells is not None)
        if self._cells > _MOST_CELLS:
            raise Unsupported(f"its irregular selections have more than {_MOST_CELLS} elements")
        if virtual.count != draft.source.count:
            what = f"{virtual.count} elements are mapped to {draft.source.count} of {draft.mapping.source_dataset!r}"
            raise MalformedFile(f"{what} in {draft.mapping.source_file!r}")
        file, dataset = draft.found
        source_shape = self._shape(file, dataset)
        return MappedPart(file=file, dataset=dataset, source_shape=source_shape, source=draft.source, virtual=virtual)

    def _note_missing(self, mapping: VirtualMapping) -> None:
        self._missing[f"{spell(mapping.source_dataset)!r} in {spell(mapping.source_file)!r}"] = None


@dataclass(frozen=True, slots=True, eq=False)
class _Draft:
    found: tuple[H5File, Dataset]
    mapping: VirtualMapping
    source: Region
    virtual: Region | None


def _least_extent(layout: VirtualLayout, axis: int) -> int:
    """Return the extent that limited selections need along an axis. The extent is never smaller."""
    ends = [
        reach_of(mapping.virtual_selection, axis)
        for mapping in layout.mappings
        if find_unlimited(mapping.virtual_selection) != axis
    ]
    return max(ends, default=0)


def _with_axis(selection: RegularSelection, axis: int, made: Axis) -> Region:
    """Return the region of a selection that is unlimited along one axis, with `made` as that axis."""
    axes = range(len(selection.start))
    return Region(tuple(made if number == axis else limited_axis(selection, number) for number in axes))


def _at(values: tuple[T, ...], axis: int, value: T) -> tuple[T, ...]:
    return (*values[:axis], value, *values[axis + 1 :])


_SPECIFIER = re.compile(r"%(.?)")


def is_numbered(name: str) -> bool:
    """Return whether a name contains the number of a block."""
    return any(letter == "b" for letter in _SPECIFIER.findall(name))


def spell(name: str, number: int | None = None) -> str:
    """Return a name with %b replaced by the block number, and %% by a percent sign.

    Without a number, %b remains. Raises MalformedFile for other specifiers, as the HDF5 library does.
    """

    def replacement(found: re.Match[str]) -> str:
        if found[1] == "%":
            return "%"
        if found[1] != "b":
            raise MalformedFile(f"the source name {name!r} has an unknown specifier {found[0]!r}")
        return "%b" if number is None else str(number)

    return _SPECIFIER.sub(replacement, name)
