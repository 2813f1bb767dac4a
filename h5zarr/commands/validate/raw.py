"""A raw reference file: its entries, and the nodes its metadata describe, right or wrong.

Nothing is filled in, and only invalid JSON is refused: finding mistakes is up to the rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from h5zarr.containers.chunk_runs import Index, decode_text
from h5zarr.zarr_model.chunk_keys import Below
from h5zarr.zarr_model.hierarchy import Json

V3 = "zarr.json"
V2 = (".zarray", ".zgroup", ".zattrs")
CONSOLIDATED_V2 = ".zmetadata"
_METADATA = frozenset({V3, *V2, CONSOLIDATED_V2})


@dataclass(frozen=True, slots=True)
class RawPart:
    """A Parquet file of references: its required and actual row counts, or why it cannot be read."""

    name: str
    most: int
    count: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RawNode:
    """A group or an array, as described by the metadata under `key`. `attributes` is None if there are none.

    `below` holds the entries below an array, in JSON. `inline` holds the bytes of its inlined chunks, as far as they
    are recognisable. `stub` is what references in Parquet state for fsspec in addition.
    """

    path: str
    key: str
    metadata: Mapping[str, Json]
    attributes: Json
    is_array: bool
    below: Below = field(default_factory=Below)
    inline: Mapping[Index, bytes] = field(default_factory=dict)
    parts: tuple[RawPart, ...] = ()
    stub: Json = None

    @property
    def name(self) -> str:
        """The last name of the path; empty for the root."""
        return self.path.rpartition("/")[2]

    @property
    def group(self) -> str:
        """The path of the node's parent group."""
        return self.path.rpartition("/")[0] or "/"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RawReferences:
    """The content of a reference file. `document` is all of it except its entries; `nodes` are by path.

    `consolidated` holds consolidated metadata by key; None if there are none.
    """

    zarr_format: int
    container: str
    document: Mapping[str, Json]
    nodes: Mapping[str, RawNode]
    entries: Mapping[str, Json] = field(default_factory=dict)
    stray: tuple[str, ...] = ()
    consolidated: Json = None
    only_consolidated: tuple[str, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    elsewhere: tuple[str, ...] = ()
    repeated: tuple[tuple[str, str], ...] = ()
    odd_numbers: tuple[str, ...] = ()

    def arrays(self) -> Iterator[RawNode]:
        """Yield the arrays."""
        return (node for node in self.nodes.values() if node.is_array)

    def groups(self) -> Iterator[RawNode]:
        """Yield the groups."""
        return (node for node in self.nodes.values() if not node.is_array)

    def members(self) -> dict[str, list[RawNode]]:
        """Return the direct members of each group, by the group's path."""
        found: dict[str, list[RawNode]] = {}
        for node in self.nodes.values():
            if node.path != "/":
                found.setdefault(node.group, []).append(node)
        return found


def is_metadata(key: str) -> bool:
    """Return whether `key` is a metadata key."""
    return key.rpartition("/")[2] in _METADATA


def path_above(key: str) -> str:
    """Return the path of the node whose metadata are under `key`."""
    return "/" + key.rpartition("/")[0]


@dataclass(slots=True)
class Loader:
    """Parses JSON, and records its oddities: duplicate names and non-finite numbers."""

    repeated: list[tuple[str, str]] = field(default_factory=list)
    odd_numbers: dict[str, None] = field(default_factory=dict)

    def load(self, key: str, text: str | bytes) -> Json:
        """Return the parsed text. Raises ValueError if it is not JSON."""

        def collect(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
            found = dict(pairs)
            if len(found) < len(pairs):
                names = [name for name, _ in pairs]
                self.repeated += [(key, name) for name in found if names.count(name) > 1][:10]
            return found

        def number(word: str) -> float:
            self.odd_numbers[key] = None
            return float(word)

        try:
            return json.loads(text, object_pairs_hook=collect, parse_constant=number)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None


@dataclass(slots=True)
class Metadata:
    """The metadata among the entries, parsed as far as possible."""

    loader: Loader = field(default_factory=Loader)
    objects: dict[str, dict[str, Json]] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    elsewhere: list[str] = field(default_factory=list)

    def add(self, key: str, value: Json) -> None:
        """Add the entry of a metadata key."""
        if isinstance(value, list):
            self.elsewhere.append(key)
            return
        if isinstance(value, str):
            try:
                value = self.loader.load(key, decode_text(value).decode())
            except ValueError as error:
                self.unreadable[key] = f"the metadata are not valid JSON: {error}"
                return
        if isinstance(value, dict):
            self.objects[key] = value
        else:
            self.unreadable[key] = "the metadata are not a JSON object"
