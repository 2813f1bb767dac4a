"""Comparing values in runs: some parts of one array at a time, in whatever process it is asked for."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf, prod
from typing import Any, NamedTuple

import numpy as np

from h5zarr.hierarchy import ArrayNode
from h5zarr.read.opening import Opened
from h5zarr.verifying.arrays import Outcome, TrueVariable, Verified, compare_regions
from h5zarr.verifying.differences import Unreadable
from h5zarr.verifying.opening import Truth, open_truth
from h5zarr.verifying.regions import BLOCK_NBYTES, Chosen, choose

_MOST_REGIONS = 1024  # in a run, however small they are


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is compared with what. It can be sent to other processes, where it gives the same parts of arrays.

    `source` is the file to compare with, and `root` the group of it that is the root of the references.
    """

    opened: Opened
    source: str = field(repr=False)
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    root: str = ""
    share: float | None = None
    seed: int = 0
    block_nbytes: int = BLOCK_NBYTES


class Run(NamedTuple):
    """Parts of an array that are compared one after the other: from number `first` up to `last`, of so many bytes."""

    path: str
    first: int
    last: int
    nbytes: int

    def split(self) -> Iterator[Run]:
        """Yield a run for each of its parts."""
        for number in range(self.first, self.last):
            yield Run(self.path, number, number + 1, self.nbytes // (self.last - self.first))


class Comparer:
    """Compares with an open file. It remembers the array that it was last asked about."""

    def __init__(self, work: Work, truth: Truth) -> None:
        import zarr

        from h5zarr.store import HierarchyStore

        self.work = work
        self.truth = truth
        self._group = zarr.open_group(HierarchyStore(work.opened), mode="r", zarr_format=3)
        self._last: tuple[str, Any, Chosen] | None = None

    def node(self, path: str) -> ArrayNode:
        """Return what the references say of an array."""
        node = self.work.opened.hierarchy.nodes[path]
        assert isinstance(node, ArrayNode)
        return node

    def array(self, path: str) -> Any:
        """Return an array as Zarr reads it."""
        return self._group[path.lstrip("/")]

    def place(self, path: str) -> str:
        """Return where a node is in the file."""
        return f"/{self.work.root}{path}" if self.work.root else path

    def variable(self, path: str) -> TrueVariable | None:
        """Return an array as the other library reads it; None where there is none. Raises Unreadable."""
        return self.truth.find(self.place(path))

    def plan(self, path: str) -> tuple[list[Run], int]:
        """Return the runs in which the values of an array are compared, and how many chunks it has in all."""
        array, chosen = self._known(path)
        runs: list[Run] = []
        first = nbytes = 0
        for number, region in enumerate(chosen.regions, 1):
            nbytes += _element_nbytes(array) * prod(one.stop - one.start for one in region.part)
            is_last = number == len(chosen.regions)
            if nbytes >= self.work.block_nbytes or number - first == _MOST_REGIONS or is_last:
                runs.append(Run(path, first, number, nbytes))
                first, nbytes = number, 0
        return runs, chosen.total

    def compare(self, run: Run) -> Outcome:
        """Return what becomes of a run."""
        array, chosen = self._known(run.path)
        try:
            variable = self.variable(run.path)
        except Unreadable as error:
            return Outcome(skipped=str(error))
        if variable is None:
            return Outcome(error="it is not in the file any more")
        return compare_regions(chosen.regions[run.first : run.last], self.node(run.path), array, variable)

    def where(self, run: Run) -> str:
        """Return which part of its array a run begins with."""
        return self._known(run.path)[1].regions[run.first].where

    def _known(self, path: str) -> tuple[Any, Chosen]:
        """Return an array, and what is compared of it."""
        if self._last is None or self._last[0] != path:
            work, array = self.work, self.array(path)
            chosen = choose(self.node(path), _element_nbytes(array), work.share, work.seed, work.block_nbytes)
            self._last = path, array, chosen
        return self._last[1:]


def _element_nbytes(array: Any) -> int:
    nbytes: int = np.dtype(array.dtype).itemsize
    return nbytes


@contextmanager
def open_comparer(work: Work) -> Iterator[Comparer]:
    """Open the file with another library, and what is needed to compare with it. Raises H5ZarrError."""
    with open_truth(work.source, work.storage_options) as truth, warnings.catch_warnings():
        # Zarr says of some codecs and types that other implementations may lack them.
        warnings.filterwarnings("ignore", module=r"zarr\.")
        yield Comparer(work, truth)


class Tally:
    """Puts what becomes of the runs of an array together, in its order, in whatever order they are done."""

    def __init__(self, verified: Verified, runs: list[Run]) -> None:
        self.verified = verified
        self._count = runs[-1].last if runs else 0
        self._reached = 0
        self._end = inf
        self._waiting: dict[int, tuple[int, Outcome]] = {}
        self.is_done = not runs

    def needs(self, run: Run) -> bool:
        """Return whether a run is before the first end that is known."""
        return run.first < self._end

    def add(self, run: Run, outcome: Outcome) -> bool:
        """Count a run in, when all before it are. Return whether that has the array done."""
        self._waiting[run.first] = run.last, outcome
        if outcome.is_end:
            self._end = min(self._end, run.first)
        was_done = self.is_done
        while not self.is_done and self._reached in self._waiting:
            self._reached, one = self._waiting.pop(self._reached)
            self._take(one)
            self.is_done = one.is_end or self._reached == self._count
        return self.is_done and not was_done

    def _take(self, outcome: Outcome) -> None:
        self.verified.compared += outcome.compared
        self.verified.differences += [outcome.difference] if outcome.difference else []
        self.verified.skipped = outcome.skipped
        self.verified.error = outcome.error
