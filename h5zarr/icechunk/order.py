"""The order of nodes, which Icechunk does not keep: readers of files expect variables as they were written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from h5zarr.hierarchy import Json


def encode_order(paths: Iterable[str]) -> list[int]:
    """Return the place of each path among all of them sorted; nothing where they are sorted already."""
    given = list(paths)
    places = {path: place for place, path in enumerate(sorted(given))}
    order = [places[path] for path in given]
    return [] if order == list(range(len(order))) else order


def restore_order(paths: Iterable[str], order: Json) -> Sequence[str]:
    """Return paths in the order that `encode_order` gave; sorted where that is not an order of as many."""
    found = sorted(paths)
    if not isinstance(order, list) or not all(type(place) is int for place in order):
        return found
    return [found[place] for place in order] if sorted(order) == list(range(len(found))) else found
