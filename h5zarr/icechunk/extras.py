"""What Icechunk does not keep, and a snapshot of h5zarr tells besides: the order of nodes, and which words are numbers.

Without it nothing is wrong, but variables are in another order than in the file, and NaN is text in attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from h5zarr.hierarchy import Json
from h5zarr.icechunk.numbers import read_words


def encode_extras(paths: Iterable[str], words: Mapping[str, Sequence[str]]) -> dict[str, Json]:
    """Return what a snapshot should tell of its nodes, and of attributes whose words are numbers, by path."""
    order = encode_order(paths)
    return {**({"order": order} if order else {}), **({"words": dict(words)} if words else {})}


def restore_nodes(nodes: Mapping[str, Json], told: Json) -> dict[str, Json]:
    """Return metadata by path, in the order and with the numbers that `told` has of them, if it has."""
    extras = told if isinstance(told, dict) else {}
    words = extras.get("words")
    found = {path: nodes[path] for path in restore_order(nodes, extras.get("order"))}
    for path, names in words.items() if isinstance(words, dict) else ():
        if path in found and isinstance(attributes := found[path].get("attributes"), dict):
            found[path] = {**found[path], "attributes": read_words(attributes, names)}
    return found


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
