"""Compare values in runs: some regions of one array at a time, in any process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, prod
from typing import Any, NamedTuple

import numpy as np

from h5zarr.commands.verify.differences import Unreadable
from h5zarr.commands.verify.opening import Truth
from h5zarr.commands.verify.regions import BLOCK_NBYTES, Chosen, Region, choose
from h5zarr.commands.verify.verified_arrays import Outcome, TrueVariable, Verified, compare_regions
from h5zarr.io.access import USUAL_ACCESS, Access
from h5zarr.io.location import Location
from h5zarr.opening import Opened
from h5zarr.read.decoding import find_decoder
from h5zarr.read.read_arrays import ArrayValues
from h5zarr.zarr_model.grid import RegularGrid
from h5zarr.zarr_model.hierarchy import ArrayNode

_MOST_REGIONS = 1024  # in a run, however small they are


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is compared with what. Other processes that receive it split arrays into the same regions.

    `source` is the file to compare with, and `root` is the group that is the root of the references.
    """

    opened: Opened
    source: Location
    access: Access = USUAL_ACCESS
    root: str = ""
    share: float | None = None
    seed: int = 0
    block_nbytes: int = BLOCK_NBYTES


class Run(NamedTuple):
    """Regions of an array that are compared in sequence: numbers `first` up to `last`, of so many bytes."""

    path: str
    first: int
    last: int
    nbytes: int

    def split(self) -> Iterator[Run]:
        """Yield a run for each region."""
        for number in range(self.first, self.last):
            yield Run(self.path, number, number + 1, self.nbytes // (self.last - self.first))


class Planned(NamedTuple):
    """An array whose metadata was compared, and the runs that will compare its values."""

    verified: Verified
    runs: list[Run]


class ArrayComparer(ABC):
    """Compares arrays with other libraries. Caches the last array. `is_copy`: all of the file is in memory."""

    is_copy = False

    def __init__(self, work: Work) -> None:
        from h5zarr.store import HierarchyStore

        self.work = work
        self._store = HierarchyStore(work.opened)
        self._last: tuple[str, Any, Chosen] | None = None

    def node(self, path: str) -> ArrayNode:
        """Return the references' node of an array."""
        node = self.work.opened.hierarchy.nodes[path]
        assert isinstance(node, ArrayNode)
        return node

    def array(self, path: str) -> Any:
        """Return an array as Zarr reads it, or as h5zarr does if not every version of Zarr knows its chunk grid."""
        import zarr

        node = self.node(path)
        decoder = find_decoder(node, self.work.opened.sources.access.limits)
        if isinstance(node.grid, RegularGrid) or decoder is None:
            return zarr.open_array(self._store, path=path.lstrip("/"), mode="r", zarr_format=3)
        return ArrayValues(path, node, decoder, self.work.opened.sources)

    def plan(self, path: str) -> tuple[list[Run], int]:
        """Return the runs that compare the values of an array, and its total number of chunks."""
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

    @abstractmethod
    def compare(self, run: Run) -> Outcome:
        """Return the outcome of a run."""

    def regions(self, run: Run) -> list[Region]:
        """Return the regions of a run."""
        return self._known(run.path)[1].regions[run.first : run.last]

    def where(self, run: Run) -> str:
        """Return the region that a run begins with."""
        return self.regions(run)[0].where

    def _known(self, path: str) -> tuple[Any, Chosen]:
        """Return an array and the regions of it to compare."""
        if self._last is None or self._last[0] != path:
            work, array = self.work, self.array(path)
            chosen = choose(self.node(path), _element_nbytes(array), work.share, work.seed, work.block_nbytes)
            self._last = path, array, chosen
        return self._last[1:]


class Comparer(ArrayComparer):
    """Compares with an open file."""

    def __init__(self, work: Work, truth: Truth) -> None:
        super().__init__(work)
        self.truth = truth
        self.is_copy = truth.is_copy

    def place(self, path: str) -> str:
        """Return the path of a node in the file."""
        return f"/{self.work.root}{path}" if self.work.root else path

    def variable(self, path: str) -> TrueVariable | None:
        """Return an array as the other library reads it; None if it does not exist. Raises Unreadable."""
        return self.truth.find(self.place(path))

    def compare(self, run: Run) -> Outcome:
        """Return the outcome of a run."""
        array, chosen = self._known(run.path)
        try:
            variable = self.variable(run.path)
        except Unreadable as error:
            return Outcome(skipped=str(error))
        if variable is None:
            return Outcome(error="it is no longer in the file")
        return compare_regions(chosen.regions[run.first : run.last], self.node(run.path), array, variable)


def _element_nbytes(array: Any) -> int:
    nbytes: int = np.dtype(array.dtype).itemsize
    return nbytes


class Tally:
    """Merges the outcomes of an array's runs in array order, whatever order they arrive in."""

    def __init__(self, verified: Verified, runs: list[Run]) -> None:
        self.verified = verified
        self._count = runs[-1].last if runs else 0
        self._reached = 0
        self._end = inf
        self._waiting: dict[int, tuple[int, Outcome]] = {}
        self.is_done = not runs

    def needs(self, run: Run) -> bool:
        """Return whether a run comes before the first known end."""
        return run.first < self._end

    def add(self, run: Run, outcome: Outcome) -> bool:
        """Add the outcome of a run, in array order. Return whether the array is done."""
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
