"""Facts that Icechunk does not keep, and that h5zarr adds to a snapshot: node order, and attributes with NaN.

Python and zarr write and read NaN and infinities in JSON, but Icechunk does not: they become words in attributes. The
snapshot's metadata record which words were numbers, and the order of the nodes. Other readers still get correct values,
but see variables in another order than in the file, and NaN as text in attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite, isnan

from h5zarr.containers.provenance import Provenance
from h5zarr.errors import Problem, Unrepresentable
from h5zarr.io.location import Location
from h5zarr.zarr_model.hierarchy import Hierarchy, Json

SOURCES = "sources"


def find_odd(hierarchy: Hierarchy) -> dict[str, list[str]]:
    """Return the names of attributes with NaN or infinities, by the path of their node."""
    odd = {
        path: [name for name, value in node.attributes.items() if not _is_json(value)]
        for path, node in hierarchy.nodes.items()
    }
    return {path: names for path, names in odd.items() if names}


def check_numbers(hierarchy: Hierarchy) -> tuple[Problem, ...]:
    """Return a warning for each node with attributes that become text."""
    warnings = []
    for path, names in find_odd(hierarchy).items():
        what = f"NaN or infinity becomes text in the attribute {', '.join(names)}: Icechunk accepts neither as a number"
        remedy = "Write JSON references, which keep them, or read the attribute from the file."
        warnings.append(Problem(path, Unrepresentable.kind, what, remedy))
    return tuple(warnings)


def spell_out(document: Mapping[str, Json], names: Sequence[str]) -> dict[str, Json]:
    """Return metadata with NaN and infinities in the named attributes as words, as in Zarr's fill values."""
    attributes = document["attributes"]
    return {**document, "attributes": {**attributes, **{name: _worded(attributes[name]) for name in names}}}


def read_words(attributes: Mapping[str, Json], names: Json) -> dict[str, Json]:
    """Return attributes with the words in the named ones turned back into numbers."""
    known = set(map(str, names)) if isinstance(names, list) else set()
    return {name: _numbered(value) if name in known else value for name, value in attributes.items()}


def _numbered(value: Json) -> Json:
    match value:
        case "NaN" | "Infinity" | "-Infinity":
            return float(value)
        case list():
            return [_numbered(one) for one in value]
        case Mapping():
            return {name: _numbered(one) for name, one in value.items()}
    return value


def _is_json(value: Json) -> bool:
    """Return whether JSON can express every number in `value`."""
    match value:
        case float():
            return isfinite(value)
        case list() | tuple():
            return all(map(_is_json, value))
        case Mapping():
            return all(map(_is_json, value.values()))
    return True


def _worded(value: Json) -> Json:
    match value:
        case float() if not isfinite(value):
            return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case list() | tuple():
            return [_worded(one) for one in value]
        case Mapping():
            return {name: _worded(one) for name, one in value.items()}
    return value


def encode_extras(paths: Iterable[str], words: Mapping[str, Sequence[str]]) -> dict[str, Json]:
    """Return what a snapshot should record: the order of its nodes, and attributes whose words are numbers, by path."""
    order = encode_order(paths)
    return {**({"order": order} if order else {}), **({"words": dict(words)} if words else {})}


def sources_of(provenance: Provenance, hierarchy: Hierarchy) -> tuple[str, ...]:
    """Return the files that references are made from, the main one first, without secrets.

    References of other tools do not say. The files that they refer to take their place.
    """
    urls = [source.url for source in provenance.sources] or hierarchy.urls
    return tuple(Location.parse(url).without_secrets() for url in urls)


def read_sources(own_metadata: Json) -> tuple[str, ...]:
    """Return the files that a snapshot records, in the same form."""
    recorded = own_metadata.get("sources") or [{"url": url} for url in own_metadata.get("urls") or ()]
    return tuple(str(source["url"]) for source in recorded if isinstance(source, dict) and "url" in source)


def encode_urls(hierarchy: Hierarchy, provenance: Provenance) -> Json:
    """Return the URLs that a snapshot should record, in the order of their numbers; SOURCES if they are its sources."""
    if hierarchy.urls == tuple(source.url for source in provenance.sources) and all(map(_is_settled, hierarchy.urls)):
        return SOURCES
    places = map(Location.parse, hierarchy.urls)
    return [place.without_secrets() if place.path is None else place.absolute() for place in places]


def _is_settled(url: str) -> bool:
    """Return whether a URL means the same in every directory."""
    return url.startswith("/") or "://" in url


def read_urls(own_metadata: Json) -> tuple[str, ...] | None:
    """Return the URLs that a snapshot refers to, in the order of their numbers; None if it does not say."""
    match own_metadata:
        case {"refers_to": "sources", "sources": list(sources)}:
            return tuple(str(source["url"]) for source in sources)
        case {"refers_to": list(urls)}:
            return tuple(map(str, urls))
    return None


def restore_nodes(nodes: Mapping[str, Json], own_metadata: Json) -> dict[str, Json]:
    """Return metadata by path, with the order and the numbers that `own_metadata` records, if any."""
    extras = own_metadata if isinstance(own_metadata, dict) else {}
    words = extras.get("words")
    found = {path: nodes[path] for path in restore_order(nodes, extras.get("order"))}
    for path, names in words.items() if isinstance(words, dict) else ():
        if path in found and isinstance(attributes := found[path].get("attributes"), dict):
            found[path] = {**found[path], "attributes": read_words(attributes, names)}
    return found


def encode_entries(nodes: Mapping[str, Json]) -> dict[str, Json]:
    """Return metadata by key, given metadata by path."""
    return {f"{path}/zarr.json".lstrip("/"): metadata for path, metadata in nodes.items()}


def encode_order(paths: Iterable[str]) -> list[int]:
    """Return the position of each path among the sorted paths; empty if they are already sorted."""
    given = list(paths)
    places = {path: place for place, path in enumerate(sorted(given))}
    order = [places[path] for path in given]
    return [] if order == list(range(len(order))) else order


def restore_order(paths: Iterable[str], order: Json) -> Sequence[str]:
    """Return paths in the order that `encode_order` encoded; sorted if it is not a permutation of them."""
    found = sorted(paths)
    if not isinstance(order, list) or not all(type(place) is int for place in order):
        return found
    return [found[place] for place in order] if sorted(order) == list(range(len(found))) else found
