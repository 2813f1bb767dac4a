"""What references contain, without the locations of their chunks: nodes, numbers of chunks, sources, and the cube."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from h5zarr.commands.inspect.dimensions import Dimension, parent
from h5zarr.commands.inspect.part import Part, join, select_paths
from h5zarr.containers.container import Container
from h5zarr.containers.cube_layout import CubeLayout
from h5zarr.containers.references import References
from h5zarr.display import counted
from h5zarr.errors import MalformedFile, Problem
from h5zarr.opening import recorded_identities
from h5zarr.zarr_model.codecs import split_crop
from h5zarr.zarr_model.data_types import find_type
from h5zarr.zarr_model.grid import ChunkGrid
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Hierarchy, Json, VariableRecord
from h5zarr.zarr_model.joined import PARTS_GROUP, JoinedVariable

_MOST_NBYTES = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkCounts:
    """Numbers of chunks of an array. `nbytes` are those of referenced chunks as stored; None if unknown.

    `plain_nbytes` would be their size without compression; None if the size of an element varies.
    """

    total: int
    referenced: int
    inlined: int
    nbytes: int | None
    inlined_nbytes: int
    plain_nbytes: int | None

    @property
    def missing(self) -> int:
        """How many chunks are neither referenced nor inlined, and read as the fill value."""
        return self.total - self.referenced - self.inlined


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedArray:
    """The metadata of an array, its record, and its numbers of chunks."""

    grid: ChunkGrid
    data_type: Json
    codecs: tuple[Json, ...]
    fill_value: Json
    dimension_names: tuple[str, ...]
    attributes: Mapping[str, Json]
    record: VariableRecord
    chunks: ChunkCounts

    @property
    def shape(self) -> tuple[int, ...]:
        return self.grid.shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Numbers of groups, variables, and referenced, inlined and missing chunks."""

    groups: int
    variables: int
    referenced: int
    inlined: int
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedReferences:
    """The part of references that was asked for.

    `urls` are the files that they refer to, perhaps with secrets, and `sizes` their recorded sizes. `variables` are
    arrays, and variables that consist of several arrays; these are in `arrays`, too, with the paths of the parts.
    `members` are the numbers of members of all groups. `version` is that of the h5zarr that wrote the references; None
    if another tool did.
    """

    url: str
    container: str
    version: str | None
    urls: Sequence[str] = field(repr=False)
    sizes: tuple[int | None, ...]
    cube: CubeLayout | None = field(repr=False)
    groups: Mapping[str, GroupNode] = field(repr=False)
    variables: Mapping[str, InspectedArray | JoinedVariable] = field(repr=False)
    arrays: Mapping[str, InspectedArray] = field(repr=False)
    dimensions: Mapping[str, tuple[Dimension, ...]] = field(repr=False)
    members: Mapping[str, int] = field(repr=False)
    part: Part = field(repr=False)
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]

    def facts(self) -> tuple[str, str]:
        """Return what the references are, in a few words."""
        kind = f"references to {counted(len(self.urls), 'file')}"
        if self.cube is not None:
            kind = f"cube of {counted(len(self.cube.pieces), 'file')}"
        return kind, counted(len(self.variables.keys() - self.parameter_paths()), "variable")

    def parts_of(self, path: str, variable: JoinedVariable) -> list[InspectedArray | None]:
        """Return the arrays of a variable that consists of several; None for one that does not exist."""
        return [self.arrays.get(join(parent(path), part.path)) for part in variable.parts]

    def parameter_paths(self) -> frozenset[str]:
        """Return the paths of variables that only have the parameters of others, such as a scale_factor per file."""
        return frozenset(
            join(parent(path), name)
            for path, found in self.variables.items()
            if isinstance(found, InspectedArray)
            for name in found.record.parameters.values()
        )

    def totals(self) -> Totals:
        """Return how much there is in the chosen part."""
        counts = [one.chunks for one in self.arrays.values()]
        return Totals(
            groups=sum(path in self.part.whole or path in self.part.frames for path in self.groups),
            variables=len(self.variables),
            referenced=sum(one.referenced for one in counts),
            inlined=sum(one.inlined for one in counts),
            missing=sum(one.missing for one in counts),
        )


def inspect_references(
    references: References, container: Container, url: str, pattern: str | None, depth: int | None
) -> InspectedReferences:
    """Return what references contain. Manifests that are read late are read only for arrays in the chosen part."""
    hierarchy, provenance = references.hierarchy, references.provenance
    joined = dict(_find_joined(hierarchy))
    visible = _find_visible(hierarchy, joined)
    part = select_paths(visible, pattern, depth)
    variables: dict[str, InspectedArray | JoinedVariable] = {}
    arrays: dict[str, InspectedArray] = {}
    for path, found in visible.items():
        if path not in part.whole or isinstance(found, GroupNode):
            continue
        for place in [path] if isinstance(found, ArrayNode) else _part_paths(path, found):
            if isinstance(node := hierarchy.nodes.get(place), ArrayNode):
                arrays[place] = _inspect_array(node, hierarchy.record_of(place))
        variables[path] = arrays[path] if isinstance(found, ArrayNode) else found
    groups = {path: node for path, node in visible.items() if isinstance(node, GroupNode)}
    urls = hierarchy.urls
    identities = recorded_identities(urls, provenance)
    if not urls and provenance is not None:  # everything is inlined
        urls = tuple(state.url for state in provenance.sources)
        identities = tuple(state.identity for state in provenance.sources)
    return InspectedReferences(
        url=url,
        container=container.traits.title,
        version=None if provenance is None else provenance.version,
        urls=urls,
        sizes=tuple(None if one is None else one.nbytes for one in identities),
        cube=None if provenance is None else provenance.cube,
        groups=groups,
        variables=variables,
        arrays=arrays,
        dimensions=_find_dimensions(groups, visible),
        members=Counter(parent(path) for path in visible if path != "/"),
        part=part,
        problems=hierarchy.problems,
        warnings=hierarchy.warnings,
    )


