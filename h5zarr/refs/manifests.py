"""Manifests of the chunks that were found, and the numbers of their URLs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.hierarchy import Manifest
from h5zarr.refs.chunk_entries import Index, Run
from h5zarr.refs.provenance import Provenance

_MOST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class Chunks:
    """The chunks of an array: where they are, in row-major order, and the bytes of those that are inline."""

    run: Run
    inline: Mapping[Index, bytes]

    def to_manifest(self, numbers: Mapping[str, int]) -> Manifest:
        """Return the manifest, in which `numbers` has the number of each URL."""
        run = self.run
        table = np.array([numbers[url] for url in run.urls], np.int32)
        if isinstance(run.source, int):
            source: int | npt.NDArray[np.int32] = int(table[run.source]) if len(table) else 0
        else:
            source = table[run.source]
        return Manifest(index=run.index, address=run.address, nbytes=run.nbytes, source=source, inline=self.inline)


def join_runs(runs: Sequence[Run], inline: Mapping[Index, bytes]) -> Chunks:
    """Return all chunks of one array, which has at least one run. URLs are numbered in the order of the chunks.

    Raises MalformedFile if a chunk occurs twice.
    """
    run = runs[0] if len(runs) == 1 else append_runs(runs)
    try:
        order = _row_major_order(run.index)
        if inline and len(run.index):
            held = np.array(list(inline), np.int64).reshape(len(inline), run.layout.rank)
            _row_major_order(np.concatenate([run.index, held]))
    except _Twins:
        raise MalformedFile(f"{run.layout.prefix}: a chunk is there twice") from None
    run = run if order is None else _reorder(run, order)
    return Chunks(_number_as_they_come(run), {index: inline[index] for index in sorted(inline)})


def arrange_urls(urls: Iterable[str], provenance: Provenance | None) -> tuple[tuple[str, ...], Mapping[str, int]]:
    """Return all URLs in the order of their numbers, and the number of each of `urls`.

    Without provenance they keep their order. With it, they take that of the files that were read, and those that
    nothing refers to have a number, too. The first file may go by another URL: the one that readers were to use.
    """
    arranged = [source.url for source in provenance.sources] if provenance else []
    free: dict[str, list[int]] = {}
    for place, shown in enumerate(arranged):
        free.setdefault(shown, []).append(place)
    numbers: dict[str, int] = {}
    others = []
    for url in urls:
        if places := free.get(url):
            numbers[url] = places.pop(0)
        else:
            others.append(url)
    if arranged and 0 not in numbers.values() and others:
        numbers[others.pop(0)] = 0
    for url in others:
        numbers[url] = len(arranged)
        arranged.append(url)
    for url, number in numbers.items():
        arranged[number] = url
    return tuple(arranged), numbers


class _Twins(Exception):
    """A row occurs twice."""


def append_runs(runs: Sequence[Run]) -> Run:
    """Return runs of one array behind each other; there is at least one."""
    numbers = {url: number for number, url in enumerate(dict.fromkeys(url for run in runs for url in run.urls))}
    sources = []
    for run in runs:
        table = np.array([numbers[url] for url in run.urls] or [0], np.int32)
        sources.append(table[np.broadcast_to(run.source, len(run.address))])
    return replace(
        runs[0],
        index=np.concatenate([run.index for run in runs]),
        address=np.concatenate([run.address for run in runs]),
        nbytes=np.concatenate([run.nbytes for run in runs]),
        source=np.concatenate(sources),
        urls=tuple(numbers),
    )


def _reorder(run: Run, order: npt.NDArray[np.intp]) -> Run:
    """Return the rows of `run` in the given order."""
    return replace(
        run,
        index=run.index[order],
        address=run.address[order],
        nbytes=run.nbytes[order],
        source=run.source if isinstance(run.source, int) else run.source[order],
    )


def _row_major_order(index: npt.NDArray[np.int64]) -> npt.NDArray[np.intp] | None:
    """Return the order in which rows are in row-major order, or None if they are. Raises _Twins if two are the same."""
    if len(index) < 2:
        return None
    extents = [int(largest) + 1 for largest in index.max(axis=0)] if index.shape[1] else []
    if prod(extents) > _MOST:
        order = np.lexsort(index.T[::-1])
        if not np.diff(index[order], axis=0).any(axis=1).all():
            raise _Twins
        return order
    strides = np.array([prod(extents[axis + 1 :]) for axis in range(len(extents))], np.int64)
    places = index @ strides
    if (np.diff(places) > 0).all():
        return None
    order = np.argsort(places, kind="stable")
    if not np.diff(places[order]).all():
        raise _Twins
    return order


def _number_as_they_come(run: Run) -> Run:
    """Return `run` with its URLs numbered in the order of its rows, and without those that no row has."""
    if isinstance(run.source, int):
        return replace(run, source=0, urls=run.urls[run.source : run.source + 1] if len(run.address) else ())
    used, first = np.unique(run.source, return_index=True)
    used = used[np.argsort(first)]
    urls = tuple(run.urls[number] for number in used.tolist())
    if len(used) < 2:
        return replace(run, source=0, urls=urls)
    table = np.zeros(len(run.urls), np.int32)
    table[used] = np.arange(len(used), dtype=np.int32)
    return replace(run, source=table[run.source], urls=urls)
