"""Let xarray decode datasets, and work around variables that it cannot decode.

xarray refuses a whole dataset if it cannot decode one of its variables, for example because `scale_factor` is text.
h5zarr decodes such a variable without the attributes at fault, so it may be decoded only in part or not at all. These
attributes are still shown.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from xarray import Dataset
from xarray.backends.common import AbstractDataStore
from xarray.backends.store import StoreBackendEntrypoint
from xarray.conventions import decode_cf_variables
from xarray.core.variable import Variable

from h5zarr.engine.datastore import HierarchyDataStore
from h5zarr.engine.part_decoding import PartDecoding
from h5zarr.errors import Problem, SourceError

DECODING_KIND = "decoding"
"""The kind of problem with a variable that is decoded only in part or not at all."""

Variables: TypeAlias = Mapping[str, Variable]

_FILLS = ("_FillValue", "missing_value")
_TIMES = ("units", "calendar")
_PACKING = ("scale_factor", "add_offset")
_RELATED = ("bounds", "grid_mapping", "climatology", "geometry", "node_coordinates", "node_count", "part_node_count")
_NAMING = ("coordinates", *_RELATED, "interior_ring", "cell_measures", "formula_terms")
# Attributes to leave out, tried in this order. Later steps of decoding need the results of earlier ones: times are
# wrong if they are still packed, and packed values are wrong if it is not known whether they are signed.
_REMOVED = (
    *((name,) for name in (*_FILLS, "dtype", *_NAMING)),
    _FILLS,
    _TIMES,
    (*_FILLS, *_TIMES),
    (*_PACKING, *_TIMES),
    (*_FILLS, *_PACKING, *_TIMES),
    ("_Encoding",),
    (*_FILLS, *_PACKING, *_TIMES, "_Unsigned"),
    (*_FILLS, *_PACKING, *_TIMES, "_Unsigned", "dtype", "_Encoding", *_NAMING),
)
_TEXTS = (*_TIMES, "_Unsigned", "dtype", "coordinates")
_MOST_SHOWN = 60


@dataclass
class _Decoder(AbstractDataStore):
    """The variables of a data store. Some are decoded without some of their attributes.

    `removed` has those attributes by variable, `problems` says why.
    """

    store: HierarchyDataStore
    path: str
    options: Mapping[str, Any]
    variables: dict[str, Variable]
    removed: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def get_variables(self) -> dict[str, Variable]:
        found = dict(self.variables)
        for name in (*self._changed(), *self.removed):
            found[name] = self._without(name, self.removed.get(name, ()))
        for name in self.options["drop_variables"]:
            # xarray looks up the bounds of all variables, even of those that it does not decode.
            if name in found and not isinstance(found[name].attrs.get("bounds", ""), str):
                found[name] = self._without(name, ("bounds",))
        return found

    def _changed(self) -> set[str]:
        """Return the variables whose attributes xarray changes in place: bounds of times, and dates of numpy."""
        bounds = {str(one.attrs["bounds"]) for one in self.variables.values() if "bounds" in one.attrs}
        return {name for name, one in self.variables.items() if name in bounds or one.dtype.kind in "mM"}

    def get_attrs(self) -> Mapping[str, Any]:
        return self.store.get_attrs()

    def get_encoding(self) -> dict[str, Any]:
        return self.store.get_encoding()

    def close(self) -> None:
        self.store.close()

    def _without(self, name: str, attributes: Any) -> Variable:
        variable = self.variables[name].copy(deep=False)
        variable.attrs = {key: value for key, value in variable.attrs.items() if key not in attributes}
        return variable

    def names(self) -> Iterator[str]:
        """Return the variables that are decoded."""
        return (name for name in self.variables if name not in self.options["drop_variables"])

    def repair(self, name: str, check: Callable[[str, Variable], Exception | None]) -> None:
        """If a variable fails `check`, find the attributes without which it passes."""
        error = check(name, self._without(name, self.removed.get(name, ())))
        if error is None:
            return
        for candidates in _REMOVED:
            attributes = {key: value for key, value in self.variables[name].attrs.items() if key in candidates}
            if attributes and check(name, self._without(name, attributes)) is None:
                self.removed[name] = attributes
                self.problems.append(self._describe(name, attributes, error))
                return

    def repair_bounds(self, name: str) -> None:
        """If a variable cannot be decoded as the bounds of another, decode it by its own attributes alone."""
        error = self.check_in_place(name, self._without(name, self.removed.get(name, ())))
        if error is None:
            return
        owners = [owner for owner, one in self.variables.items() if str(one.attrs.get("bounds")) == name]
        for owner in owners:
            self.removed[owner] = {**self.removed.get(owner, {}), "bounds": name}
        if owners:
            what = f"xarray cannot decode it as the bounds of {owners[0]!r} ({_shorten(str(error))})"
            self.problems.append(self._problem(name, f"{what}; it is decoded as an ordinary variable"))

    def _describe(self, name: str, attributes: Mapping[str, Any], error: Exception) -> Problem:
        shown = " and ".join(f"{key} {_shorten(repr(value))}" for key, value in attributes.items())
        return self._problem(name, f"xarray cannot decode it ({_shorten(str(error))}); it is decoded without {shown}")

    def _problem(self, name: str, what: str) -> Problem:
        path = f"/{self.path.strip('/')}/{name}".replace("//", "/", 1)
        return Problem(path, DECODING_KIND, what, "Decode it yourself if you need the decoded values.")

    def check_kind(self, name: str, variable: Variable) -> Exception | None:
        """Return the error of decoding one made-up element of the variable's type with its attributes, if any."""
        element = np.empty((1,) * variable.ndim, variable.dtype)
        element[...] = "a" if element.dtype.kind in "OSU" else np.zeros((), element.dtype)
        return self._check({name: Variable(variable.dims, element, variable.attrs)}, name, is_read=True)

    def check_alone(self, name: str, variable: Variable) -> Exception | None:
        """Return the error of decoding a variable, if any. xarray reads some values of times."""
        return self.check_kind(name, variable) or self._check({name: variable}, name)

    def check_in_place(self, name: str, variable: Variable) -> Exception | None:
        """Return the error of decoding a variable among the others, which may add attributes to it, if any."""
        return self._check({**self.get_variables(), name: variable}, name)

    def _check(self, variables: Variables, name: str, *, is_read: bool = False) -> Exception | None:
        options = {**self.options, "drop_variables": variables.keys() - {name}}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = decode_cf_variables(variables, {}, **options)[0][name]
                if is_read or found.dims == (name,):
                    _ = found.values
        except SourceError:
            raise
        except Exception as error:
            return error
        return None

    def decode(self) -> Dataset:
        dataset: Dataset = StoreBackendEntrypoint().open_dataset(self, **self.options)
        for name, variable in dataset.variables.items():
            if variable.dims == (name,):
                variable.load()  # as xarray will do next, but here errors can be repaired
            variable.attrs |= self.removed.get(str(name), {})
        return dataset


