"""Compare the arrays of a cube with the files that they are joined from, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from h5zarr.commands.verify.aligned_truth import align_variable
from h5zarr.commands.verify.comparing import ArrayComparer, Run, Work
from h5zarr.commands.verify.cube_places import Cell, find_stored
from h5zarr.commands.verify.cube_truths import Truths, owner_of_bounds, time_units
from h5zarr.commands.verify.cube_values import CubeArray, FileVariable, cell_differs, missing_differs, slots_differ
from h5zarr.commands.verify.differences import Difference, Unreadable, Values
from h5zarr.commands.verify.regions import Region
from h5zarr.commands.verify.verified_arrays import Outcome
from h5zarr.containers.cube_layout import CubeLayout
from h5zarr.errors import H5ZarrError, MalformedFile
from h5zarr.zarr_model.axis_layout import find_layout
from h5zarr.zarr_model.hierarchy import ArrayNode


class CubeComparer(ArrayComparer):
    """Compares with the files of a cube. They are opened when they are needed."""

    def __init__(self, work: Work, layout: CubeLayout) -> None:
        super().__init__(work)
        self.layout = layout
        self.truths = Truths(layout, work.access, work.root)
        self.stored = find_stored(work.opened.hierarchy, layout)
        self._arrays: dict[str, CubeArray] = {}

    def close(self) -> None:
        """Close all files."""
        self.truths.close()

    def compare(self, run: Run) -> Outcome:
        """Return the outcome of a run."""
        compared = 0
        for region in self.regions(run):
            try:
                difference = self._region_differs(run.path, region)
            except Unreadable as error:
                return Outcome(compared, skipped=str(error))
            except H5ZarrError as error:
                return Outcome(compared, error=str(error))
            except Exception as error:  # from zarr, a codec or storage: in any case the references cannot be read
                what = f"{region.where} cannot be read through the references: {type(error).__name__}: {error}"
                return Outcome(compared, error=what)
            if difference:
                return Outcome(compared, difference=difference)
            compared += region.chunk_count
        return Outcome(compared)

    def _region_differs(self, path: str, region: Region) -> str:
        """Return how a region differs from its files, with the name of the file; "" if it does not."""
        array = self._describe(path)
        whole = self.array(path)
        values = np.asarray(whole[region.part] if whole.shape else whole[...])
        origin = tuple(one.start for one in region.part)
        for cell in array.stored.cells(region.part):
            inside = tuple(
                slice(one.start - start, one.stop - start) for one, start in zip(cell.inner, origin, strict=True)
            )
            if text := self._cell_differs(array, cell, values[inside] if inside else values):
                return text if array.stored.boxes is None else f"a part of {array.stored.variable}: {text}"
        return ""

    def _cell_differs(self, array: CubeArray, cell: Cell, values: Values) -> str:
        """Return how a cell differs from all files that may have it; "" if it equals one.

        A variable without an axis is the one of the first file.
        """
        first: tuple[Difference, int] | None = None
        for file in self.files(array, cell):
            difference = cell_differs(array, cell, values, file)
            if difference is None:
                return ""
            first = first or (difference, file.number)
            if cell.pieces is None:
                break
        if first is not None:
            return f"{first[0]}, in {self.truths.name(first[1])}"
        layout = find_layout(self.layout.recipe.get("along"), array.stored.variable.rpartition("/")[2])
        if layout is not None and array.stored.variable in self.layout.axes and array.times is not None:
            slots, units = layout.lay_out(array.times.calendar)
            expected = slots[cell.start[0] : cell.start[0] + len(values)]
            difference = slots_differ(values, expected, array.times, units)
            return "" if difference is None else str(difference.moved(cell.start))
        missing = missing_differs(array, values, cell)
        return "" if missing is None else str(missing)

    def files(self, array: CubeArray, cell: Cell) -> Iterator[FileVariable]:
        """Yield the variable in each file that has this part of it."""
        path = array.stored.variable
        owner = owner_of_bounds(path, self.work.opened.hierarchy.nodes)
        numbers = range(len(self.layout.pieces)) if cell.pieces is None else cell.pieces
        for number in numbers:
            variable = self.truths.find(number, path)
            if variable is None or variable.is_empty:
                continue
            attributes = dict(variable.attributes())
            of_owner = {} if owner is None else self.truths.attributes(number, owner)
            own = {dimension: axis.lengths.get(number, 0) for dimension, axis in array.stored.axes.items()}
            yield FileVariable(
                number=number,
                variable=align_variable(variable, array.node, own),
                attributes=attributes,
                times=time_units(attributes, of_owner),
                lengths=self._lengths(array, number),
            )

    def _lengths(self, array: CubeArray, number: int) -> dict[int, int]:
        """Return the lengths of the axes of an array in a file, as far as it has their coordinates."""
        found = {}
        for dimension, axis in array.stored.axes.items():
            coordinate = self.truths.find(number, axis.path)
            if coordinate is not None and len(coordinate.own_shape) == 1:
                found[dimension] = coordinate.own_shape[0]
        return found

    def describe(self, path: str) -> CubeArray:
        """Return an array and what its numbers mean. Raises MalformedFile if the references contradict themselves."""
        stored, nodes = self.stored[path], self.work.opened.hierarchy.nodes
        owner = nodes.get(owner_of_bounds(stored.variable, nodes) or "")
        times = time_units(stored.node.attributes, {} if owner is None else owner.attributes)
        record = self.work.opened.hierarchy.record_of(path)
        parameters: dict[str, Any] = {}
        axis = 0
        for attribute, name in ({} if record is None else record.parameters).items():
            at = f"{path.rpartition('/')[0]}/{name}"
            node = nodes.get(at)
            if not isinstance(node, ArrayNode) or len(node.shape) != 1:
                raise MalformedFile(f"{at}: the values of {attribute} for each file are missing")
            axis = stored.node.dimension_names.index(node.dimension_names[0])
            parameters[attribute] = np.asarray(self.array(at)[...])
            if len(parameters[attribute]) != stored.node.shape[axis]:
                raise MalformedFile(f"{at}: it does not have a value for each element of {path}")
        return CubeArray(stored=stored, times=times, parameters=parameters, parameter_axis=axis)

    def _describe(self, path: str) -> CubeArray:
        if path not in self._arrays:
            self._arrays[path] = self.describe(path)
        return self._arrays[path]
