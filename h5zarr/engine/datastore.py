"""A group of a hierarchy as an xarray data store, which shows the same as xarray's netCDF engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar
from warnings import warn

import numpy as np
import numpy.typing as npt
from xarray.backends.common import AbstractDataStore, BackendArray
from xarray.core import indexing
from xarray.core.variable import Variable

from h5zarr.engine.elements import Presentation, choose_presentation, present, stored_dtype
from h5zarr.engine.encoding import netcdf_encoding
from h5zarr.engine.joined_arrays import Decode, DecodedPart, decode_with_parameters, join_parts
from h5zarr.engine.netcdf_attributes import restore_attributes, restore_fill
from h5zarr.errors import (
    SURPRISES,
    H5ZarrError,
    MalformedFile,
    Problem,
    ProblemWarning,
    SourceError,
    Unrepresentable,
    surprised,
)
from h5zarr.netcdf_names import HIDDEN
from h5zarr.zarr_model.hierarchy import USUAL_FORM, ArrayNode, GroupNode, GroupRecord, Hierarchy, VariableRecord
from h5zarr.zarr_model.joined import JoinedVariable
from h5zarr.zarr_model.missing import FILL_VALUE
from h5zarr.zarr_model.record import RECORD_KIND

_MOST_GROUPS_NAMED = 20
_IN_ENCODING = "least_significant_digit"  # xarray's netCDF engine moves this attribute to the encoding


class ArrayValues(Protocol):
    """The values of an array, as the Zarr metadata describe them."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> Any: ...

    def __getitem__(self, key: tuple[int | slice | npt.NDArray[Any], ...]) -> Any:
        """Return a selection: for each axis an index, a slice with positive step, or an array of indices."""
        ...


_Record = TypeVar("_Record", GroupRecord, VariableRecord)
_Made = TypeVar("_Made")
Read: TypeAlias = Callable[[str], ArrayValues]
FindDecode: TypeAlias = Callable[[str, bool], Decode]
"""Returns the function that decodes the parts of a variable, by its name and whether it is complete."""


