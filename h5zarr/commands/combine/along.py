"""What the user says about an axis: its name and, for a new axis, where the coordinate of each file comes from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.commands.combine.pieces import CubePiece
from h5zarr.errors import ArgumentError, NotJoinable
from h5zarr.zarr_model.axis_layout import AxisLayout, parse_layout
from h5zarr.zarr_model.hierarchy import Json

CoordinateOf: TypeAlias = Callable[[CubePiece], Any]
AlongInput: TypeAlias = str | Sequence[str] | Mapping[str, Callable[[str], Any] | str | None]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME_ATTRIBUTES: Mapping[str, Json] = {"units": "microseconds since 1970-01-01", "calendar": "proleptic_gregorian"}
_DIRECTIVE = re.compile(r"%[a-zA-Z]")


@dataclass(frozen=True, slots=True)
class Along:
    """The name of an axis. `coordinate_of` returns the coordinate of a file; None if the files have it, or not.

    `layout` has the coordinates of an axis that is laid out ahead. `text` is what the user wrote; None for a function.
    """

    name: str
    coordinate_of: CoordinateOf | None = None
    layout: AxisLayout | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class NewCoordinate:
    """The coordinates of files along an axis: a number or text for each, and the attributes of the variable."""

    values: npt.NDArray[Any]
    attributes: Mapping[str, Json]


def parse_along(along: AlongInput) -> tuple[Along, ...]:
    """Return the axes. Raises ArgumentError or TypeError for anything that does not describe one."""
    if isinstance(along, Mapping):
        made = [_from_pair(name, source) for name, source in along.items()]
    else:
        made = [_from_text(text) for text in ((along,) if isinstance(along, str) else along)]
    names = [one.name for one in made]
    if not names or not all(names) or len(set(names)) < len(names):
        raise ArgumentError("along must name at least one dimension, and each only once")
    return tuple(made)


def _from_text(text: str) -> Along:
    if not isinstance(text, str):
        raise TypeError(f"along must be a string, a list of strings or a mapping, not {type(text).__name__}")
    name, equals, source = text.partition("=")
    if not equals:
        return Along(name, text=text)
    layout = parse_layout(text, source)
    return Along(name, None if layout is not None else _source(text, source), layout, text)


def _from_pair(name: str, source: Callable[[str], Any] | str | None) -> Along:
    if source is None or isinstance(source, str):
        return _from_text(name if source is None else f"{name}={source}")
    if not callable(source):
        raise TypeError(f"along has {type(source).__name__} for {name}, but must have a function or a string")
    return Along(name, lambda piece: source(piece.name))


def _source(text: str, source: str) -> CoordinateOf:
    kind, _, what = source.partition(":")
    if kind == "name" and what:
        return _by_format(what) if _DIRECTIVE.search(what) else _by_pattern(text, what)
    if kind == "attr" and what:
        return _by_attribute(what)
    raise ArgumentError(
        f"along={text!r}: expected NAME, NAME=name:PATTERN, NAME=attr:ATTRIBUTE or NAME=START/STOP/STEP",
        remedy=r"Examples: time, run=name:ocean_(\d{8}), run=name:ocean_%Y%m%d, run=attr:forecast_time, "
        "time=2000-01-01/2030-01-01/PT30M.",
    )


def _by_pattern(text: str, pattern: str) -> CoordinateOf:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ArgumentError(f"along={text!r}: the pattern is not a regular expression: {error}") from None
    if compiled.groups > 1:
        raise ArgumentError(f"along={text!r}: the pattern has {compiled.groups} groups, but must have one")

    def find(piece: CubePiece) -> str:
        found = compiled.search(piece.name)
        if found is None:
            raise NotJoinable(f"{piece.name}: its name does not match '{pattern}'", remedy="Correct the pattern.")
        return found[compiled.groups]

    return find


# How many characters each directive of strptime takes, for finding the date in a longer name.
_WIDTHS = {"Y": r"\d{4}", "y": r"\d{2}", "j": r"\d{3}", "f": r"\d{1,6}", "b": "[A-Za-z]{3}", "B": "[A-Za-z]+"}


def _by_format(form: str) -> CoordinateOf:
    pieces = re.split(r"(%[a-zA-Z%])", form)
    pattern = "".join(
        ("%" if one == "%%" else _WIDTHS.get(one[1], r"\d{2}")) if one[:1] == "%" else re.escape(one) for one in pieces
    )
    compiled = re.compile(pattern)

    def find(piece: CubePiece) -> datetime:
        found = compiled.search(piece.name)
        try:
            return datetime.strptime(found[0] if found else "", form).replace(tzinfo=UTC)
        except ValueError:
            what = f"{piece.name}: its name has no date of the form {form!r}"
            raise NotJoinable(what, remedy="Correct the format.") from None

    return find


def _by_attribute(name: str) -> CoordinateOf:
    def find(piece: CubePiece) -> Any:
        value = piece.groups["/"].attributes.get(name) if "/" in piece.groups else None
        if not isinstance(value, str | int | float):
            what = f"{piece.name}: its attribute {name} is {'missing' if value is None else 'not a number or text'}"
            raise NotJoinable(what, remedy="Name an attribute that every file has.")
        return value

    return find


def read_coordinate(along: Along, pieces: Sequence[CubePiece]) -> NewCoordinate:
    """Return the coordinate of each file. Dates become times, text that consists of numbers becomes numbers."""
    assert along.coordinate_of is not None
    found = [along.coordinate_of(piece) for piece in pieces]
    for convert in (_as_times, _as_numbers):
        if (made := convert(found)) is not None:
            return made
    texts = np.empty(len(found), object)
    texts[:] = [str(one) for one in found]
    return NewCoordinate(texts, {})


def _as_times(found: Sequence[Any]) -> NewCoordinate | None:
    times = [_as_time(one) for one in found]
    known = [(one - _EPOCH) for one in times if one is not None]
    if len(known) < len(times):
        return None
    counts = [(one.days * 86_400 + one.seconds) * 1_000_000 + one.microseconds for one in known]
    return NewCoordinate(np.array(counts, np.int64), _TIME_ATTRIBUTES)


def _as_time(value: Any) -> datetime | None:
    if isinstance(value, np.datetime64):
        value = value.astype("M8[us]").item()
    elif isinstance(value, str) and "-" in value:  # 20240101 may be a number
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def _as_numbers(found: Sequence[Any]) -> NewCoordinate | None:
    for kind in (int, float):
        try:
            if any(isinstance(one, float) for one in found) and kind is int:
                continue
            return NewCoordinate(np.array([kind(one) for one in found], f"{kind.__name__}64"), {})
        except (ValueError, TypeError, OverflowError):
            continue
    return None