def decode_dataset(store: HierarchyDataStore, path: str, options: Mapping[str, Any]) -> tuple[Dataset, list[Problem]]:
    """Return the dataset of a store, whose group is at `path`, and a problem for each that was not fully decoded.

    `options` are those of `xarray.open_dataset`. Raises what xarray raises if no variable is to blame.
    """
    variables = store.get_variables()
    parts = PartDecoding(options, dict(variables), store.first_parts())
    store.add_joined(variables, parts.find)
    decoder = _Decoder(store, path, options, variables, removed=parts.owners())
    for name in decoder.names():
        if _is_odd(variables[name]):
            decoder.repair(name, decoder.check_kind)
    for repair in (partial(decoder.repair, check=decoder.check_alone), decoder.repair_bounds):
        try:
            return decoder.decode(), decoder.problems
        except SourceError:
            raise
        except Exception:
            for name in decoder.names():
                repair(name)
    return decoder.decode(), decoder.problems


def _is_odd(variable: Variable) -> bool:
    """Return whether decoding may fail only when values are read. Ordinary attributes need no further check."""
    attributes, kind = variable.attrs, variable.dtype.kind
    if not attributes:
        return False
    if "_Encoding" in attributes or not all(isinstance(attributes[name], str) for name in _TEXTS if name in attributes):
        return True
    if kind not in "biufc":
        return any(name in attributes for name in (*_FILLS, *_PACKING))
    numbers = [attributes[name] for name in (*_FILLS, *_PACKING) if name in attributes]
    return not all(isinstance(one, np.integer | np.floating | np.bool_) for one in numbers)


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…"