class HierarchyDataStore(AbstractDataStore):
    """One group of a hierarchy. `read` returns the values of the array at a path; `source` is the file's path or URL.

    Closing the data store calls `close`. `problems` names the variables that were left out because of their errors.
    The values of coordinates, which xarray reads as soon as it has opened a dataset, are read with their variable, so
    that they fail there; those of `dropped` variables are not.
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        group: str,
        read: Read,
        source: str,
        close: Callable[[], None] | None = None,
        dropped: Collection[str] = (),
    ) -> None:
        self.problems: list[Problem] = []
        self._close, self._dropped = close, dropped
        self._hierarchy = hierarchy
        self._path = "/" + group.strip("/")
        self._read, self._source = read, source
        node = hierarchy.nodes.get(self._path)
        if not isinstance(node, GroupNode):
            raise OSError(f"{source}: group not found: {self._path}; {_describe_groups(hierarchy, self._path)}")
        self._node = node
        self._is_classic = node.record is not None and node.record.is_classic

    def get_variables(self) -> dict[str, Variable]:
        prefix = self._path.rstrip("/") + "/"
        variables: dict[str, Variable] = {}
        sizes: dict[str, int] = {}
        self.problems.clear()
        hidden = self._parameter_names()
        for path, node in self._hierarchy.nodes.items():
            name = path[len(prefix) :]
            if isinstance(node, ArrayNode) and path.startswith(prefix) and "/" not in name and name not in hidden:
                self._add(variables, sizes, path, partial(self.open_stored, path, node))
        return variables

    def _add(
        self, variables: dict[str, Variable], sizes: dict[str, int], path: str, make: Callable[[], Variable]
    ) -> None:
        """Add the variable that `make` returns, or a problem if it raises an error."""
        try:
            variable = make()
            _check_sizes(path, variable, sizes)
        except SourceError:
            raise
        except H5ZarrError as error:
            what = f"{str(error).removeprefix(f'{path}: ')}; the variable is left out"
            self.problems.append(Problem(path, error.kind, what, error.remedy))
        else:
            variables[path.rpartition("/")[2]] = variable

    def open_stored(self, path: str, node: ArrayNode) -> Variable:
        """Return a variable as it is stored, with the attributes of the file."""
        return self._follow(path, partial(self._open_variable, path, node), self._hierarchy.record_of(path))

    def _parameter_names(self) -> set[str]:
        """Return the variables that only have the parameters of others."""
        record = self._node.record
        return (
            set() if record is None else {name for one in record.variables.values() for name in one.parameters.values()}
        )

    def add_joined(self, variables: dict[str, Variable], find_decode: FindDecode) -> None:
        """Add the variables that need more than one array, in decoded form."""
        record = self._node.record
        if record is None:
            return
        sizes = {str(name): length for one in variables.values() for name, length in one.sizes.items()}
        prefix = self._path.rstrip("/") + "/"
        for name, variable in list(variables.items()):
            if record.variable(name).parameters:
                del variables[name]
                make = partial(self._open_parameterised, prefix + name, variable, find_decode(name, True))
                self._add(variables, sizes, prefix + name, make)
        for name, joined in record.joined.items():
            if name not in variables and name not in self._dropped:
                make = partial(self._open_joined, prefix + name, joined, find_decode(name, joined.is_complete))
                self._add(variables, sizes, prefix + name, make)

    def first_parts(self) -> dict[str, Variable]:
        """Return one element of each variable that has several arrays, with dimensions and attributes of the first."""
        record, found = self._node.record, {}
        for name, joined in ({} if record is None else record.joined).items():
            at = f"{self._path.rstrip('/')}/{joined.parts[0].path}" if joined.parts else ""
            node = self._hierarchy.nodes.get(at)
            if isinstance(node, ArrayNode):
                with suppress(H5ZarrError):
                    element = np.zeros((1,) * len(node.shape), stored_dtype(node))
                    found[name] = Variable(node.dimension_names, element, dict(node.attributes))
        return found

    def _open_parameterised(self, path: str, stored: Variable, decode: Decode) -> Variable:
        """Return a variable that is decoded with the parameters of each position."""
        record, parent = self._hierarchy.record_of(path), path.rpartition("/")[0]
        assert record is not None
        with _naming_errors(path):
            found = {}
            axis = 0
            for attribute, name in record.parameters.items():
                node = self._hierarchy.nodes.get(f"{parent}/{name}")
                if not isinstance(node, ArrayNode) or len(node.shape) != 1:
                    raise MalformedFile(f"the values of {attribute}, which should be in {name}, are missing")
                axis = stored.dims.index(node.dimension_names[0])
                found[attribute] = np.asarray(self._read(f"{parent}/{name}")[(slice(None),)])
            return decode_with_parameters(stored, axis, found, decode)

    def _open_joined(self, path: str, joined: JoinedVariable, decode: Decode) -> Variable:
        """Return a variable of several arrays."""
        parent = path.rpartition("/")[0]
        parts = []
        with _naming_errors(path):
            for part in joined.parts:
                at = f"{parent}/{part.path}"
                node = self._hierarchy.nodes.get(at)
                if not isinstance(node, ArrayNode):
                    remedy = "Write JSON or Parquet references of Zarr version 3, which hold all parts."
                    raise Unrepresentable(f"a part of it, {at}, is missing", remedy=remedy)
                stored = self.open_stored(at, node)
                record = self._hierarchy.record_of(at)
                if record is not None and record.parameters:
                    variable = self._open_parameterised(at, stored, decode)
                else:
                    variable = decode(stored)
                parts.append(DecodedPart(variable, part.boxes))
            if not parts:
                raise MalformedFile("it has no parts")
            return join_parts(joined, parts)

    def get_attrs(self) -> dict[str, Any]:
        return self._follow(self._path, self._restore_group, self._node.record)

    def get_dimensions(self) -> dict[str, int]:
        """Return the sizes of the dimensions of this group's variables."""
        return {str(name): n for one in self.get_variables().values() for name, n in one.sizes.items()}

    def get_encoding(self) -> dict[str, Any]:
        return {"unlimited_dims": set() if self._node.record is None else set(self._node.record.unlimited)}

    def close(self) -> None:
        if self._close is not None:
            self._close()

    def _hidden(self) -> frozenset[str]:
        return frozenset() if self._is_classic else HIDDEN

    def _follow(self, path: str, make: Callable[[_Record | None], _Made], record: _Record | None) -> _Made:
        """Return the result of `make` for a record. If the record does not fit the node, warn and ignore it."""
        with _naming_errors(path):
            if record is None:
                return make(None)
            try:
                return make(record)
            except (H5ZarrError, AttributeError, *SURPRISES) as error:
                made = make(None)  # raises if the record is not to blame
                what = f"the record does not fit the node and is ignored ({str(error)[:80]})"
                problem = Problem(path, RECORD_KIND, what, "Translate the file again.")
                warn(f"{self._source}:{problem}. {problem.remedy}", ProblemWarning, stacklevel=2)
                return made

    def _restore_group(self, record: GroupRecord | None) -> dict[str, Any]:
        if record is None:
            return restore_attributes(self._node.attributes, {}, self._hidden())
        hidden = self._hidden() | set(record.notes.foreign)
        return restore_attributes(self._node.attributes, record.types, hidden, dict(record.notes.padded))

    def _open_variable(self, path: str, array: ArrayNode, record: VariableRecord | None) -> Variable:
        form = record.form if record is not None else None
        is_classic = self._is_in_classic(path)
        presentation = choose_presentation(array, form or USUAL_FORM, is_classic=is_classic)
        attributes = self._restore_variable(array, record or VariableRecord(), presentation)
        encoding = netcdf_encoding(array, form, presentation, self._source, is_classic=is_classic)
        if _IN_ENCODING in attributes:
            encoding[_IN_ENCODING] = attributes.pop(_IN_ENCODING)
        shown = _ShownArray(array.shape, presentation, self._read(path))
        if array.dimension_names == (name := path.rpartition("/")[2],) and name not in self._dropped:
            shown.hold()
        return Variable(array.dimension_names, indexing.LazilyIndexedArray(shown), attributes, encoding)

    def _is_in_classic(self, path: str) -> bool:
        """Return whether a variable is in a file of a classic format. Parts of joined variables may be in others."""
        group = self._hierarchy.nodes.get(path.rpartition("/")[0] or "/")
        return isinstance(group, GroupNode) and group.record is not None and group.record.is_classic

    def _restore_variable(self, array: ArrayNode, record: VariableRecord, presentation: Presentation) -> dict[str, Any]:
        notes = record.form.notes
        hidden = self._hidden() | set(notes.foreign)
        shown = {**array.attributes, **{name: kept.value for name, kept in record.withheld.items()}}
        types = {**record.types, **{name: kept.type for name, kept in record.withheld.items() if kept.type}}
        fill: dict[str, Any] = {}
        if FILL_VALUE not in hidden:
            members = record.types.get(FILL_VALUE)
            fill = restore_fill(array.attributes, record.fill_value, presentation.dtype, members)
        return restore_attributes(shown, types, hidden | {FILL_VALUE}, dict(notes.padded)) | fill


