"""Rules and findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from h5zarr.commands.validate.raw import RawNode, RawReferences
from h5zarr.zarr_model.hierarchy import Json


class Level(Enum):
    """How strict a rule is: breaking a MUST is an error, breaking a SHOULD is a warning."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Found:
    """A place where a rule is broken: the path of a node or the key of an entry, what is wrong, and the remedy."""

    path: str
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A place where a rule could not be checked, and why."""

    path: str
    reason: str


JSON, PARQUET = "json", "parquet"  # the containers that rules exist for
Result: TypeAlias = Found | Unchecked
Check: TypeAlias = Callable[[RawReferences], Iterator[Result]]
NodeCheck: TypeAlias = Callable[[RawNode], Iterator[Result]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. `section` is that of the specification; `asks` states the rule in a sentence.

    `formats` are the Zarr versions it applies to, `containers` the kinds of reference file.
    """

    id: str
    level: Level
    section: str
    asks: str
    check: Check
    formats: tuple[int, ...] = (3,)
    containers: tuple[str, ...] = (JSON, PARQUET)

    @property
    def family(self) -> str:
        """The specification of the rule: the part of its id before the slash."""
        return self.id.partition("/")[0]

    def applies_to(self, raw: RawReferences) -> bool:
        """Return whether the rule applies to such a file."""
        return raw.zarr_format in self.formats and raw.container in self.containers


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A broken rule, and where."""

    path: str
    rule: str
    level: Level
    section: str
    message: str
    remedy: str

    @classmethod
    def of(cls, rule: Rule, found: Found) -> Finding:
        """Return a finding of `rule`."""
        return cls(
            path=found.path,
            rule=rule.id,
            level=rule.level,
            section=rule.section,
            message=found.message,
            remedy=found.remedy,
        )

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"

    def to_json(self) -> dict[str, Json]:
        """Return the finding for machines."""
        return {
            "path": self.path,
            "rule": self.rule,
            "level": self.level.value,
            "section": self.section,
            "message": self.message,
            "remedy": self.remedy,
        }


def each_node(check: NodeCheck) -> Check:
    """Return a check of every node."""

    def check_all(raw: RawReferences) -> Iterator[Result]:
        for node in raw.nodes.values():
            yield from check(node)

    return check_all


def each_array(check: NodeCheck) -> Check:
    """Return a check of every array."""

    def check_all(raw: RawReferences) -> Iterator[Result]:
        for node in raw.arrays():
            yield from check(node)

    return check_all
