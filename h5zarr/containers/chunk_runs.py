"""Chunk references as columns: decode them from entries, join and sort them, and number their URLs."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from types import NoneType
from typing import NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.containers.provenance import Provenance
from h5zarr.errors import MalformedFile
from h5zarr.zarr_model.chunk_keys import Below, KeyLayout, decode_keys
from h5zarr.zarr_model.hierarchy import TO_THE_END, Json, Manifest

_BASE64 = "base64:"
_MOST = np.iinfo(np.int64).max

Index: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """The locations of some chunks of an array, one row each. `source` is the number of a row's URL in `urls`."""

    layout: KeyLayout
    index: npt.NDArray[np.int64]
    address: npt.NDArray[np.int64]
    nbytes: npt.NDArray[np.int64]
    source: int | npt.NDArray[np.int32]
    urls: tuple[str, ...]


def decode_entries(below: Below, layout: KeyLayout) -> tuple[Run, Mapping[Index, bytes]]:
    """Return the chunks among the entries below an array: the referenced and the inlined ones.

    Raises MalformedFile, naming the key, for an entry that is neither.
    """
    chunks, index = decode_keys(below, layout)
    keys, values = chunks.keys, chunks.values
    if set(map(type, values)) <= {list}:
        return _decode_references(keys, values, index, layout), {}
    inline, referred = {}, []
    for row, (key, value) in enumerate(zip(keys, values, strict=True)):
        if type(value) is list:
            referred.append(row)
        else:
            inline[tuple(index[row].tolist())] = _decode_inline(key, value)
    rest = [keys[row] for row in referred], [values[row] for row in referred]
    return _decode_references(*rest, index[referred], layout), inline


def _decode_references(
    keys: Sequence[str], values: Sequence[list[Json]], index: npt.NDArray[np.int64], layout: KeyLayout
) -> Run:
    """Return the locations of chunks. Each value is a URL, alone or with an address and a number of bytes."""
    lengths = set(map(len, values))
    whole = np.empty(0, np.intp)
    if 1 in lengths:
        whole = np.flatnonzero([len(value) == 1 for value in values])
        values = [[*value, 0, 0] if len(value) == 1 else value for value in values]
    if not lengths <= {1, 3}:
        _refuse_reference(keys, values)
    flat = list(chain.from_iterable(values))
    urls, addresses, sizes = flat[0::3], flat[1::3], flat[2::3]
    kinds = set(map(type, urls))
    if not (kinds <= {str, NoneType} and set(map(type, addresses)) | set(map(type, sizes)) <= {int}):
        _refuse_reference(keys, values)
    if NoneType in kinds:
        urls = [url or "" for url in urls]
    try:
        address, nbytes = np.array(addresses, np.int64), np.array(sizes, np.int64)
    except OverflowError:
        _refuse_reference(keys, values)
    if not are_inside(address, nbytes):
        _refuse_reference(keys, values)
    nbytes[whole] = TO_THE_END
    names, source = _number(urls)
    return Run(layout=layout, index=index, address=address, nbytes=nbytes, source=source, urls=names)


def are_inside(address: npt.NDArray[np.int64], nbytes: npt.NDArray[np.int64]) -> bool:
    """Return whether all referenced byte ranges are possible in a file."""
    return not len(address) or bool(address.min() >= 0 and nbytes.min() >= 0 and (address <= _MOST - nbytes).all())


def _number(urls: list[str]) -> tuple[tuple[str, ...], int | npt.NDArray[np.int32]]:
    """Return the distinct URLs, and the number of each of `urls`: a single number if all are the same."""
    if urls.count(urls[0] if urls else "") == len(urls):  # comparing is faster than hashing
        return tuple(urls[:1]), 0
    numbers = {url: number for number, url in enumerate(dict.fromkeys(urls))}
    return tuple(numbers), np.array([numbers[url] for url in urls], np.int32)


def _refuse_reference(keys: Sequence[str], values: Sequence[list[Json]]) -> NoReturn:
    """Raise MalformedFile for the first value that is not a reference; there must be one."""
    wrong = next(key for key, value in zip(keys, values, strict=True) if not _is_reference(value))
    raise MalformedFile(f"{wrong}: a reference is a URL, alone or with an address and a number of bytes")


def _is_reference(value: list[Json]) -> bool:
    if len(value) not in (1, 3) or not isinstance(value[0], str | None):
        return False
    if len(value) == 1:
        return True
    _, address, nbytes = value
    are_numbers = type(address) is int and type(nbytes) is int
    return are_numbers and 0 <= address <= _MOST and 0 <= nbytes <= _MOST - address


def _decode_inline(key: str, value: Json) -> bytes:
    """Return the bytes of an inlined chunk, which is plain text or base64."""
    if not isinstance(value, str):
        raise MalformedFile(f"{key}: a chunk must be a text or a reference")
    try:
        return decode_text(value)
    except ValueError as error:
        raise MalformedFile(f"{key}: the bytes of a chunk cannot be decoded: {error}") from None


def decode_text(value: str) -> bytes:
    """Return the bytes that a text encodes. Raises ValueError if it is damaged."""
    if value.startswith(_BASE64):
        return b64decode(value[len(_BASE64) :], validate=True)
    return value.encode()


@dataclass(frozen=True, slots=True, eq=False)
class Chunks:
    """The chunks of an array: the referenced ones in row-major order, and the inlined ones."""

    run: Run
    inline: Mapping[Index, bytes]

    def to_manifest(self, numbers: Mapping[str, int]) -> Manifest:
        """Return the manifest. `numbers` has the number of each URL."""
        run = self.run
        table = np.array([numbers[url] for url in run.urls], np.int32)
        if isinstance(run.source, int):
            source: int | npt.NDArray[np.int32] = int(table[run.source]) if len(table) else 0
        else:
            source = table[run.source]
        return Manifest(index=run.index, address=run.address, nbytes=run.nbytes, source=source, inline=self.inline)


def join_runs(runs: Sequence[Run], inline: Mapping[Index, bytes]) -> Chunks:
    """Return all chunks of one array, which has at least one run. URLs are numbered in chunk order.

    Raises MalformedFile if a chunk occurs twice.
    """
    run = runs[0] if len(runs) == 1 else append_runs(runs)
    try:
        order = _row_major_order(run.index)
        if inline and len(run.index):
            held = np.array(list(inline), np.int64).reshape(len(inline), run.layout.rank)
            _row_major_order(np.concatenate([run.index, held]))
    except _Twins:
        raise MalformedFile(f"{run.layout.path}: a chunk occurs twice") from None
    run = run if order is None else _reorder(run, order)
    return Chunks(_number_as_they_come(run), {index: inline[index] for index in sorted(inline)})


def arrange_urls(urls: Iterable[str], provenance: Provenance | None) -> tuple[tuple[str, ...], Mapping[str, int]]:
    """Return all URLs in the order of their numbers, and the number of each of `urls`.

    Without provenance they keep their order. With provenance, they follow the order of the files that were read, and
    unreferenced files have a number as well. The first file may have another URL: the one intended for readers.
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
    """Return the runs of one array concatenated; there must be at least one."""
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
    """Return the permutation to row-major order, or None if rows are sorted. Raises _Twins for duplicates."""
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
    """Return `run` with its URLs numbered in row order, without unused URLs."""
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