def _check_sizes(path: str, variable: Variable, sizes: dict[str, int]) -> None:
    """Raise MalformedFile if a dimension has another length than in the variables before; add it to `sizes` if not."""
    for name, length in zip(variable.dims, variable.shape, strict=True):
        if (known := sizes.setdefault(str(name), length)) != length:
            raise MalformedFile(f"{path}: dimension {name!r} has length {length}, but {known} in another variable")


def _describe_groups(hierarchy: Hierarchy, path: str) -> str:
    """Return which groups exist, for an error about a missing one at `path`."""
    if path in hierarchy.nodes:
        return "this is a variable"
    groups = [name for name, node in hierarchy.nodes.items() if isinstance(node, GroupNode)]
    more = len(groups) - _MOST_GROUPS_NAMED
    return f"the groups are {', '.join(groups[:_MOST_GROUPS_NAMED])}{f' and {more} more' if more > 0 else ''}"


@contextmanager
def _naming_errors(path: str) -> Iterator[None]:
    """Put the path of the node in front of errors. References are untrusted: any value may be wrong."""
    try:
        yield
    except H5ZarrError as error:
        if str(error).startswith(path):
            raise
        raise error.naming(path) from None
    except (AttributeError, *SURPRISES) as error:
        raise MalformedFile(f"{path}: {surprised(error)}") from error


class _ShownArray(BackendArray):
    """The values of a variable as netCDF4 shows them, read lazily."""

    def __init__(self, shape: tuple[int, ...], presentation: Presentation, values: ArrayValues) -> None:
        self.shape, self.dtype = shape, presentation.dtype
        self._presentation, self._values = presentation, values

    def hold(self) -> None:
        """Read all values of a one-dimensional array, and keep them."""
        self._values = np.asarray(self._values[(slice(None),)])

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        """Return values as `[]` does. Another thread waits for them, so that several arrays are read together."""
        return await asyncio.to_thread(self.__getitem__, key)

    def _read(self, key: tuple[Any, ...]) -> npt.NDArray[Any]:
        return present(np.asarray(self._values[key]), self._presentation)
