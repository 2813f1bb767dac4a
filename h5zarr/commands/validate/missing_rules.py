"""Rules of the `_FillValue` attribute, a registered extension of Zarr version 3: its form for each data type."""

from __future__ import annotations

from collections.abc import Iterator

from h5zarr.commands.validate.members import attributes_of
from h5zarr.commands.validate.raw import RawNode
from h5zarr.commands.validate.rules import Found, Level, Result, Rule, each_array
from h5zarr.zarr_model.data_types import find_type
from h5zarr.zarr_model.missing import FILL_VALUE, is_covered, wrong_missing


def _check_form(node: RawNode) -> Iterator[Result]:
    kind = find_type(node.metadata.get("data_type"))
    attributes = attributes_of(node)
    if isinstance(kind, str) or FILL_VALUE not in attributes:
        return
    if wrong := wrong_missing(attributes[FILL_VALUE], kind):
        yield Found(
            node.path,
            f"{FILL_VALUE} of an array of {kind.name}: {wrong}",
            "Write it in the form that the extension defines.",
        )


def _check_type(node: RawNode) -> Iterator[Result]:
    kind = find_type(node.metadata.get("data_type"))
    if isinstance(kind, str) or FILL_VALUE not in attributes_of(node):
        return
    if not is_covered(kind):
        what = f"{FILL_VALUE} is not defined for an array of {kind.name}: xarray fails on it"
        yield Found(node.path, what, "Remove the attribute.")


_SECTION = "zarr-extensions: _FillValue: Attribute values"
RULES = (
    Rule(
        id="fill/form",
        level=Level.ERROR,
        section=_SECTION,
        asks="`_FillValue` has the form of the data type: floats are base64 of a little-endian double",
        check=each_array(_check_form),
    ),
    Rule(
        id="fill/type",
        level=Level.WARNING,
        section=_SECTION,
        asks="`_FillValue` is used only with data types for which it is defined",
        check=each_array(_check_type),
    ),
)
