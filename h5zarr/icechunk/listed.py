"""The chunks of an array as Icechunk tells them: in columns, whatever version of it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

NATIVE, VIRTUAL, INLINE = 1, 2, 3  # as icechunk.ChunkType has them


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ListedChunks:
    """A row for each chunk. `kind` says where it is: in the repository, elsewhere, or in `inline`, by its row.

    What is elsewhere is `nbytes` bytes at `address` of the location whose number in `urls` is `source`. What is in the
    repository has only a size here.
    """

    index: npt.NDArray[np.int64]
    kind: npt.NDArray[np.uint8]
    address: npt.NDArray[np.int64]
    nbytes: npt.NDArray[np.int64]
    source: npt.NDArray[np.int32]
    urls: tuple[str, ...]
    inline: Mapping[int, bytes]


def number_locations(locations: Sequence[str]) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """Return each location once, in the order of the rows, and the number of that of each row."""
    numbers = {location: number for number, location in enumerate(dict.fromkeys(locations))}
    return tuple(numbers), np.array([numbers[location] for location in locations], np.int32)


def join_rows(parts: Sequence[ListedChunks]) -> ListedChunks:
    """Return the rows of several parts behind each other; there is at least one."""
    if len(parts) == 1:
        return parts[0]
    numbers = {url: number for number, url in enumerate(dict.fromkeys(url for part in parts for url in part.urls))}
    sources, first = [], 0
    inline: dict[int, bytes] = {}
    for part in parts:
        table = np.array([numbers[url] for url in part.urls] or [0], np.int32)
        sources.append(table[part.source])
        inline |= {first + row: content for row, content in part.inline.items()}
        first += len(part.kind)
    return ListedChunks(
        index=np.concatenate([part.index for part in parts]),
        kind=np.concatenate([part.kind for part in parts]),
        address=np.concatenate([part.address for part in parts]),
        nbytes=np.concatenate([part.nbytes for part in parts]),
        source=np.concatenate(sources),
        urls=tuple(numbers),
        inline=inline,
    )
