"""What there is to do: what is listed, compared with what is known."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from h5zarr.errors import H5ZarrError, SourceChanged
from h5zarr.indexing.listing import Listed, Listing
from h5zarr.indexing.naming import Names
from h5zarr.indexing.rows import Known, Row, Status, writable
from h5zarr.io.reference_url import hide_secrets, reference_url
from h5zarr.io.source import Identity
from h5zarr.io.verify import check_unchanged

# Nothing in it has a meaning, be it a user, a query, an escape, a chain, or "..".
_PLAIN = re.compile(r"(?:s3|gs|https?)://[\w.-]+(?::\d+)?(?:/(?!\.)[\w.=+,~-]*)+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Task:
    """A source to index. `url` opens it, and may hold secrets; `source` is its name in the catalog.

    `attempts` counts the failures before, in the same state of the source. `had_output` is whether there are references
    of an earlier state; `replaces` names those that are to be removed then, since they have another form.
    """

    url: str = field(repr=False)
    source: str
    identity: Identity | None
    output: str
    attempts: int = 0
    had_output: bool = False
    replaces: str = ""


@dataclass(slots=True)
class Plan:
    """What there is to do, by the reason for it, and what there is not."""

    new: list[Task] = field(default_factory=list)
    changed: list[Task] = field(default_factory=list)
    retried: list[Task] = field(default_factory=list)
    unchanged_count: int = 0
    given_up: list[Known | Row] = field(default_factory=list)
    vanished: list[Known | Row] = field(default_factory=list)
    adopted: list[Known | Row] = field(default_factory=list)  # unchanged, and now it is known by whom they are found
    watched: list[tuple[Task, str]] = field(default_factory=list)  # unchanged, if what is related to them is

    @property
    def tasks(self) -> list[Task]:
        """All that is to be indexed: first what was never tried."""
        return self.new + self.changed + self.retried


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How outputs are named and made, and how often to try. `settings` tells outputs apart that are made otherwise."""

    template: str
    suffix: str
    settings: str
    max_attempts: int
    force: bool = False


def make_plan(listing: Listing, known: Iterable[Known | Row], rules: Rules) -> Plan:
    """Return what there is to do. A source that is known keeps the name of its output.

    Rows of what is unchanged, which are nearly all as a rule, are looked at one by one and not kept. Those that refer
    to other files are left to `settle_watched`.
    """
    found: dict[str, Listed] = {}
    for listed in listing.sources:
        found.setdefault(source_name(listed.url), listed)
    plan = Plan()
    taken: list[str] = []
    unnamed: list[tuple[Listed, str, Known | Row | None]] = []
    for row in known:
        taken.append(row.output)
        now = found.pop(row.source, None)
        if now is None:
            plan.vanished += [row] if row.found_by == listing.found_by else []
        elif row.output.endswith(rules.suffix):
            _sort_in(plan, now, row, rules)
            plan.adopted += [] if row.found_by else [_adopt(row, listing.found_by)]
        else:
            unnamed.append((now, row.source, row))
    unnamed += [(listed, source, None) for source, listed in found.items()]
    names = Names(rules.template, rules.suffix, filter(None, taken) if unnamed else ())
    for listed, source, former in unnamed:
        replaced = former.output if former is not None and former.has_output else ""
        task = Task(listed.url, source, listed.identity, names.give(source, listed.path), replaces=replaced)
        (plan.new if former is None else plan.changed).append(task)
    return plan


def source_name(url: str) -> str:
    """Return what a source is called in the catalog, which is what its references call it."""
    if _is_plain(url):
        return writable(url)
    try:
        return writable(reference_url(url)[0])
    except H5ZarrError:
        return writable(hide_secrets(url))  # it cannot be opened either, and that will be told


def _is_plain(url: str) -> bool:
    """Return whether a URL or path is surely called as it is: to look closely at a hundred thousand takes seconds."""
    if _PLAIN.fullmatch(url):
        return not os.path.lexists(url[: url.index("/")])  # below which it would be a path
    return url.startswith("/") and os.path.normpath(url) == url


def _adopt(row: Known | Row, found_by: str) -> Known | Row:
    return row._replace(found_by=found_by) if isinstance(row, Known) else replace(row, found_by=found_by)


def _sort_in(plan: Plan, listed: Listed, row: Known | Row, rules: Rules) -> None:
    """Add a source that is known to the plan."""
    is_unchanged = is_same(row.identity, listed.identity)
    is_current = is_unchanged and row.settings == rules.settings and not rules.force
    if is_current and row.status is Status.INDEXED and not row.related:
        plan.unchanged_count += 1
        return
    task = Task(
        listed.url,
        row.source,
        listed.identity,
        row.output,
        attempts=row.attempts if is_unchanged else 0,
        had_output=row.has_output,
    )
    if not is_current or row.status is Status.VANISHED:  # which is there again
        plan.changed.append(task)
    elif row.status is Status.INDEXED:
        plan.watched.append((task, row.related))
    elif row.attempts < rules.max_attempts:
        plan.retried.append(task)
    else:
        plan.given_up.append(row)


def is_same(before: Identity | None, now: Identity | None) -> bool:
    """Return whether a source is as it was. One whose state cannot be told is read again: the attempt tells why."""
    if before is None or now is None:
        return before is now
    try:
        check_unchanged("", before, now)
    except SourceChanged:
        return False
    return True
