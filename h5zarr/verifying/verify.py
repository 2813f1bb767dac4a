"""The hallway of a verification: references and source are opened, first compared as a whole, then array by array."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from h5zarr import __version__
from h5zarr.errors import SourceChanged, Unsupported
from h5zarr.hierarchy import ArrayNode, GroupNode, Json
from h5zarr.io.source import open_source
from h5zarr.io.url import display_url
from h5zarr.io.verify import check_unchanged
from h5zarr.limits import USUAL, Limits
from h5zarr.read.opening import Opened, open_hierarchy
from h5zarr.read.sources import options_for
from h5zarr.verifying.arrays import Verified, verify_array, verify_group
from h5zarr.verifying.comparing import Comparer, Run, Tally, Work, open_comparer
from h5zarr.verifying.differences import Unreadable
from h5zarr.verifying.regions import BLOCK_NBYTES
from h5zarr.verifying.spreading import compare


class Planned(NamedTuple):
    """An array of which all but the values was compared, and the runs in which those are."""

    verified: Verified
    runs: list[Run]


@dataclass(slots=True)
class Verification:
    """What a verification found. `changed` says that the source is not the file that the references were made of."""

    references: str
    source: str
    library: str = ""
    changed: str = ""
    arrays: list[Verified] = field(default_factory=list)
    groups: list[Verified] = field(default_factory=list)
    not_found: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_right(self) -> bool:
        return not self.changed and not self.not_found and all(one.is_right for one in (*self.arrays, *self.groups))

    def to_json(self) -> dict[str, Json]:
        """Return the report for machines."""
        return {
            "version": __version__,
            "references": self.references,
            "source": self.source,
            "library": self.library,
            "right": self.is_right,
            "changed": self.changed,
            "arrays": [one.to_json() for one in self.arrays],
            "groups": [one.to_json() for one in self.groups if not one.is_right],
            "not_in_source": self.not_found,
            "seconds": round(self.seconds, 3),
        }


def verify(
    references: str | os.PathLike[str],
    source: str | os.PathLike[str] | None = None,
    *,
    sample: float | None = None,
    seed: int = 0,
    group: str = "/",
    storage_options: Mapping[str, Any] | None = None,
    allow: Sequence[str] = (),
    limits: Limits = USUAL,
    workers: int | None = 1,
    on_array: Callable[[Verified, int], None] | None = None,
) -> Verification:
    """Compare what Zarr reads through references with what h5py, or netCDF4, reads from the file itself.

    `source` is the file to compare with, if not the one that the references were made of; `group` is the group of it
    that is their root. With `sample`, about that share of the chunks of each array is compared, the same for the same
    `seed`; always the first and the last, some at the edges, and some of those that are missing or inlined. `on_array`
    is told of each array when it is done, and how many there are. `allow` and `limits` are as for `h5zarr.open_store`.

    Up to `workers` processes compare the values, and what is found does not depend on how many; 1 is this one. With
    None there is one for each processor, where so much is to be compared that they save time. Scripts that start
    processes need `if __name__ == "__main__":`, since each of those runs the script's other lines, too.

    Raises H5ZarrError where nothing can be compared.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers is {workers}, but must be at least 1")
    if sample is not None and not 0 < sample <= 1:
        raise ValueError(f"sample is {sample}, but must be above 0 and at most 1")
    started = time.perf_counter()
    opened = open_hierarchy(references, storage_options=storage_options, allow=allow, limits=limits)
    try:
        url = os.fspath(source) if source is not None else _recorded(opened)
        result = Verification(opened.url, display_url(url))
        result.changed = _find_change(opened, storage_options or {})
        if not result.changed:
            work = Work(
                opened=opened,
                source=url,
                storage_options=dict(storage_options or {}),
                root=group.strip("/"),
                share=sample,
                seed=seed,
                block_nbytes=BLOCK_NBYTES,
            )
            with open_comparer(work) as comparer:
                result.library = comparer.truth.library
                _compare_values(_verify_nodes(result, comparer), comparer, workers, on_array)
        result.seconds = time.perf_counter() - started
        return result
    finally:
        opened.close()


def _recorded(opened: Opened) -> str:
    if not opened.sources.urls and opened.source == opened.url:
        raise Unsupported(f"{opened.url}: the references do not say which file they are of", remedy="Name it: SOURCE.")
    url = opened.sources.urls[0] if opened.sources.urls else opened.source
    opened.sources.check(url)
    return url


def _find_change(opened: Opened, storage_options: Mapping[str, Any]) -> str:
    """Return what has changed about the files that are referred to since the references were made; "" if nothing."""
    for url, expected in zip(opened.sources.urls, opened.sources.expected, strict=False):
        if expected is None:
            continue
        opened.sources.check(url)
        try:
            with open_source(url, options_for(url, dict(storage_options))) as source:
                check_unchanged(display_url(url), expected, source.identity)
        except SourceChanged as error:
            return str(error)
    return ""


def _verify_nodes(result: Verification, comparer: Comparer) -> list[Planned]:
    """Compare all but values, and return how those are to be compared."""
    planned = []
    for path, node in comparer.work.opened.hierarchy.nodes.items():
        if isinstance(node, GroupNode):
            result.groups.append(_verify_group(path, node, comparer))
            continue
        try:
            variable = comparer.variable(path)
        except Unreadable as error:
            result.arrays.append(Verified(path, skipped=str(error)))
            continue
        if variable is None:
            result.not_found.append(path)
            continue
        verified, has_values = verify_array(path, node, comparer.array(path), variable)
        runs, verified.total = comparer.plan(path) if has_values else ([], 0)
        result.arrays.append(verified)
        planned.append(Planned(verified, runs))
    return planned


def _verify_group(path: str, node: GroupNode, comparer: Comparer) -> Verified:
    truth = comparer.truth
    try:
        expected = list(truth.attributes(comparer.place(path).rstrip("/") or "/"))
    except (KeyError, OSError, RuntimeError, Unreadable):
        return Verified(path, skipped=f"{truth.library} does not open this group")
    return verify_group(path, node.attributes, iter(expected))


def _compare_values(
    planned: Sequence[Planned],
    comparer: Comparer,
    workers: int | None,
    on_array: Callable[[Verified, int], None] | None,
) -> None:
    """Compare values, in this process or in others, and put together what is found."""
    count = sum(isinstance(node, ArrayNode) for node in comparer.work.opened.hierarchy.nodes.values())
    tell = on_array or (lambda verified, count: None)
    tallies = {one.verified.path: Tally(one.verified, one.runs) for one in planned}
    for tally in tallies.values():
        if tally.is_done:  # there is nothing to compare
            tell(tally.verified, count)
    runs = [run for one in planned for run in one.runs]
    with closing(compare(runs, comparer, workers, lambda run: tallies[run.path].needs(run))) as found:
        for run, outcome in found:
            tally = tallies[run.path]
            if tally.add(run, outcome):
                tell(tally.verified, count)
