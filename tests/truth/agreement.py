"""The result of every comparison in this folder: what was compared, what differs, and which differences are allowed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.truth.differences import Reason
from tests.truth.same import same, short


@dataclass
class Agreement:
    """How a file agrees with an oracle. `compared` are the paths of variables; an allowed difference is still one."""

    compared: set[str] = field(default_factory=set)
    differing: set[str] = field(default_factory=set)
    differences: list[str] = field(default_factory=list)
    allowed: set[tuple[str, Reason]] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)  # of other things that were compared
    problems: list[str] = field(default_factory=list)  # that h5zarr names
    refused: str = ""  # why h5zarr does not read the file
    unopened: dict[str, str] = field(default_factory=dict)  # why the oracle does not open a group, or the file: ""

    @property
    def identical(self) -> int:
        return len(self.compared - self.differing)


class Comparing:
    """Fills an `Agreement`."""

    def __init__(self, found: Agreement) -> None:
        self.found = found

    def differ(self, place: str, what: str, reason: Reason | None = None) -> None:
        """Record a difference at a path, or at a path, `@` and an attribute. With a reason it is allowed."""
        self.found.differing.add(place.partition("@")[0])
        if reason is None:
            self.found.differences.append(f"{place}: {what}")
        else:
            self.found.allowed.add((place, reason))

    def equal(self, place: str, what: str, mine: Any, their: Any, reason: Reason | None = None) -> bool:
        """Record a difference unless two values are the same in type and value. Return whether they are."""
        is_same = same(mine, their)
        if not is_same:
            self.differ(place, f"{what} {short(mine)} is {short(their)}", reason)
        return is_same

    def all_equal(self, place: str, mine: Mapping[str, Any], their: Mapping[str, Any]) -> bool:
        """Record each fact that differs. Return whether there is none."""
        found = [self.equal(place, name, mine.get(name), their.get(name)) for name in mine.keys() | their.keys()]
        return all(found)
