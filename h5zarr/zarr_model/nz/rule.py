"""The type of a rule of NZ-1.0, and of its verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from h5zarr.zarr_model.nz.nodes import NzNodes


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a rule: where, what, and what to do."""

    path: str
    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A rule that could not be checked: where, and why."""

    path: str
    why: str


Verdict: TypeAlias = Violation | Unchecked


@dataclass(frozen=True, slots=True, kw_only=True)
class NzRule:
    """One rule: MUST or SHOULD."""

    name: str
    is_must: bool
    section: str
    asks: str
    check: Callable[[NzNodes], Iterator[Verdict]]
