"""Verify one array: compare everything in its references with what another library reads from the file."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from h5zarr.commands.verify.differences import Difference, Unreadable, Values, numbers_differ
from h5zarr.commands.verify.json_values import NotCompared, same_json
from h5zarr.commands.verify.regions import Region
from h5zarr.netcdf_names import HIDDEN
from h5zarr.zarr_model.hierarchy import ArrayNode, Json
from h5zarr.zarr_model.missing import FILL_VALUE

# Attributes in which HDF5, netCDF and Zarr store dimensions and internal marks. They are not part of the data.
_NOTES = HIDDEN | {"DIMENSION_LABELS"}
_MADE_UP = re.compile(r"phony_dim_\d+")


class TrueVariable(Protocol):
    """A variable as another library reads it."""

    is_empty: bool
    shape: tuple[int, ...]
    own_shape: tuple[int, ...]
    grows: tuple[bool, ...]

    @property
    def fill(self) -> Values | None: ...

    def read(self, region: tuple[slice, ...]) -> Values: ...

    def differs(self, found: Values, expected: Values) -> Difference | None: ...

    def is_named(self, axis: int, name: str) -> bool: ...

    def names_of(self, axis: int) -> frozenset[str] | None: ...

    def attributes(self) -> Iterator[tuple[str, Any]]: ...


@dataclass(slots=True)
class Verified:
    """The result for one array: the number of chunks compared and in total, and the first difference of each kind.

    `skipped` says why the values could not be compared; `error` says why the references could not be read.
    """

    path: str
    compared: int = 0
    total: int = 0
    differences: list[str] = field(default_factory=list)
    skipped: str = ""
    error: str = ""

    @property
    def is_right(self) -> bool:
        return not self.differences and not self.error

    def to_json(self) -> dict[str, Json]:
        document: dict[str, Json] = {"path": self.path, "chunks_compared": self.compared, "chunks": self.total}
        if self.differences:
            document["differences"] = self.differences
        return document | {name: text for name in ("skipped", "error") if (text := getattr(self, name))}


class Outcome(NamedTuple):
    """The result for some regions of an array: the number of correct chunks, and at most one of three ways to end."""

    compared: int = 0
    difference: str = ""
    skipped: str = ""
    error: str = ""

    @property
    def is_end(self) -> bool:
        """Whether the regions after this need no comparison."""
        return bool(self.difference or self.skipped or self.error)


def verify_array(path: str, node: ArrayNode, array: Any, truth: TrueVariable) -> tuple[Verified, bool]:
    """Compare everything but the values of an array, and return whether there are values to compare."""
    shape = _shape_differs(node, truth)
    found = [shape, None if shape else _fill_differs(array, truth), _names_differ(node, truth)]
    found += _attributes_differ(node.attributes, truth.attributes(), node)
    result = Verified(path, differences=[str(one) for one in found if one is not None])
    return result, shape is None and not truth.is_empty


def compare_regions(regions: Sequence[Region], node: ArrayNode, array: Any, truth: TrueVariable) -> Outcome:
    """Compare regions of a Zarr array with its variable, up to the first end."""
    compared = 0
    for region in regions:
        try:
            difference = _region_differs(region, node, array, truth)
        except Unreadable as error:
            return Outcome(compared, skipped=str(error))
        except Exception as error:  # from zarr, a codec or storage: in any case the references cannot be read
            what = f"{region.where} cannot be read through the references: {type(error).__name__}: {error}"
            return Outcome(compared, error=what)
        if difference is not None:
            return Outcome(compared, difference=str(difference))
        compared += region.chunk_count
    return Outcome(compared)


def _region_differs(region: Region, node: ArrayNode, array: Any, truth: TrueVariable) -> Difference | None:
    """Return how a region differs. Elements that netCDF shows beyond the end of a dataset are not compared."""
    rank = len(truth.own_shape)
    part = tuple(
        slice(min(one.start, extent), min(one.stop, extent))
        for one, extent in zip(region.part[:rank], truth.own_shape, strict=True)
    )
    if any(one.start == one.stop for one in part):
        return None
    expected = truth.read(part)
    found = np.asarray(array[(*part, ...)] if array.shape else array[...])
    if region.part[rank:]:  # chunks may split the elements of an array data type
        inside: tuple[Any, ...] = (..., *region.part[rank:])
        expected, found = expected[inside], found[inside]
    difference = truth.differs(found, expected)
    return None if difference is None else difference.moved(tuple(one.start for one in (*part, *region.part[rank:])))


def _shape_differs(node: ArrayNode, truth: TrueVariable) -> Difference | None:
    """Return how shapes differ. NetCDF shows a variable as long as its unlimited dimension."""
    differs = Difference("shape", str(node.shape), str(truth.shape))
    if len(node.shape) != len(truth.shape):
        return differs
    grows = (*truth.grows, *(False for _ in truth.shape[len(truth.grows) :]))
    fits = all(
        ours == theirs or (may_grow and ours > theirs)
        for ours, theirs, may_grow in zip(node.shape, truth.shape, grows, strict=True)
    )
    return None if fits else differs


def _fill_differs(array: Any, truth: TrueVariable) -> Difference | None:
    """Return how storage fill values differ, if both are numbers and netCDF does not override them."""
    expected = truth.fill
    if expected is None or tuple(array.shape) != truth.shape:
        return None
    found = np.asarray(array.fill_value)
    if found.dtype.kind not in "biufc" or array.dtype.newbyteorder("=") != expected.dtype.newbyteorder("="):
        return None  # the comparison of values reports different types
    difference = numbers_differ(np.asarray(found, expected.dtype), expected, any_nan=expected.dtype.itemsize == 2)
    return None if difference is None else difference._replace(what="fill value", at=None)


def _names_differ(node: ArrayNode, truth: TrueVariable) -> Difference | None:
    """Return how dimension names differ from those in the file."""
    for axis, found in enumerate(node.dimension_names[: len(truth.own_shape)]):
        if _MADE_UP.fullmatch(found) or truth.is_named(axis, found):
            continue
        allowed = truth.names_of(axis)
        if allowed is not None and found not in allowed:
            expected = " or ".join(map(repr, sorted(allowed)))
            return Difference(f"name of dimension {axis}", repr(found), expected)
    return None


def _attributes_differ(
    attributes: Mapping[str, Json], expected: Iterator[tuple[str, Any]], node: ArrayNode | None
) -> Iterator[Difference]:
    """Yield how attributes differ."""
    left = set(attributes)
    try:
        known = list(expected)
    except Unreadable:
        return
    for name, value in known:
        if name not in attributes:
            # A `_FillValue` that masks nothing is left out, with a warning: docs/fill-values.md. So are unreadable
            # attributes.
            if name not in _NOTES and name != FILL_VALUE and value is not Unreadable:
                yield Difference(f"attribute {name}", "missing", repr(value))
            continue
        left.discard(name)
        found = attributes[name]
        if value is NotCompared or value is Unreadable:
            continue
        if name == FILL_VALUE and node is not None:
            found, value = plain_fill(found), cast_fill(value, node)
        if not same_json(found, value):
            yield Difference(f"attribute {name}", repr(found), repr(value))
    for name in sorted(left - _NOTES):
        yield Difference(f"attribute {name}", repr(attributes[name]), "none")


def plain_fill(stored: Json) -> Json:
    """Return the number that xarray's form of `_FillValue` encodes."""
    if not isinstance(stored, str):
        return stored
    content = b64decode(stored)
    return float(np.frombuffer(content, "<f8")[0]) if len(content) == 8 else stored


def cast_fill(value: Json, node: ArrayNode) -> Json:
    """Return a `_FillValue` in the data type of the variable, for comparison."""
    if not isinstance(node.data_type, str) or isinstance(value, str | list):
        return value
    try:
        dtype = np.dtype(node.data_type)
    except TypeError:
        return value
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return float(np.asarray(value).astype(dtype))
    if dtype.kind in "iu" and float(value).is_integer():
        return int(np.asarray(int(value) % (1 << 8 * dtype.itemsize)).astype(f"u{dtype.itemsize}").view(dtype))
    return value


def verify_group(path: str, attributes: Mapping[str, Json], expected: Iterator[tuple[str, Any]]) -> Verified:
    """Return how the attributes of a group differ."""
    return Verified(path, differences=[str(one) for one in _attributes_differ(attributes, expected, None)])
