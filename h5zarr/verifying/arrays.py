"""One array: everything that its references say, compared with what another library reads from the file."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from h5zarr.hierarchy import ArrayNode, Json
from h5zarr.verifying.differences import Difference, Unreadable, Values, numbers_differ
from h5zarr.verifying.json_values import NotCompared, same_json
from h5zarr.verifying.regions import Region

# Attributes by which HDF5, netCDF and Zarr note dimensions and their own marks: they are none of the data.
HIDDEN = frozenset(
    {
        *("DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME", "DIMENSION_LABELS", "_Netcdf4Dimid"),
        *("_Netcdf4Coordinates", "_NCProperties", "_nc3_strict", "_Format", "_IsNetcdf4", "_SuperblockVersion"),
        *("_ARRAY_DIMENSIONS", "_Codecs", "_nczarr_array", "_nczarr_attr", "_nczarr_group", "_nczarr_superblock"),
    }
)
_MADE_UP = re.compile(r"phony_dim_\d+")
_RECORDS = ("_nc_attribute_types", "_nc_encoding")  # of h5zarr, on groups


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
    """What became of one array: the chunks that were compared, of so many, and the first difference of each kind.

    `skipped` says why the values could not be compared; `error` why they could not be read through the references.
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
        told: dict[str, Json] = {"path": self.path, "chunks_compared": self.compared, "chunks": self.total}
        if self.differences:
            told["differences"] = self.differences
        return told | {name: text for name in ("skipped", "error") if (text := getattr(self, name))}


class Outcome(NamedTuple):
    """What became of some parts of an array: so many chunks are right, then it may end in one of three ways."""

    compared: int = 0
    difference: str = ""
    skipped: str = ""
    error: str = ""

    @property
    def is_end(self) -> bool:
        """Whether nothing behind it needs to be compared."""
        return bool(self.difference or self.skipped or self.error)


def verify_array(path: str, node: ArrayNode, array: Any, truth: TrueVariable) -> tuple[Verified, bool]:
    """Return how all but the values of an array compares, and whether there are values that can be compared."""
    shape = _shape_differs(node, truth)
    found = [shape, None if shape else _fill_differs(array, truth), _names_differ(node, truth)]
    found += _attributes_differ(node.attributes, truth.attributes(), node)
    result = Verified(path, differences=[str(one) for one in found if one is not None])
    return result, shape is None and not truth.is_empty


def compare_regions(regions: Sequence[Region], node: ArrayNode, array: Any, truth: TrueVariable) -> Outcome:
    """Return how parts of an array of Zarr compare with the variable that it stands for, up to the first end."""
    compared = 0
    for region in regions:
        try:
            difference = _region_differs(region, node, array, truth)
        except Unreadable as error:
            return Outcome(compared, skipped=str(error))
        except Exception as error:  # of zarr, of a codec, of whatever reads: the references are at fault
            what = f"{region.where} cannot be read through the references: {type(error).__name__}: {error}"
            return Outcome(compared, error=what)
        if difference is not None:
            return Outcome(compared, difference=str(difference))
        compared += region.chunk_count
    return Outcome(compared)


def _region_differs(region: Region, node: ArrayNode, array: Any, truth: TrueVariable) -> Difference | None:
    """Return how a region differs; what netCDF shows beyond the end of a dataset has nothing to be compared with."""
    rank = len(truth.own_shape)
    part = tuple(
        slice(min(one.start, extent), min(one.stop, extent))
        for one, extent in zip(region.part[:rank], truth.own_shape, strict=True)
    )
    if any(one.start == one.stop for one in part):
        return None
    expected = truth.read(part)
    found = np.asarray(array[(*part, ...)] if array.shape else array[...])
    if region.part[rank:]:  # chunks may be cut inside of elements that are arrays
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
    """Return how storage fills differ, where both are numbers, and netCDF has no say in it."""
    expected = truth.fill
    if expected is None or tuple(array.shape) != truth.shape:
        return None
    found = np.asarray(array.fill_value)
    if found.dtype.kind not in "biufc" or array.dtype.newbyteorder("=") != expected.dtype.newbyteorder("="):
        return None  # a difference of types shows in the values
    difference = numbers_differ(np.asarray(found, expected.dtype), expected, any_nan=expected.dtype.itemsize == 2)
    return None if difference is None else difference._replace(what="fill value", at=None)


def _names_differ(node: ArrayNode, truth: TrueVariable) -> Difference | None:
    """Return how names of dimensions differ from those that the file gives the axes."""
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
    left = {name for name in attributes if name not in _RECORDS}
    try:
        known = list(expected)
    except Unreadable:
        return
    for name, value in known:
        if name not in attributes:
            # One that masks nothing is left out, with a warning: docs/fill-values.md. So is one that nobody can read.
            if name not in HIDDEN and name != "_FillValue" and value is not Unreadable:
                yield Difference(f"attribute {name}", "missing", repr(value))
            continue
        left.discard(name)
        found = attributes[name]
        if value is NotCompared or value is Unreadable:
            continue
        if name == "_FillValue" and node is not None:
            found, value = _plain_fill(found), _cast_fill(value, node)
        if not same_json(found, value):
            yield Difference(f"attribute {name}", repr(found), repr(value))
    for name in sorted(left - HIDDEN):
        yield Difference(f"attribute {name}", repr(attributes[name]), "none")


def _plain_fill(stored: Json) -> Json:
    """Return the number that a `_FillValue` in xarray's form is."""
    if not isinstance(stored, str):
        return stored
    content = b64decode(stored)
    return float(np.frombuffer(content, "<f8")[0]) if len(content) == 8 else stored


def _cast_fill(value: Json, node: ArrayNode) -> Json:
    """Return a `_FillValue` in the type of the variable, in which it is compared."""
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
    """Return how the attributes of a group compare."""
    return Verified(path, differences=[str(one) for one in _attributes_differ(attributes, expected, None)])
