"""The interface that every container of references implements, and the values that it takes and returns.

A container is one way to store references: a JSON file, a directory of Parquet files, an Icechunk repository. Each has
a folder here and a row in `registry.py`. All other code asks the registry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from h5zarr.containers.provenance import Provenance
from h5zarr.io.location import Location
from h5zarr.io.network import USUAL_NETWORK, NetworkPolicy
from h5zarr.io.source import Identity
from h5zarr.limits import Limits
from h5zarr.zarr_model.hierarchy import Hierarchy
from h5zarr.zarr_model.metadata import EncodedNode

if TYPE_CHECKING:  # only needed to read references
    from h5zarr.containers.references import References
    from h5zarr.read.sources import Sources


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """How a new version is committed to a container that keeps versions: the branch, and the commit message."""

    branch: str = "main"
    message: str | None = None

    @classmethod
    def of(cls, branch: str | None, message: str | None) -> Commit | None:
        """Return the commit that the user described, or None if they gave neither a branch nor a message."""
        return None if branch is None and message is None else cls(branch=branch or cls().branch, message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Where references are written. `storage_options` are for the container, `source_options` for the source files.

    `overwrite`: replace what is there even if it is not references. `replaces`: replace only this state, and raise
    OutputChanged if somebody else has written since. `network` bounds how long a server may take to answer.
    """

    location: Location
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    source_options: Mapping[str, Any] | None = field(default=None, repr=False)
    commit: Commit | None = None
    overwrite: bool = False
    replaces: Identity | None = None
    network: NetworkPolicy = USUAL_NETWORK

    @property
    def shown(self) -> str:
        """The location without secrets."""
        return str(self.location)


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A hierarchy without what its Zarr version and container cannot hold; its problems name what was removed.

    `nodes` are the same nodes encoded for that version, by path. `container` is None until one is chosen.
    """

    hierarchy: Hierarchy
    zarr_format: int
    nodes: Mapping[str, EncodedNode] = field(repr=False)
    container: Container | None = None


class Content(Enum):
    """What is at a location."""

    NOTHING = "nothing"
    OWN = "own"  # references that h5zarr wrote
    REFERENCES = "references"  # written by another tool, in a form that h5zarr also writes
    OTHER = "other"
    UNKNOWN = "unknown"  # it cannot be read


@dataclass(frozen=True, slots=True)
class State:
    """The current state of a location. `identity` distinguishes this content from later content; None if unknown.

    For content that is not references, `what` describes it, and `is_replaceable` says whether `overwrite=True` may
    replace it. `sources` are the files that the references were made from, for containers that keep versions and only
    replace references to the same files; None for other containers.
    """

    content: Content
    identity: Identity | None = None
    what: str = ""
    is_replaceable: bool = True
    sources: Sequence[str] | None = None


ABSENT = State(Content.NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The facts about a container that other code needs.

    `formats` are the names that `index` offers, each with the suffix of its outputs. `mark` precedes the locations of
    this container, such as `icechunk+`. `title` is its name in errors, with the article. `packages` names the package
    that outputs with each suffix need; the suffix "" stands for all outputs.
    """

    name: str
    title: str
    formats: Mapping[str, str]
    mark: str = ""
    zarr_formats: tuple[int, ...] = (2, 3)
    is_directory: bool = False
    has_commits: bool = False
    allows_empty_urls: bool = False
    packages: Mapping[str, str] = field(default_factory=dict)


class Container(Protocol):
    """One way to store references. Implementations import what they need inside the methods, so that rows load fast."""

    traits: Traits

    def recognise_output(self, location: Location) -> bool:
        """Return whether the name of an output asks for this container."""

    def recognise_input(self, location: Location) -> bool:
        """Return whether this container is at a location, by its name or by the content of a local directory."""

    def recognise_bytes(self, head: bytes) -> bool:
        """Return whether a file that starts with these bytes is such a container; never for a directory."""

    def check(self, output: Output, source: Location) -> None:
        """Raise OutputError for anything that is certain to fail, before anything is read from `source`."""

    def fit(self, hierarchy: Hierarchy) -> Hierarchy:
        """Return what the container can hold. New problems name what is left out, new warnings what changes."""

    def write(self, fitted: Fitted, provenance: Provenance, output: Output) -> None:
        """Write everything in `fitted`, all or nothing. Raises OutputError."""

    def read(self, location: Location, sources: Sources, at: str | None) -> tuple[References, Sources]:
        """Return the references at a location, and `sources` with the container's additions.

        `at` is the branch, tag or snapshot of a container that keeps versions.
        """

    def decode(self, content: bytes, name: str, limits: Limits) -> References:
        """Return the references in the bytes of a file; `name` is for errors. Directories raise Unsupported."""

    def state(self, output: Output, *, briefly: bool = False) -> State:
        """Return what is at the place of an output, and its identity.

        `briefly`: read no more than the first bytes. References of other tools are then OTHER.
        """
