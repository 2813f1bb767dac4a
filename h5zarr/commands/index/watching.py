"""Related files: other files that a source refers to. If one of them changes, the source counts as changed.

Few sources have any, and the others cost nothing. If a related file was listed, the listing has its state; otherwise
its state is requested once, for all sources that refer to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from h5zarr.commands.catalog.listing import Listing, ask_identity
from h5zarr.commands.catalog.source_names import is_same, source_name
from h5zarr.commands.catalog.waiting import map_at_once
from h5zarr.commands.index.planning import Plan
from h5zarr.io.access import USUAL_ACCESS, Access
from h5zarr.io.location import Location
from h5zarr.io.source import Identity

States = dict[str, Identity | None]  # by URL; None: the file does not exist


def encode_related(states: Iterable[tuple[str, Identity | None]]) -> str:
    """Return the states of related files as JSON, by URL; "" if there are none."""
    document = {url: None if state is None else _stated(state) for url, state in states}
    return json.dumps(document, separators=(",", ":")) if document else ""


def _stated(state: Identity) -> dict[str, Any]:
    return {name: value for name, value in asdict(state).items() if value is not None}


def decode_related(text: str) -> States:
    """Return the states encoded by `encode_related`. Raises ValueError for anything else."""
    try:
        document = json.loads(text or "{}")
        return {url: None if state is None else Identity(**state) for url, state in document.items()}
    except (AttributeError, TypeError) as error:
        raise ValueError("the states of related files have an unknown form") from error


def settle_watched(
    plan: Plan,
    listing: Listing,
    access: Access = USUAL_ACCESS,
    is_stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Sort the watched sources of a plan into unchanged, given up and changed, by the states of their related files.

    Once `is_stopped` returns True, requests stop and the plan is useless.
    """
    if not plan.watched:
        return
    watched, plan.watched = plan.watched, []
    related = [_decode_or_none(row.related) for _, row in watched]
    places = {
        name: open_beside(task.url, name)
        for (task, _), states in zip(watched, related, strict=True)
        for name in states or ()
    }
    listed = ((source_name(one.url), one.identity) for one in listing.sources)
    now: States = {name: identity for name, identity in listed if identity is not None and name in places}
    now |= _ask_all({name: url for name, url in places.items() if name not in now}, access, is_stopped)
    for (task, row), states in zip(watched, related, strict=True):
        if states is None or not all(is_same(before, now[name]) for name, before in states.items()):
            plan.changed.append(replace(task, attempts=0))
        elif row.status.is_indexed:
            plan.keep(row)
        else:
            plan.given_up.append(row)


def _decode_or_none(text: str) -> States | None:
    """Return the states; None if the catalog was edited, so that the source is read again."""
    try:
        return decode_related(text)
    except ValueError:
        return None


def _ask_all(places: Mapping[str, str], access: Access, is_stopped: Callable[[], bool]) -> States:
    def ask(url: str) -> Identity | None:
        return None if is_stopped() else ask_identity(url, access)

    return dict(zip(places, map_at_once(ask, list(places.values())), strict=True))


def open_beside(url: str, other: str) -> str:
    """Return the URL that opens a related file of `url`: stored names lack the secrets, so they come from `url`."""
    stored = Location.parse(other)
    return other if stored.path is not None else Location.parse(url).with_path_of(stored)
