"""What h5py reads from an HDF5 file, in Zarr's terms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np
from h5py import h5t

from h5zarr.commands.verify.differences import Difference, Unreadable, Values, numbers_differ, texts_differ
from h5zarr.commands.verify.json_values import NotCompared, expected_json

_NON_COORDINATE = "_nc4_non_coord_"
_UNREADABLE = (OSError, RuntimeError, TypeError, ValueError, KeyError, AttributeError)


class H5Truth:
    """An HDF5 file opened by h5py."""

    library = "h5py"
    is_copy = False

    def __init__(self, file: h5py.File) -> None:
        self._file = file

    def find(self, path: str) -> H5Variable | None:
        """Return the dataset of the array at `path`: netCDF may have prefixed its name."""
        parent, _, name = path.rpartition("/")
        for place in (path, f"{parent}/{_NON_COORDINATE}{name}"):
            found = self._look_up(place)
            if isinstance(found, h5py.Dataset) and not (place == path and self._is_bare(path)):
                return H5Variable(self._file, found)
        return None

    def _look_up(self, path: str) -> Any:
        """Return the object at a path, whose names may not be UTF-8 in the file; None if there is none."""
        found: Any = self._file
        for name in path.strip("/").split("/"):
            try:
                found = found[name]
            except _UNREADABLE:
                found = _look_up_bytes(found, name)
        return found

    def _is_bare(self, path: str) -> bool:
        """Return whether a dataset is only a dimension: the values are in another one, whose name has a prefix."""
        parent, _, name = path.rpartition("/")
        return f"{parent}/{_NON_COORDINATE}{name}" in self._file

    def attributes(self, path: str) -> Iterator[tuple[str, Any]]:
        """Yield the attributes of a group in their expected JSON form."""
        return _attributes(self._file, self._file[path or "/"])

    def close(self) -> None:
        self._file.close()


def _look_up_bytes(group: Any, name: str) -> Any:
    """Return the object whose name is Latin-1 in the file; None if there is none."""
    try:
        return next((group[one] for one in group if isinstance(one, bytes) and one.decode("latin-1") == name), None)
    except _UNREADABLE:
        return None


class H5Variable:
    """A dataset. `shape` includes the axes of array data types; `grows` are the axes that netCDF may extend."""

    def __init__(self, file: h5py.File, dataset: h5py.Dataset) -> None:
        self._file = file
        self._dataset = dataset
        self._kind = dataset.id.get_type()
        self.is_empty = dataset.shape is None
        self.own_shape: tuple[int, ...] = dataset.shape or ()
        self.shape = (0,) if self.is_empty else self.own_shape + _inner_shape(self._kind)
        self.grows = tuple(limit is None for limit in (dataset.maxshape or ()))

    def read(self, region: tuple[slice, ...]) -> Values:
        """Return the values of a part of the dataset. Raises Unreadable."""
        try:
            return np.asarray(self._dataset[region])
        except _UNREADABLE as error:
            raise Unreadable(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}") from None

    def differs(self, found: Values, expected: Values) -> Difference | None:
        """Return how values differ from those that `read` returned: bit for bit, except for text padding."""
        return self._differs(self._kind, found, expected)

    def _differs(self, kind: Any, found: Values, expected: Values) -> Difference | None:
        match kind:
            case h5t.TypeArrayID():
                return self._differs(kind.get_super(), found, expected)
            case h5t.TypeCompoundID() if expected.dtype.names is not None:
                return self._records_differ(kind, found, expected)
            case h5t.TypeStringID():
                if not kind.is_variable_str() and found.dtype != expected.dtype:
                    return Difference("type", str(found.dtype), str(expected.dtype))
                return texts_differ(found, expected, lambda text: _unpad(kind, text))
            case h5t.TypeReferenceID():
                return self._references_differ(found, expected)
            case h5t.TypeOpaqueID() if found.dtype == np.dtype(f"V{expected.dtype.itemsize}"):
                expected = expected.view(found.dtype)  # its tag names a numpy type that zarr may not have
        # The NaN payload of a conversion is unspecified, and zarr has only one NaN of float16.
        return numbers_differ(found, expected, any_nan=_is_converted(kind) or found.dtype.itemsize == 2)

    def _records_differ(self, kind: Any, found: Values, expected: Values) -> Difference | None:
        if found.dtype.kind == "c" and len(expected.dtype.names or ()) == 2:  # MATLAB's form: real and imag
            found = _records_of(found, expected.dtype)
        names = [name for name in found.dtype.names or () if not name.startswith("_gap")]
        if names != list(expected.dtype.names or ()):
            return Difference("members", str(names), str(expected.dtype.names))
        for number, name in enumerate(names):
            if difference := self._differs(kind.get_member_type(number), found[name], expected[name]):
                return difference._replace(what=f"member {name}: {difference.what}")
        return None

    def _references_differ(self, found: Values, expected: Values) -> Difference | None:
        for path, reference in zip(found.reshape(-1).tolist(), expected.reshape(-1).tolist(), strict=True):
            target = self._target(reference)
            if (_identity(self._file[path]) if path else None) != (None if target is None else _identity(target)):
                return Difference("reference", repr(path), "none" if target is None else repr(target.name))
        return None

    def _target(self, reference: Any) -> Any:
        try:
            return self._file[reference] if reference else None
        except (ValueError, RuntimeError, KeyError):
            return None  # the reference is dangling

    @property
    def fill(self) -> Values | None:
        """The value of unwritten elements; None if it is not a number or the file does not define it."""
        try:
            if self.is_empty or self._dataset.dtype.kind not in "biufc":
                return None
            if self._dataset.id.get_create_plist().get_fill_time() == h5py.h5d.FILL_TIME_NEVER:
                return None  # undefined content
            return np.asarray(self._dataset.fillvalue, self._dataset.dtype)
        except _UNREADABLE:
            return None

    def is_named(self, axis: int, name: str) -> bool:
        """Return whether a scale of an axis has this name, by any link in the variable's group or above.

        This never asks a scale for its own name, because the library would search the whole file for it.
        """
        scales = {_identity(scale) for scale in self._scales(axis)}
        group = self._dataset.parent
        while scales:
            for link in (name, f"{_NON_COORDINATE}{name}"):
                if link in group and _identity(group[link]) in scales:
                    return True
            if group.name == "/":
                break
            group = group.parent
        return False

    def names_of(self, axis: int) -> frozenset[str] | None:
        """Return the possible names of an axis, from its attached scales; None if the file names none."""
        fitting = [scale for scale in self._scales(axis) if scale.shape and scale.shape[0] == self.own_shape[axis]]
        names = [scale.name for scale in fitting if scale.name]
        return frozenset(name.rpartition("/")[2].removeprefix(_NON_COORDINATE) for name in names) or None

    def _scales(self, axis: int) -> list[Any]:
        try:
            return list(self._dataset.dims[axis].values())
        except _UNREADABLE:
            return []

    def attributes(self) -> Iterator[tuple[str, Any]]:
        """Yield the attributes in their expected JSON form."""
        return _attributes(self._file, self._dataset)


def _records_of(found: Values, form: np.dtype[Any]) -> Values:
    """Return complex numbers as records of their parts, with the field names of `form`."""
    records = np.empty(found.shape, [(name, found.real.dtype) for name in form.names or ()])
    for name, part in zip(form.names or (), (found.real, found.imag), strict=True):
        records[name] = part
    return records


def _attributes(file: h5py.File, owner: Any) -> Iterator[tuple[str, Any]]:
    try:
        names = list(owner.attrs)
    except _UNREADABLE as error:
        raise Unreadable(type(error).__name__) from None
    for name in names:
        try:
            value = owner.attrs[name]
        except _UNREADABLE:
            yield name, Unreadable
            continue
        try:
            yield name, expected_json(value)
        except (NotCompared, *_UNREADABLE):
            yield name, NotCompared


def _identity(one: Any) -> tuple[int, int]:
    info = h5py.h5o.get_info(one.id)
    return info.fileno, info.addr


def _inner_shape(kind: Any) -> tuple[int, ...]:
    return kind.get_array_dims() + _inner_shape(kind.get_super()) if isinstance(kind, h5t.TypeArrayID) else ()


def _is_converted(kind: Any) -> bool:
    """Return whether floats have a form numpy lacks: h5py converts them to the next larger type."""
    known = {kind.get_fields() for kind in (h5t.IEEE_F16LE, h5t.IEEE_F32LE, h5t.IEEE_F64LE)}
    return isinstance(kind, h5t.TypeFloatID) and kind.get_fields() not in known


def _unpad(kind: Any, content: bytes) -> bytes:
    if kind.is_variable_str():
        return content
    if kind.get_strpad() == h5t.STR_SPACEPAD:
        return content.rstrip(b" \0")
    return content.partition(b"\0")[0] if kind.get_strpad() == h5t.STR_NULLTERM else content.rstrip(b"\0")