def _find_joined(hierarchy: Hierarchy) -> Iterator[tuple[str, JoinedVariable]]:
    """Yield the variables that consist of several arrays, with their paths."""
    for path, node in hierarchy.nodes.items():
        if isinstance(node, GroupNode) and node.record is not None:
            for name, variable in node.record.joined.items():
                if join(path, name) not in hierarchy.nodes:
                    yield join(path, name), variable


def _find_visible(
    hierarchy: Hierarchy, joined: Mapping[str, JoinedVariable]
) -> dict[str, GroupNode | ArrayNode | JoinedVariable]:
    """Return the nodes to show, parents before children. A variable of several arrays is where the first of them is."""
    hidden = _parts_prefixes(hierarchy, joined)
    owners = {place: path for path, variable in joined.items() for place in _part_paths(path, variable)}
    found: dict[str, GroupNode | ArrayNode | JoinedVariable] = {}
    for path, node in hierarchy.nodes.items():
        if path in owners:
            found.setdefault(owners[path], joined[owners[path]])
        elif not f"{path}/".startswith(hidden):
            found[path] = node
    return found | {path: variable for path, variable in joined.items() if path not in found}


def _parts_prefixes(hierarchy: Hierarchy, joined: Mapping[str, JoinedVariable]) -> tuple[str, ...]:
    """Return how the paths of parts begin. Their common group is hidden, too, unless it has something else."""
    prefixes = []
    for folder in dict.fromkeys(map(parent, joined)):
        common = join(folder, PARTS_GROUP) + "/"
        own = [f"{common}{path.rpartition('/')[2]}/" for path in joined if parent(path) == folder]
        inside = [f"{path}/" for path in hierarchy.nodes if path.startswith(common)]
        prefixes += [common] if all(path.startswith(tuple(own)) for path in inside) else own
    return tuple(prefixes)


def _part_paths(path: str, variable: JoinedVariable) -> list[str]:
    return [join(parent(path), part.path) for part in variable.parts]


def _inspect_array(node: ArrayNode, record: VariableRecord | None) -> InspectedArray:
    return InspectedArray(
        grid=node.grid,
        data_type=node.data_type,
        codecs=node.codecs,
        fill_value=node.fill_value,
        dimension_names=node.dimension_names,
        attributes=node.attributes,
        record=record or VariableRecord(),
        chunks=count_chunks(node),
    )


def count_chunks(node: ArrayNode) -> ChunkCounts:
    """Return the numbers of chunks of an array. Chunks outside of its grid do not count."""
    manifest, grid = node.manifest, node.grid
    inside = grid.contains(manifest.index)
    index, nbytes = manifest.index[inside], manifest.nbytes[inside]
    inlined = [
        len(content)
        for at, content in manifest.inline.items()
        if all(0 <= number < count for number, count in zip(at, grid.grid_shape, strict=True))
    ]
    return ChunkCounts(
        total=grid.chunk_count,
        referenced=len(index),
        inlined=len(inlined),
        nbytes=None if (nbytes < 0).any() else int(nbytes.sum()),  # some are whole files of unknown size
        inlined_nbytes=sum(inlined),
        plain_nbytes=_plain_nbytes(node, index),
    )


def _plain_nbytes(node: ArrayNode, index: npt.NDArray[np.int64]) -> int | None:
    """Return the size of these chunks without compression; None if elements have no fixed size, or it is absurd."""
    kind = find_type(node.data_type)
    if isinstance(kind, str) or kind.nbytes is None:
        return None
    try:
        stored_shape, _ = split_crop(node.codecs, len(node.shape))
    except MalformedFile:
        return None
    elements = np.ones(len(index))
    for number, axis in enumerate(node.grid.axes):
        with np.errstate(over="ignore"):  # metadata are untrusted
            elements *= axis.stored_lengths(index[:, number]) if stored_shape is None else stored_shape[number]
    total = float(elements.sum()) * kind.nbytes
    return int(total) if total < _MOST_NBYTES else None


def _find_dimensions(
    groups: Mapping[str, GroupNode], visible: Mapping[str, GroupNode | ArrayNode | JoinedVariable]
) -> dict[str, tuple[Dimension, ...]]:
    """Return the dimensions of each group: those that its variables have, and no group above has with this length."""
    used: dict[str, dict[tuple[str, int], None]] = {path: {} for path in groups}
    variables = [(path, found) for path, found in visible.items() if not isinstance(found, GroupNode)]
    for path, found in sorted(variables, key=lambda one: -len(one[1].shape)):  # the order of the largest variable
        pairs = zip(found.dimension_names, found.shape, strict=True)
        used.setdefault(parent(path), {}).update(dict.fromkeys(pairs))
    made: dict[str, tuple[Dimension, ...]] = {}
    for path in groups:
        above = _folders(path)
        known = {(one.name, one.length) for folder in above[1:] for one in made.get(folder, ())}
        records = [groups[folder].record for folder in above if folder in groups]
        unlimited = {name for record in records if record is not None for name in record.unlimited}
        made[path] = tuple(
            Dimension(
                path=join(path, name),
                name=name,
                length=length,
                unlimited=name in unlimited,
                label="",
                has_variable=join(path, name) in visible,
            )
            for name, length in used[path]
            if (name, length) not in known
        )
    return made


def _folders(path: str) -> list[str]:
    """Return the path of a group, and of all groups above it."""
    found = [path]
    while found[-1] != "/":
        found.append(parent(found[-1]))
    return found
