"""A reference file as it stands: its entries, and the nodes that its metadata tell of, right or wrong.

Nothing is filled in and nothing is refused, but for what is no JSON at all: what is wrong is for the rules to find.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from h5zarr.hierarchy import Json
from h5zarr.refs.chunk_entries import Index, decode_text
from h5zarr.refs.chunk_keys import Below

V3 = "zarr.json"
V2 = (".zarray", ".zgroup", ".zattrs")
CONSOLIDATED_V2 = ".zmetadata"
_METADATA = frozenset({V3, *V2, CONSOLIDATED_V2})


@dataclass(frozen=True, slots=True)
class RawPart:
    """A file with references in Parquet: how many rows it must have and has, or why it cannot be read."""

    name: str
    most: int
    count: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RawNode:
    """A group or an array, as the metadata under `key` have it. `attributes` are None where there are none.

    `below` are the entries below an array, in JSON; `inline` the bytes of those of its chunks that can be told to be
    its chunks. `stub` is what references in Parquet tell fsspec of it besides.
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
        """The last name of the path; that of the root is empty."""
        return self.path.rpartition("/")[2]

    @property
    def group(self) -> str:
        """The path of the group that the node is in."""
        return self.path.rpartition("/")[0] or "/"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RawReferences:
    """All that a reference file says. `document` is the whole of it but for its entries, `nodes` are by path.

    `consolidated` are metadata that were repeated in one place, by key; None if none were.
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
        """Return the nodes that are directly in each group, by the group's path."""
        found: dict[str, list[RawNode]] = {}
        for node in self.nodes.values():
            if node.path != "/":
                found.setdefault(node.group, []).append(node)
        return found


def is_metadata(key: str) -> bool:
    """Return whether metadata stand under `key`."""
    return key.rpartition("/")[2] in _METADATA


def path_above(key: str) -> str:
    """Return the path of the node whose metadata stand under `key`."""
    return "/" + key.rpartition("/")[0]


@dataclass(slots=True)
class Loader:
    """Takes JSON apart, and remembers what is odd about it: names that stand twice, and words for numbers."""

    repeated: list[tuple[str, str]] = field(default_factory=list)
    odd_numbers: dict[str, None] = field(default_factory=dict)

    def load(self, key: str, text: str | bytes) -> Json:
        """Return what a text says. Raises ValueError if it is no JSON."""

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
    """The metadata among the entries, taken apart as far as that can be done."""

    loader: Loader = field(default_factory=Loader)
    objects: dict[str, dict[str, Json]] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    elsewhere: list[str] = field(default_factory=list)

    def add(self, key: str, value: Json) -> None:
        """Take in what stands under the key of metadata."""
        if isinstance(value, list):
            self.elsewhere.append(key)
            return
        if isinstance(value, str):
            try:
                value = self.loader.load(key, decode_text(value).decode())
            except ValueError as error:
                self.unreadable[key] = f"the metadata are no JSON: {error}"
                return
        if isinstance(value, dict):
            self.objects[key] = value
        else:
            self.unreadable[key] = "the metadata are no JSON object"
