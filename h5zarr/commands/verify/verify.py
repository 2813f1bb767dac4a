"""The verify command: open references and source, compare them as a whole, then array by array."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from h5zarr import __version__
from h5zarr.commands.verify.comparers import open_comparer
from h5zarr.commands.verify.comparing import ArrayComparer, Comparer, Planned, Run, Tally, Work
from h5zarr.commands.verify.cube_comparing import CubeComparer
from h5zarr.commands.verify.cube_nodes import ordered_runs, verify_cube_nodes
from h5zarr.commands.verify.differences import Unreadable
from h5zarr.commands.verify.regions import BLOCK_NBYTES
from h5zarr.commands.verify.spreading import compare
from h5zarr.commands.verify.verification_text import difference_lines, verification_counts, verified_lines
from h5zarr.commands.verify.verified_arrays import Verified, verify_array, verify_group
from h5zarr.display import counted, summary_repr
from h5zarr.errors import ArgumentError, MalformedFile, SourceChanged, Unsupported
from h5zarr.io.access import Access
from h5zarr.io.location import Location
from h5zarr.io.source import open_source
from h5zarr.io.unchanged import check_unchanged
from h5zarr.logs import LOG
from h5zarr.opening import Opened, open_hierarchy
from h5zarr.zarr_model.hierarchy import ArrayNode, GroupNode, Json


@dataclass(slots=True, repr=False)
class Verification:
    """The result of a verification. `str()` is the text that `h5zarr verify` prints.

    Attributes
    ----------
    references, source
        What was compared, without secrets in URLs.
    library
        The library that read the source: h5py or netCDF4.
    changed
        How the source differs from the file that was translated; "" if it does not. If it does, nothing was compared.
    arrays, groups
        The result for each array and group, with differences.
    not_found
        Paths that are not in the source.
    seconds
        How long it took.

    Examples
    --------
    >>> import h5zarr
    >>> _ = h5zarr.translate("ocean.nc", "ocean.json")
    >>> sum(array.compared for array in h5zarr.verify("ocean.json").arrays)
    63
    """

    references: str
    source: str
    library: str = ""
    changed: str = ""
    arrays: list[Verified] = field(default_factory=list)
    groups: list[Verified] = field(default_factory=list)
    not_found: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __repr__(self) -> str:
        facts = ["the source has changed"] if self.changed else verification_counts(self)
        return summary_repr("Verification", self.references, *facts)

    def __str__(self) -> str:
        return "\n".join((*difference_lines(self), *verified_lines(self)))

    @property
    def is_right(self) -> bool:
        """Whether nothing differs."""
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
    workers: int | None = 1,
    storage_options: Mapping[str, Any] | None = None,
    anon: bool = False,
    network: Mapping[str, float] | None = None,
    limits: Mapping[str, int] | None = None,
    allow: Sequence[str] = (),
    on_array: Callable[[Verified, int], None] | None = None,
) -> Verification:
    """Compare what Zarr reads through references with what h5py or netCDF4 reads from the file.

    Parameters
    ----------
    references
        References in any container, as a path or URL.
    source
        The file to compare with, by default the one the references were made from.
    sample
        Compare about this share of the chunks of each array, always including the first, the last, some at the edges,
        some missing and some inlined ones. By default all chunks are compared.
    seed
        Which sample: the same seed gives the same chunks.
    group
        The group of `source` that is the root of the references.
    workers
        How many processes compare values; 1 is this process, None is one per processor if there is much to compare.
        The result does not depend on it. Scripts that start processes need `if __name__ == "__main__":`.
    storage_options, anon, network, limits, allow
        How to open references and source, as in `h5zarr.open_store`.
    on_array
        Called with each array when it is done, and the number of arrays.

    Returns
    -------
    Verification
        `is_right` is True if nothing differs.

    Raises
    ------
    H5ZarrError
        Nothing can be compared.

    Examples
    --------
    >>> import h5zarr
    >>> _ = h5zarr.translate("ocean.nc", "ocean.json")
    >>> found = h5zarr.verify("ocean.json")
    >>> found
    <h5zarr.Verification of ocean.json: 6 arrays right, 0 wrong>
    >>> found.is_right
    True
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers is {workers}, but must be at least 1")
    if sample is not None and not 0 < sample <= 1:
        raise ValueError(f"sample is {sample}, but must be above 0 and at most 1")
    started = time.perf_counter()
    access = Access.from_options(storage_options, network, limits, allow, anon=anon)
    opened = open_hierarchy(references, access)
    try:
        location = _find_source(opened, source)
        shown = str(location) if opened.cube is None else counted(len(opened.cube.pieces), "file")
        result = Verification(opened.url, shown)
        result.changed = _find_change(opened)
        if not result.changed:
            work = Work(
                opened=opened,
                source=location,
                access=access,
                root=group.strip("/"),
                share=sample,
                seed=seed,
                block_nbytes=BLOCK_NBYTES,
            )
            with open_comparer(work) as comparer:
                _compare(result, comparer, workers, on_array)
        result.seconds = time.perf_counter() - started
        return result
    finally:
        opened.close()


