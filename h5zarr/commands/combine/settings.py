"""How differences between files are resolved: what the user chose, and the outcome for each variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from h5zarr.commands.combine.cube_axes import Axes
from h5zarr.commands.combine.times import CommonTimes
from h5zarr.display import shortened
from h5zarr.encode.inlining import Budget
from h5zarr.errors import ArgumentError
from h5zarr.zarr_model.hierarchy import Json

ON_DUPLICATE = ("refuse", "first", "last", "newest")
CONSTANT = ("refuse", "first", "along")
ATTRIBUTES = ("first", "drop-conflicts", "strict")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the user chose; see `h5zarr.combine`."""

    on_duplicate: str = "refuse"
    constant: str = "refuse"
    attributes: str = "first"

    def __post_init__(self) -> None:
        for name, known in (("on_duplicate", ON_DUPLICATE), ("constant", CONSTANT), ("attributes", ATTRIBUTES)):
            if (value := getattr(self, name)) not in known:
                raise ArgumentError(f"{name} is {value!r}, but must be one of {', '.join(known)}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Context:
    """What joining a variable needs to know about the cube."""

    axes: Axes
    choices: Choices
    times: Mapping[str, CommonTimes]
    budget: Budget
    paths: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableOutcome:
    """What became of a variable: `how` in one word, and notes that say why, with the files that caused it.

    `how` is "constant", "joined", "inlined", "parts" (several arrays, which only engine="h5zarr" joins) or "refused".
    """

    path: str
    how: str
    notes: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Json]:
        """Return this outcome for machines."""
        return {"path": self.path, "how": self.how, "notes": list(self.notes)}


def some_names(members: Sequence[Any], limit: int = 3) -> str:
    """Return the names of the files of some members: the first few, and how many more there are."""
    names = list(dict.fromkeys(one.piece.name for one in members))
    shown = ", ".join(shortened(name, 120) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
