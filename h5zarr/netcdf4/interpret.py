"""Interpret a scanned file as a `Tree`, as netCDF users see its groups, datasets and attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from h5zarr.errors import H5ZarrError, Problem, Unrepresentable
from h5zarr.hdf5.model import Attribute, ChunkedLayout, Dataset, H5File, SpaceKind, VirtualLayout
from h5zarr.netcdf4.attribute_values import interpret_attribute
from h5zarr.netcdf4.element_forms import ElementForm, interpret_element
from h5zarr.netcdf4.elsewhere import Elsewhere, Nowhere
from h5zarr.netcdf4.fill_values import fill_beyond, interpret_fill
from h5zarr.netcdf4.named_file import NamedVariable, Naming
from h5zarr.netcdf4.stored import interpret_stored
from h5zarr.netcdf4.virtual import locate
from h5zarr.tree import AttributeValue, HeldBytes, Storage, StoredChunks, Tree, TreeGroup, Variable

_ALONE = Nowhere()
_HARMLESS = frozenset({"link", "dimension"})  # problems of these kinds leave nothing out that could be shown
_FETCH = "Put the file where the virtual dataset refers to it, then try again."


def interpret_file(file: H5File, naming: Naming, urls: Sequence[str], elsewhere: Elsewhere = _ALONE) -> Tree:
    """Return the tree of a file. `urls` lists this file first, then the files that it refers to.

    Variables that cannot be represented are left out, and listed in `problems`.
    """
    nodes: dict[str, TreeGroup | Variable] = {}
    problems: list[Problem] = list(file.problems)
    warnings: list[Problem] = []
    for problem in naming.problems:
        (warnings if problem.kind in _HARMLESS else problems).append(problem)
    for group in naming.groups:
        nodes[group.path] = TreeGroup(
            attributes=_attributes(group.attributes, file),
            unlimited=tuple([one.name for one in group.dimensions if one.unlimited]),
            notes=group.notes,
        )
        for named in group.variables:
            try:
                nodes[named.path] = interpret_variable(named, elsewhere, warnings)
            except H5ZarrError as error:
                problems.append(Problem.from_error(named.path, error))
    return Tree(nodes=nodes, sources=tuple(urls), problems=tuple(problems), warnings=tuple(warnings))


def interpret_variable(named: NamedVariable, elsewhere: Elsewhere, warnings: list[Problem]) -> Variable:
    """Return a dataset as a variable. Raises Unrepresentable or Unsupported with the reason.

    Missing sources of a virtual dataset are added to `warnings`.
    """
    dataset, shape, dimensions = named.dataset, named.shape, named.dimensions
    form = interpret_element(dataset.datatype)
    name = named.path.rpartition("/")[2]
    storage: Storage
    if dataset.dataspace.kind is SpaceKind.NULL:
        shape, dimensions, storage = (0,), (f"{name}_null",), HeldBytes(b"")
        fill = None
    else:
        located = locate(named.file, dataset, form, elsewhere, shape)
        storage = located.storage
        is_short = shape != dataset.dataspace.shape
        fill = _fill_of_short(dataset, form, storage) if is_short else interpret_fill(dataset, form)
        warnings += [_missing(named.path, source) for source in located.missing]
    return Variable(
        dtype=form.dtype,
        shape=shape + form.shape,
        dimensions=dimensions + tuple(f"{name}_axis_{axis}" for axis in range(len(form.shape))),
        storage=storage,
        fill=fill,
        attributes=_attributes(named.attributes, named.file),
        stored=interpret_stored(named, form),
    )


def _missing(path: str, source: str) -> Problem:
    return Problem(path, "source", f"the source {source} is missing and reads as the fill value", _FETCH)


def _fill_of_short(dataset: Dataset, form: ElementForm, storage: Storage) -> npt.NDArray[Any] | None:
    """Return the fill value of a dataset that is shorter than its dimension. NetCDF reads fill beyond its end.

    Zarr has one fill value for unwritten chunks inside the dataset and for the space beyond its end. So both values
    must be equal, or the dataset must have no unwritten chunks.
    """
    inside, beyond = interpret_fill(dataset, form), fill_beyond(dataset, form)
    zero = np.zeros((), form.dtype)
    same = (zero if inside is None else inside).tobytes() == (zero if beyond is None else beyond).tobytes()
    is_virtual = isinstance(dataset.layout, VirtualLayout) and isinstance(storage, StoredChunks)
    has_gaps = is_virtual or (isinstance(dataset.layout, ChunkedLayout) and not _is_full(dataset, dataset.layout))
    if not same and has_gaps:
        raise Unrepresentable(
            f"unwritten values read as {zero if inside is None else inside}, but as "
            f"{zero if beyond is None else beyond} between the end of the dataset and the end of its dimension; "
            "Zarr has only one fill value for both"
        )
    return beyond


def _is_full(dataset: Dataset, layout: ChunkedLayout) -> bool:
    """Return whether every chunk is stored, and no chunk extends beyond the dataset."""
    counts = [divmod(n, chunk) for n, chunk in zip(dataset.dataspace.shape, layout.chunk_shape, strict=True)]
    return all(rest == 0 for _, rest in counts) and len(layout.chunks) == int(np.prod([count for count, _ in counts]))


def _attributes(attributes: Mapping[str, Attribute], file: H5File) -> dict[str, AttributeValue]:
    return {name: interpret_attribute(attribute, file) for name, attribute in attributes.items()}
