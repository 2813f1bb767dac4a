"""A group of a hierarchy as a data store of xarray, which shows what its netCDF engine shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from xarray.backends.common import AbstractDataStore, BackendArray
from xarray.core import indexing
from xarray.core.variable import Variable

from h5zarr.encode.encode import STORED, TYPES
from h5zarr.engine.attributes import FILL_VALUE, HIDDEN, restore_attributes, restore_fill
from h5zarr.engine.elements import Presentation, choose_presentation, present
from h5zarr.engine.encoding import netcdf_encoding
from h5zarr.engine.record import GroupRecord, decode_record
from h5zarr.errors import H5ZarrError, MalformedFile
from h5zarr.hdf5.guard import SURPRISES, surprised
from h5zarr.hierarchy import ArrayNode, GroupNode, Hierarchy, Json
from h5zarr.tree import NO_NOTES, AttributeNotes, StoredForm

_OWN = frozenset({TYPES, STORED})
_MOST_GROUPS_NAMED = 20
_IN_ENCODING = "least_significant_digit"  # xarray's netCDF engine takes this attribute for encoding


class ArrayValues(Protocol):
    """The values of an array, as Zarr's metadata describe them."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> Any: ...

    def __getitem__(self, key: tuple[int | slice | npt.NDArray[Any], ...]) -> Any:
        """Return a part: along each axis one element, a slice of positive step, or some elements by number."""
        ...


Read: TypeAlias = Callable[[str], ArrayValues]


class HierarchyDataStore(AbstractDataStore):
    """One group of a hierarchy. `read` gives the values of the array at a path; `source` is the file's path or URL.

    `close` is called when the data store is closed.
    """

    def __init__(
        self, hierarchy: Hierarchy, group: str, read: Read, source: str, close: Callable[[], None] | None = None
    ) -> None:
        self._close = close
        self._hierarchy = hierarchy
        self._path = "/" + group.strip("/")
        self._read, self._source = read, source
        node = hierarchy.nodes.get(self._path)
        if not isinstance(node, GroupNode):
            raise OSError(f"{source}: group not found: {self._path}; {_describe_groups(hierarchy, self._path)}")
        self._node = node
        self._types: Mapping[str, Any] = node.attributes.get(TYPES, {})
        self._record: GroupRecord | None = decode_record(node.attributes.get(STORED))

    @property
    def _is_classic(self) -> bool:
        return self._record is not None and self._record.is_classic

    def get_variables(self) -> dict[str, Variable]:
        prefix = self._path.rstrip("/") + "/"
        variables = {}
        for path, node in self._hierarchy.nodes.items():
            if isinstance(node, ArrayNode) and path.startswith(prefix) and "/" not in (name := path[len(prefix) :]):
                with _told_of(path):
                    variables[name] = self._open_variable(path, name, node)
        return variables

    def get_attrs(self) -> dict[str, Any]:
        notes = self._record.notes if self._record is not None else NO_NOTES
        with _told_of(self._path):
            hidden = self._hidden() | _OWN | set(notes.foreign)
            return restore_attributes(self._node.attributes, self._types.get("", {}), hidden, dict(notes.padded))

    def get_dimensions(self) -> dict[str, int]:
        """Return the lengths of the dimensions that variables of this group have."""
        return {str(name): n for one in self.get_variables().values() for name, n in one.sizes.items()}

    def get_encoding(self) -> dict[str, Any]:
        with _told_of(self._path):
            return {"unlimited_dims": set(self._record.unlimited if self._record is not None else ())}

    def close(self) -> None:
        if self._close is not None:
            self._close()

    def _hidden(self) -> frozenset[str]:
        return frozenset() if self._is_classic else HIDDEN

    def _open_variable(self, path: str, name: str, array: ArrayNode) -> Variable:
        form = self._record.form_of(name) if self._record is not None else None
        presentation = choose_presentation(array, form or StoredForm(), is_classic=self._is_classic)
        notes = form.notes if form is not None else NO_NOTES
        attributes = self._attributes(name, array.attributes, notes, presentation)
        encoding = netcdf_encoding(array, form, presentation, self._source, is_classic=self._is_classic)
        if _IN_ENCODING in attributes:
            encoding[_IN_ENCODING] = attributes.pop(_IN_ENCODING)
        shown = _ShownArray(array.shape, presentation, self._read(path))
        return Variable(array.dimension_names, indexing.LazilyIndexedArray(shown), attributes, encoding)

    def _attributes(
        self, name: str, attributes: Mapping[str, Json], notes: AttributeNotes, presentation: Presentation
    ) -> dict[str, Any]:
        types = self._types.get(name, {})
        hidden = self._hidden() | set(notes.foreign)
        fill = {} if FILL_VALUE in hidden else restore_fill(attributes, types, presentation.dtype)
        return restore_attributes(attributes, types, hidden | {FILL_VALUE}, dict(notes.padded)) | fill


def _describe_groups(hierarchy: Hierarchy, path: str) -> str:
    """Return what there is instead of the group at `path`."""
    if path in hierarchy.nodes:
        return "this is a variable"
    groups = [name for name, node in hierarchy.nodes.items() if isinstance(node, GroupNode)]
    more = len(groups) - _MOST_GROUPS_NAMED
    return f"there are {', '.join(groups[:_MOST_GROUPS_NAMED])}{f' and {more} more' if more > 0 else ''}"


@contextmanager
def _told_of(path: str) -> Iterator[None]:
    """Name the node that something is wrong with: references may come from anybody, and say anything."""
    try:
        yield
    except H5ZarrError as error:
        if str(error).startswith(path):
            raise
        raise error.naming(path) from None
    except (AttributeError, *SURPRISES) as error:
        raise MalformedFile(f"{path}: {surprised(error)}") from error


class _ShownArray(BackendArray):
    """The values of a variable as netCDF4 shows them, read when they are asked for."""

    def __init__(self, shape: tuple[int, ...], presentation: Presentation, values: ArrayValues) -> None:
        self.shape, self.dtype = shape, presentation.dtype
        self._presentation, self._values = presentation, values

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> npt.NDArray[Any]:
        return present(np.asarray(self._values[key]), self._presentation)