def _find_source(opened: Opened, source: str | os.PathLike[str] | None) -> Location:
    """Return the file to compare with; the first one of a cube."""
    if opened.cube is None:
        return Location.parse(_recorded(opened) if source is None else source)
    if source is not None:
        what = f"{opened.url}: it is joined from {counted(len(opened.cube.pieces), 'file')}, not one"
        raise ArgumentError(what, remedy="Omit the source: the references know all files.")
    for piece in opened.cube.pieces:
        opened.sources.check(piece.url)
    if not opened.cube.pieces:
        raise MalformedFile(f"{opened.url}: the layout of the cube names no files")
    return Location.parse(opened.cube.pieces[0].url)


def _recorded(opened: Opened) -> str:
    if not opened.sources.urls and opened.source == opened.url:
        raise Unsupported(
            f"{opened.url}: the references do not name the file they were made from",
            remedy="Give it as the second argument.",
        )
    url = opened.sources.urls[0] if opened.sources.urls else opened.source
    opened.sources.check(url)
    return url


def _find_change(opened: Opened) -> str:
    """Return what has changed in the referenced files since the references were made; "" if nothing."""
    for url, expected in zip(opened.sources.urls, opened.sources.expected, strict=False):
        if expected is None:
            continue
        opened.sources.check(url)
        try:
            with open_source(url, opened.sources.access) as source:
                check_unchanged(str(Location.parse(url)), expected, source.identity)
        except SourceChanged as error:
            return str(error)
    return ""


def _compare(
    result: Verification,
    comparer: Comparer | CubeComparer,
    workers: int | None,
    on_array: Callable[[Verified, int], None] | None,
) -> None:
    """Compare metadata, then values, and add what was found to the result."""
    if isinstance(comparer, CubeComparer):
        nodes = verify_cube_nodes(comparer)
        result.groups, result.not_found = nodes.groups, nodes.not_found
        result.arrays = [one.verified for one in nodes.arrays]
        _compare_values(nodes.arrays, ordered_runs(nodes.arrays, comparer), comparer, workers, on_array)
        result.library = comparer.truths.library
        return
    result.library = comparer.truth.library
    planned = _verify_nodes(result, comparer)
    _compare_values(planned, [run for one in planned for run in one.runs], comparer, workers, on_array)


def _verify_nodes(result: Verification, comparer: Comparer) -> list[Planned]:
    """Compare everything but values, and return how to compare those."""
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
        return Verified(path, skipped=f"{truth.library} cannot open this group")
    return verify_group(path, node.attributes, iter(expected))


def _compare_values(
    planned: Sequence[Planned],
    runs: Sequence[Run],
    comparer: ArrayComparer,
    workers: int | None,
    on_array: Callable[[Verified, int], None] | None,
) -> None:
    """Compare values, in this process or in others, and merge the results."""
    count = sum(isinstance(node, ArrayNode) for node in comparer.work.opened.hierarchy.nodes.values())
    done = 0

    def tell(verified: Verified, count: int) -> None:
        nonlocal done
        done += 1
        LOG.info(
            "verify: %d of %d arrays: %s %s", done, count, verified.path, "right" if verified.is_right else "wrong"
        )
        if on_array is not None:
            on_array(verified, count)

    tallies = {one.verified.path: Tally(one.verified, one.runs) for one in planned}
    for tally in tallies.values():
        if tally.is_done:  # there is nothing to compare
            tell(tally.verified, count)
    with closing(compare(runs, comparer, workers, lambda run: tallies[run.path].needs(run))) as found:
        for run, outcome in found:
            tally = tallies[run.path]
            if tally.add(run, outcome):
                tell(tally.verified, count)
