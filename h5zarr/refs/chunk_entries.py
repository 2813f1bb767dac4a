"""What stands under the keys of chunks: their bytes, or where those are."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import NoneType
from typing import NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from h5zarr.errors import MalformedFile
from h5zarr.hierarchy import TO_THE_END, Json
from h5zarr.refs.chunk_keys import Below, KeyLayout, decode_keys

_BASE64 = "base64:"
_MOST = np.iinfo(np.int64).max

Index: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """Where some chunks of an array are, a row for each. `source` is the number of a row's URL in `urls`."""

    layout: KeyLayout
    index: npt.NDArray[np.int64]
    address: npt.NDArray[np.int64]
    nbytes: npt.NDArray[np.int64]
    source: int | npt.NDArray[np.int32]
    urls: tuple[str, ...]


def decode_entries(below: Below, layout: KeyLayout) -> tuple[Run, Mapping[Index, bytes]]:
    """Return the chunks among the entries below an array: where they are, and the bytes of those that are inline.

    Raises MalformedFile, naming the key, for what is neither.
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
    """Return where chunks are: each value is a URL, alone or with an address and a number of bytes."""
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
    """Return whether all bytes that are referred to can be those of a file."""
    return not len(address) or bool(address.min() >= 0 and nbytes.min() >= 0 and (address <= _MOST - nbytes).all())


def _number(urls: list[str]) -> tuple[tuple[str, ...], int | npt.NDArray[np.int32]]:
    """Return the distinct URLs, and the number of each of `urls`, which is one for all if they are the same."""
    if urls.count(urls[0] if urls else "") == len(urls):  # to compare them is faster than to hash them
        return tuple(urls[:1]), 0
    numbers = {url: number for number, url in enumerate(dict.fromkeys(urls))}
    return tuple(numbers), np.array([numbers[url] for url in urls], np.int32)


def _refuse_reference(keys: Sequence[str], values: Sequence[list[Json]]) -> NoReturn:
    """Raise MalformedFile for the first of the values that is no reference; there is one."""
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
    """Return the bytes of a chunk that stand in the file: as they are, or in base64."""
    if not isinstance(value, str):
        raise MalformedFile(f"{key}: a chunk is a text or a reference")
    try:
        return decode_text(value)
    except ValueError as error:
        raise MalformedFile(f"{key}: the bytes of a chunk cannot be decoded: {error}") from None


def decode_text(value: str) -> bytes:
    """Return the bytes that a text stands for. Raises ValueError if it is damaged."""
    if value.startswith(_BASE64):
        return b64decode(value[len(_BASE64) :], validate=True)
    return value.encode()
