"""What keeps the arrays of several files from being joined along an axis. Equal differences are reported once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TypeAlias

from h5zarr.commands.combine.axis_choice import Axis, find_axis
from h5zarr.commands.combine.facts import ArrayFacts, FileFacts
from h5zarr.display import counted, summary_repr
from h5zarr.zarr_model.hierarchy import Json

ByFile: TypeAlias = Mapping[int, str]
"""A value by file number."""
Groups: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
"""A value and the numbers of the files that have it."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value, and the files that have it, in the order given."""

    text: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Something that is not the same in all files, for all `paths` alike. The most common of `values` comes first."""

    rule: str
    paths: tuple[str, ...]
    values: tuple[Value, ...]
    remedy: str

    def to_json(self) -> dict[str, Json]:
        """Return this difference for machines."""
        values = [{"value": value.text, "files": list(value.files)} for value in self.values]
        return {"rule": self.rule, "paths": list(self.paths), "values": values, "remedy": self.remedy}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Combining:
    """Whether `count` files can be combined, along an existing axis or a new one."""

    axis: Axis
    count: int
    differences: tuple[Difference, ...]

    def __repr__(self) -> str:
        files = counted(self.count, "file")
        return summary_repr(
            "Combining", f"{files} along {self.axis.name}", counted(len(self.differences), "difference")
        )

    @property
    def is_possible(self) -> bool:
        return not self.differences

    def to_json(self) -> dict[str, Json]:
        """Return this comparison for machines."""
        return {
            "along": self.axis.name,
            "new_axis": self.axis.is_new,
            "because": self.axis.reason,
            "files": self.count,
            "possible": self.is_possible,
            "differences": [difference.to_json() for difference in self.differences],
        }


def compare_files(files: Sequence[tuple[str, FileFacts]], along: str | None = None) -> Combining:
    """Return what keeps files, joined in this order, from being combined `along` a dimension.

    By default the dimension is the unlimited one, else time, else the only one whose length differs, else a new one.
    """
    axis = find_axis([facts for _, facts in files], along)
    names = [name for name, _ in files]
    grouped: dict[tuple[str, Groups], list[str]] = {}
    remedies: dict[tuple[str, Groups], str] = {}
    for path in dict.fromkeys(path for _, facts in files for path in (*facts.arrays, *facts.refused)):
        for rule, remedy, values in _compare_path(path, [facts for _, facts in files], axis):
            key = rule, _group(values)
            remedies.setdefault(key, remedy)
            grouped.setdefault(key, []).append(path)
    order = {rule: number for number, (rule, _) in reversed(list(enumerate(grouped)))}
    differences = tuple(
        Difference(
            rule=key[0],
            paths=tuple(grouped[key]),
            values=tuple(Value(text, tuple(names[number] for number in numbers)) for text, numbers in key[1]),
            remedy=remedies[key],
        )
        for key in sorted(grouped, key=lambda key: order[key[0]])  # groups equal differences
    )
    return Combining(axis=axis, count=len(files), differences=differences)


def _group(values: ByFile) -> Groups:
    """Return the files grouped by value, the most common value first."""
    found: dict[str, list[int]] = {}
    for number, text in values.items():
        found.setdefault(text, []).append(number)
    return tuple(
        (text, tuple(numbers)) for text, numbers in sorted(found.items(), key=lambda one: (-len(one[1]), one[1][0]))
    )


def _compare_path(path: str, files: Sequence[FileFacts], axis: Axis) -> Iterator[tuple[str, str, ByFile]]:
    """Yield each rule that the arrays at a path break, with a remedy and the value of each file."""
    there = {number: facts.arrays[path] for number, facts in enumerate(files) if path in facts.arrays}
    values = {number: _presence(path, facts) for number, facts in enumerate(files)}
    if len(there) < len(files) and there:
        yield "presence", "Exclude the variable with exclude=[PATH], or add it to the files that lack it.", values
    dimensions = {number: f"({', '.join(array.dimension_names)})" for number, array in there.items()}
    if len(set(dimensions.values())) > 1:
        yield "dimensions", "Give the axes the same names and order in all files.", dimensions
        common = Counter(dimensions.values()).most_common(1)[0][0]
        there = {number: array for number, array in there.items() if dimensions[number] == common}
    if there:
        yield from _compare_arrays(path, there, axis)
        yield from _find_open_chunks(there, axis, last=len(files) - 1)


def _presence(path: str, facts: FileFacts) -> str:
    return "present" if path in facts.arrays else "refused" if path in facts.refused else "missing"


def _compare_arrays(path: str, arrays: Mapping[int, ArrayFacts], axis: Axis) -> Iterator[tuple[str, str, ByFile]]:
    """Yield the rules that arrays with the same dimensions break."""
    names = next(iter(arrays.values())).dimension_names
    joined = axis.is_new or axis.name in names
    for position, name in enumerate(names):
        if name != axis.name or axis.is_new:
            lengths = {number: str(array.shape[position]) for number, array in arrays.items()}
            if len(set(lengths.values())) > 1:
                yield f"length of {name}", "Only one axis may differ in length; name it with along=DIMENSION.", lengths
    for rule, remedy, value in _RULES:
        values = {number: text for number, array in arrays.items() if (text := value(array)) is not None}
        if len(set(values.values())) > 1:
            yield rule, remedy, values
    if joined:
        yield from _compare_chunks(path, arrays)
    else:
        values = {number: array.content for number, array in arrays.items() if array.content is not None}
        if len(set(values.values())) > 1:
            yield "coordinate values", "Interpolate to the same coordinate, or combine along this axis.", values


def _compare_chunks(path: str, arrays: Mapping[int, ArrayFacts]) -> Iterator[tuple[str, str, ByFile]]:
    """Yield differences in how the chunks of joined arrays are stored. Inlined chunks can be adapted."""
    stored = {number: array for number, array in arrays.items() if array.is_referenced}
    shapes = {number: _shape_text(array.chunk_shape) for number, array in stored.items()}
    if len(set(shapes.values())) > 1:
        common = Counter(array.chunk_shape for array in stored.values()).most_common(1)[0][0]
        yield "chunk shape", f"Store it in the same chunks: {_repack(path, common)}", shapes
    codecs = {number: array.codecs for number, array in stored.items()}
    if len(set(codecs.values())) > 1:
        what = "Repack all of them with the same filters: h5repack -f SHUF -f GZIP=4 in.h5 out.h5"
        yield "codecs", what, codecs


def _find_open_chunks(arrays: Mapping[int, ArrayFacts], axis: Axis, last: int) -> Iterator[tuple[str, str, ByFile]]:
    """Yield the files whose last chunk along the axis is partial, unless nothing is appended to it."""
    if axis.is_new or axis.name is None:
        return
    values, lengths = {}, 0
    for number, array in arrays.items():
        length = array.length_along(axis.name)
        if length is None or not array.is_referenced:
            continue
        chunk = array.chunk_shape[array.dimension_names.index(axis.name)]
        if number != last:
            lengths = gcd(lengths, length)
            if length % chunk:
                values[number] = f"{length} in chunks of {chunk}"
    if values:
        what = f"Choose chunks whose length along {axis.name} divides that of all files but the last: {lengths}"
        yield "last chunk", f"{what}, or a divisor of it, with h5repack -l", values


def _shape_text(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))})"


def _repack(path: str, chunk_shape: tuple[int, ...]) -> str:
    return f"h5repack -l {path}:CHUNK={'x'.join(map(str, chunk_shape))} in.h5 out.h5"


def _attribute(name: str) -> Callable[[ArrayFacts], str]:
    return lambda array: array.meaning[name]


_UNPACK = "Combine unpacked values, as xarray decodes them file by file, or pack all files with the same numbers."
_RULES: tuple[tuple[str, str, Callable[[ArrayFacts], str | None]], ...] = (
    ("data type", "Write the variable with the same type in all files.", lambda array: array.data_type),
    ("fill value", "Write the variable with the same HDF5 fill value.", lambda array: array.fill_value),
    ("_FillValue", "Write the variable with the same _FillValue in all files.", _attribute("_FillValue")),
    ("scale_factor", _UNPACK, _attribute("scale_factor")),
    ("add_offset", _UNPACK, _attribute("add_offset")),
    (
        "units",
        "Convert to the same units. Times: load them with xarray, which decodes each file by itself, or "
        "cdo setreftime,2000-01-01,00:00:00,days in.nc out.nc",
        _attribute("units"),
    ),
    ("calendar", "Convert to the same calendar: cdo setcalendar,standard in.nc out.nc", _attribute("calendar")),
)
