"""From a `Tree` to a `Hierarchy`: Zarr metadata, and where the chunks are.

Nothing is read here. What must be inlined is asked for by steps, one for each source, which all arrays share: so the
number of rounds does not grow with the number of arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from h5zarr.encode.arrays import encode_array
from h5zarr.encode.attributes import attribute_type, encode_attribute, number_type
from h5zarr.encode.missing import NotAFillValue, describe, encode_missing
from h5zarr.encode.options import Budget, Inlining
from h5zarr.encode.runs import CHUNK_NBYTES
from h5zarr.encode.stored import encode_stored
from h5zarr.errors import H5ZarrError, Problem
from h5zarr.hierarchy import ArrayNode, GroupNode, Hierarchy, Json
from h5zarr.io.steps import Step, attempt, together
from h5zarr.tree import AttributeValue, StoredChunks, StoredForm, StoredRun, Tree, TreeGroup, Variable

FILL_VALUE = "_FillValue"
FILL_VALUE_KIND = "fill value"
"""The kind of warning that a `_FillValue` is left out of the attributes: it is in the record of types."""
TYPES = "_nc_attribute_types"
"""The attribute of a group that tells the types of attributes: xarray hides names that begin with `_nc` on groups."""
STORED = "_nc_encoding"
"""The attribute of a group that tells how the file stores its variables."""

Encoded: TypeAlias = dict[str, ArrayNode | H5ZarrError]


class Encoding:
    """A tree on its way to a hierarchy: run the `steps`, each on its own source, then `finish` with their results."""

    def __init__(
        self, tree: Tree, inlining: Inlining, chunk_nbytes: int = CHUNK_NBYTES, *, joinable: bool = False
    ) -> None:
        self._tree = tree
        self._chunk_nbytes = chunk_nbytes
        self._joinable = joinable
        self._warnings: list[Problem] = list(tree.warnings)
        self._types: dict[str, dict[str, Json]] = {}  # by group, then by variable; "" is the group itself
        self._forms: dict[str, dict[str, StoredForm]] = {}  # by group, then by variable
        self._budget = Budget(inlining)
        variables = {path: node for path, node in tree.nodes.items() if isinstance(node, Variable)}
        self._attributes = {path: self._encode_attributes(path, variable) for path, variable in variables.items()}
        # What can only be inlined comes first, while much may still be inlined.
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
        """Return the hierarchy; an array that could not be encoded is named among the problems."""
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
        attributes, own = {}, {}
        for name, value in group.attributes.items():
            attributes[name] = encode_attribute(value)
            if (found := attribute_type(value)) is not None:
                own[name] = found
        types = self._types.get(path, {}) | ({"": own} if own else {})
        if types:
            attributes[TYPES] = types
        if (record := encode_stored(group, self._forms.get(path))) is not None:
            attributes[STORED] = record
        return GroupNode(attributes=attributes)

    def _encode_attributes(self, path: str, variable: Variable) -> dict[str, Json]:
        """Return a variable's attributes as JSON, `_FillValue` in xarray's form."""
        attributes: dict[str, Json] = {}
        types: dict[str, Json] = {}
        parent, _, own_name = path.rpartition("/")
        if variable.stored is not None:
            self._forms.setdefault(parent or "/", {})[own_name] = variable.stored
        for name, value in variable.attributes.items():
            if name == FILL_VALUE:
                try:
                    attributes[name] = encode_missing(value, variable.dtype, variable.attributes.get("_Unsigned"))
                    if number_type(value) != variable.dtype.name:
                        types[name] = _keep(value)
                except NotAFillValue as error:
                    types[name] = self._warn_dropped(path, value, variable, error)
            else:
                attributes[name] = encode_attribute(value)
                if (found := attribute_type(value)) is not None:
                    types[name] = found
        if types:
            self._types.setdefault(parent or "/", {})[own_name] = types
        return attributes

    def _warn_dropped(self, path: str, value: AttributeValue, variable: Variable, error: NotAFillValue) -> Json:
        """Return what is kept of a `_FillValue` that is left out, in the record of types."""
        shown = encode_attribute(value)
        message = f"{FILL_VALUE} {shown!r} of a variable of type {describe(variable.dtype)} is left out: {error}"
        self._warnings.append(
            Problem(path, FILL_VALUE_KIND, message, "Mask these values yourself, if the data need it.")
        )
        return _keep(value)


def _keep(value: AttributeValue) -> Json:
    """Return what the record of types says of a `_FillValue` that does not stand among the attributes as it is."""
    return {"value": encode_attribute(value), "type": number_type(value) or "text"}


def is_coordinate(path: str, variable: Variable) -> bool:
    """True for a variable of one axis that is named like it."""
    return variable.dimensions == (path.rpartition("/")[2],)


def _source_of(variable: Variable) -> int:
    """Return the number of the source that a variable is read from; the first, where nothing is read."""
    source = getattr(variable.storage, "source", 0)
    return source if isinstance(source, int) else 0
