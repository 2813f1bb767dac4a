"""Other files that a source refers to: a change of one of them is a change of the source.

Few sources have any, so what the others cost is nothing. Of a file that is among those that were listed the list tells
the state; else it is asked for, once for all sources that refer to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

from h5zarr.indexing.listing import Listing, ask_identity
from h5zarr.indexing.planning import Plan, is_same, source_name
from h5zarr.io.grammar import find_named, grammar_of, split_chain, split_path, split_query
from h5zarr.io.source import Identity
from h5zarr.io.url import find_local_path

_AT_ONCE = 32  # questions for the state of a file
States = dict[str, Identity | None]  # by URL; None of what is not there


def encode_related(states: Iterable[tuple[str, Identity | None]]) -> str:
    """Return the states of other files as JSON, by URL; nothing where there are none."""
    told = {url: None if state is None else _stated(state) for url, state in states}
    return json.dumps(told, separators=(",", ":")) if told else ""


def _stated(state: Identity) -> dict[str, Any]:
    return {name: value for name, value in asdict(state).items() if value is not None}


def decode_related(text: str) -> States:
    """Return what `encode_related` was given. Raises ValueError for anything else."""
    try:
        told = json.loads(text or "{}")
        return {url: None if state is None else Identity(**state) for url, state in told.items()}
    except (AttributeError, TypeError) as error:
        raise ValueError("the states of other files are told in another form") from error


def settle_watched(
    plan: Plan,
    listing: Listing,
    storage_options: Mapping[str, Any] | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Put what is unchanged but for other files that it refers to where it belongs, after a look at those.

    When `is_stopped` says so, nothing more is asked for, and the plan is of no use.
    """
    if not plan.watched:
        return
    watched, plan.watched = plan.watched, []
    related = [_decode_or_none(text) for _, text in watched]
    places = {
        name: open_beside(task.url, name)
        for (task, _), states in zip(watched, related, strict=True)
        for name in states or ()
    }
    listed = ((source_name(one.url), one.identity) for one in listing.sources)
    now: States = {name: identity for name, identity in listed if identity is not None and name in places}
    now |= _ask_all({name: url for name, url in places.items() if name not in now}, storage_options, is_stopped)
    for (task, _), states in zip(watched, related, strict=True):
        if states is not None and all(is_same(before, now[name]) for name, before in states.items()):
            plan.unchanged_count += 1
        else:
            plan.changed.append(task)


def _decode_or_none(text: str) -> States | None:
    """Return the states; None where somebody has changed the catalog, and the source is to be read again."""
    try:
        return decode_related(text)
    except ValueError:
        return None


def _ask_all(
    places: Mapping[str, str], storage_options: Mapping[str, Any] | None, is_stopped: Callable[[], bool]
) -> States:
    def ask(url: str) -> Identity | None:
        return None if is_stopped() else ask_identity(url, storage_options)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip(places, pool.map(ask, places.values()), strict=True))


def open_beside(url: str, other: str) -> str:
    """Return what opens a file that the one at `url` refers to: its name has none of the secrets that may take."""
    if find_local_path(other) is not None:
        return other
    links, others = split_chain(url), split_chain(other)
    place = find_named(links)
    address, query = split_query(links[place])
    _, path = split_path(split_query(others[find_named(others)])[0])
    links[place] = f"{split_path(address)[0]}{path}{'' if grammar_of(address).is_version else query}"
    return "::".join(links)
