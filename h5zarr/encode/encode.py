"""Encode a `Tree` as a `Hierarchy`: Zarr metadata, and the locations of the chunks.

This module does not read. One step for each source requests the bytes to inline for all arrays at once, so the number
of rounds does not grow with the number of arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from h5zarr.encode.arrays import encode_array
from h5zarr.encode.attributes import attribute_type, encode_attribute, number_type
from h5zarr.encode.inlining import Budget, Inlining
from h5zarr.encode.runs import CHUNK_NBYTES
from h5zarr.errors import H5ZarrError, Problem
from h5zarr.io.steps import Step, attempt, together
from h5zarr.tree import AttributeValue, StoredChunks, StoredRun, Tree, TreeGroup, Variable
from h5zarr.zarr_model.data_types import describe
from h5zarr.zarr_model.hierarchy import (
    USUAL_FORM,
    ArrayNode,
    AttributeType,
    GroupNode,
    GroupRecord,
    Hierarchy,
    Json,
    KeptValue,
    VariableRecord,
)
from h5zarr.zarr_model.missing import FILL_VALUE, NotAFillValue, encode_missing
from h5zarr.zarr_model.withheld import why_withheld

FILL_VALUE_KIND = "fill value"
"""The kind of warning about a `_FillValue` that is only in the record of the group, not among the attributes."""

WITHHELD_KIND = "attribute"
"""The kind of warning about other attributes that are only in the record."""

Encoded: TypeAlias = dict[str, ArrayNode | H5ZarrError]


class Encoding:
    """The encoding of one tree: run each of the `steps` on its source, then call `finish` with the results."""

    def __init__(
        self, tree: Tree, inlining: Inlining, chunk_nbytes: int = CHUNK_NBYTES, *, joinable: bool = False
    ) -> None:
        self._tree = tree
        self._chunk_nbytes = chunk_nbytes
        self._joinable = joinable
        self._warnings: list[Problem] = list(tree.warnings)
        self._records: dict[str, dict[str, VariableRecord]] = {}  # by group, then by variable
        self._budget = Budget(inlining)
        variables = {path: node for path, node in tree.nodes.items() if isinstance(node, Variable)}
        self._attributes = {path: self._encode_attributes(path, variable) for path, variable in variables.items()}
        # Arrays that can only be inlined come first, while the budget is still large.
        order = sorted(variables, key=lambda path: isinstance(variables[path].storage, StoredChunks | StoredRun))
        by_source: dict[int, list[str]] = {}
        for path in order:
            by_source.setdefault(_source_of(variables[path]), []).append(path)
        self.steps: Mapping[int, Step[Encoded]] = {
            source: self._encode_all({path: variables[path] for path in paths}) for source, paths in by_source.items()
        }

    def _encode_all(self, variables: Mapping[str, Variable]) -> Step[Encoded]:
        choices: dict[str, Any] = {"chunk_nbytes": self._chunk_nbytes, "joinable": self._joinable}
        steps = [
            attempt(
                encode_array(variable, self._attributes[path], is_coordinate(path, variable), self._budget, **choices)
            )
            for path, variable in variables.items()
        ]
        return dict(zip(variables, (yield from together(steps)), strict=True))

    def finish(self, encoded: Mapping[str, ArrayNode | H5ZarrError]) -> Hierarchy:
        """Return the hierarchy. Arrays that could not be encoded are listed in its problems."""
        nodes: dict[str, GroupNode | ArrayNode] = {}
        problems = list(self._tree.problems)
        for path, node in self._tree.nodes.items():
            if isinstance(node, TreeGroup):
                nodes[path] = self._encode_group(path, node)
                continue
            array = encoded[path]
            if isinstance(array, H5ZarrError):
                problems.append(Problem.from_error(path, array))
            else:
                nodes[path] = array
        return Hierarchy(nodes=nodes, urls=self._tree.sources, problems=tuple(problems), warnings=tuple(self._warnings))

    def _encode_group(self, path: str, group: TreeGroup) -> GroupNode:
        attributes: dict[str, Json] = {}
        types: dict[str, AttributeType] = {}
        for name, value in group.attributes.items():
            attributes[name] = encode_attribute(value)
            if (found := attribute_type(value)) is not None:
                types[name] = found
        record = GroupRecord(
            types=types,
            notes=group.notes,
            unlimited=group.unlimited,
            is_classic=group.is_classic,
            variables=self._records.get(path, {}),
        )
        is_known = path in self._records or record != GroupRecord()
        return GroupNode(attributes=attributes, record=record if is_known else None)

    def _encode_attributes(self, path: str, variable: Variable) -> dict[str, Json]:
        """Return a variable's attributes as JSON, `_FillValue` in xarray's form, and record what JSON loses."""
        attributes: dict[str, Json] = {}
        types: dict[str, AttributeType] = {}
        kept: KeptValue | None = None
        withheld: dict[str, KeptValue] = {}
        for name, value in variable.attributes.items():
            if name == FILL_VALUE:
                try:
                    attributes[name] = encode_missing(value, variable.dtype, variable.attributes.get("_Unsigned"))
                    if number_type(value) != variable.dtype.name:
                        kept = _keep(value)
                except NotAFillValue as error:
                    self._warn_dropped(path, value, variable, error)
                    kept = _keep(value)
                if kept is not None and kept.type is None and (found := attribute_type(value)) is not None:
                    types[name] = found
            else:
                encoded = encode_attribute(value)
                if why := why_withheld(name, encoded, variable.attributes):
                    self._warn_withheld(path, name, encoded, why)
                    withheld[name] = _keep(value)
                else:
                    attributes[name] = encoded
                has_type = name in withheld and withheld[name].type is not None
                if (found := attribute_type(value)) is not None and not has_type:
                    types[name] = found
        if types or withheld or kept is not None or variable.stored is not None:
            parent, _, own_name = path.rpartition("/")
            form = variable.stored or USUAL_FORM
            record = VariableRecord(types=types, fill_value=kept, withheld=withheld, form=form)
            self._records.setdefault(parent or "/", {})[own_name] = record
        return attributes

    def _warn_dropped(self, path: str, value: AttributeValue, variable: Variable, error: NotAFillValue) -> None:
        shown = encode_attribute(value)
        message = f"{FILL_VALUE} {shown!r} of a variable of type {describe(variable.dtype)} is left out: {error}"
        self._warnings.append(
            Problem(path, FILL_VALUE_KIND, message, "Mask these values yourself, if the data need it.")
        )

    def _warn_withheld(self, path: str, name: str, shown: Json, why: str) -> None:
        message = f"{name} {shown!r} is left out: {why}, and xarray would open no variable of the group"
        remedy = 'Open the references with engine="h5zarr" to see it.'
        self._warnings.append(Problem(path, WITHHELD_KIND, message, remedy))


def _keep(value: AttributeValue) -> KeptValue:
    """Return an attribute that the record keeps, because the attributes in Zarr cannot hold it as it is."""
    return KeptValue(value=encode_attribute(value), type=number_type(value))


def is_coordinate(path: str, variable: Variable) -> bool:
    """Return whether a variable is one-dimensional and has the name of its dimension."""
    return variable.dimensions == (path.rpartition("/")[2],)


def _source_of(variable: Variable) -> int:
    """Return the number of the source that a variable is read from; 0 if it is not read."""
    source = getattr(variable.storage, "source", 0)
    return source if isinstance(source, int) else 0
