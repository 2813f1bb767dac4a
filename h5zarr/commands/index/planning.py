"""Compare the listed sources with the catalog, and plan what to do."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from h5zarr.commands.index.listing import Listed, Listing
from h5zarr.commands.index.naming import Names
from h5zarr.commands.index.rows import UNWRITTEN, Known, Row, Status, settings_of, writable
from h5zarr.errors import H5ZarrError, SourceChanged
from h5zarr.io.location import Location
from h5zarr.io.source import Identity
from h5zarr.io.unchanged import check_unchanged

# No part of it is special: no user, query, escape, chain or "..".
_PLAIN = re.compile(r"(?:s3|gs|https?)://[\w.-]+(?::\d+)?(?:/(?!\.)[\w.=+,~-]*)+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Task:
    """A source to index. `url` opens it and may contain secrets; `source` is its name in the catalog.

    `found_by` is what lists it. `attempts` counts earlier failures of the source in the same state. `former` is its
    status so far, or None if it is new. `replaces` names references in another format, to be removed afterwards.
    """

    url: str = field(repr=False)
    source: str
    identity: Identity | None
    output: str
    found_by: str = ""
    attempts: int = 0
    former: Status | None = None
    replaces: str = ""

    @property
    def had_output(self) -> bool:
        """Whether references of an earlier state exist."""
        return self.former is not None and self.former.has_output


@dataclass(slots=True)
class Plan:
    """What to do, by reason, and what needs nothing. `states` counts known sources by status, before the run."""

    new: list[Task] = field(default_factory=list)
    changed: list[Task] = field(default_factory=list)
    retried: list[Task] = field(default_factory=list)
    unchanged_count: int = 0
    given_up: list[Known | Row] = field(default_factory=list)
    vanished: list[Known | Row] = field(default_factory=list)
    adopted: list[Known | Row] = field(default_factory=list)  # unchanged; their `found_by` is now known
    watched: list[tuple[Task, Known | Row]] = field(default_factory=list)  # unchanged if their related files are
    states: Counter[Status] = field(default_factory=Counter)

    @property
    def tasks(self) -> list[Task]:
        """All sources to index, starting with those never tried."""
        return self.new + self.changed + self.retried


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How outputs are named and made, and how often to try. `settings` is a digest of how outputs are made.

    If `strict`, sources with problems count as failed.
    """

    template: str
    suffix: str
    settings: str
    max_attempts: int
    force: bool = False
    strict: bool = False


def make_plan(listing: Listing, known: Iterable[Known | Row], rules: Rules) -> Plan:
    """Return the plan. Known sources keep their output names.

    Usually nearly all rows are unchanged, so these are read one at a time and not kept. Rows of sources that refer to
    other files are left to `settle_watched`.
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
        if now is None and row.found_by not in listing.found_by:
            continue  # it belongs to another job
        plan.states[row.status] += 1
        if now is None:
            plan.vanished.append(row)
        elif row.output.endswith(rules.suffix):
            _sort_in(plan, now, row, rules)
            plan.adopted += [] if row.found_by else [_adopt(row, now.found_by)]
        else:
            unnamed.append((now, row.source, row))
    unnamed += [(listed, source, None) for source, listed in found.items()]
    names = Names(rules.template, rules.suffix, filter(None, taken) if unnamed else ())
    for listed, source, former in unnamed:
        task = Task(
            listed.url,
            source,
            listed.identity,
            names.give(source, listed.path),
            listed.found_by,
            former=None if former is None else former.status,
            replaces=former.output if former is not None and former.status.has_output else "",
        )
        (plan.new if former is None else plan.changed).append(task)
    return plan


def source_name(url: str) -> str:
    """Return the name of a source in the catalog, which is also its name in references."""
    if _is_plain(url):
        return writable(url)
    location = Location.parse(url)
    try:
        return writable(location.for_references()[0])
    except H5ZarrError:
        return writable(location.without_secrets())  # it cannot be opened either; reading it reports why


def _is_plain(url: str) -> bool:
    """Return whether a URL or path is certainly its own name. A closer look at a hundred thousand takes seconds."""
    if _PLAIN.fullmatch(url):
        return not os.path.lexists(url[: url.index("/")])  # if it exists, this is a local path
    return url.startswith("/") and os.path.normpath(url) == url


def _adopt(row: Known | Row, found_by: str) -> Known | Row:
    return row._replace(found_by=found_by) if isinstance(row, Known) else replace(row, found_by=found_by)


def _sort_in(plan: Plan, listed: Listed, row: Known | Row, rules: Rules) -> None:
    """Add a known source to the plan."""
    is_unchanged = is_same(row.identity, listed.identity)
    settings = settings_of(rules.settings, row.status, strict=rules.strict)
    is_current = is_unchanged and row.settings == settings and not rules.force
    if is_current and row.status.is_indexed and not row.related:
        plan.unchanged_count += 1
        return
    task = Task(
        listed.url,
        row.source,
        listed.identity,
        row.output,
        listed.found_by,
        attempts=row.attempts if is_unchanged else 0,
        former=row.status,
    )
    if is_unchanged and row.settings == UNWRITTEN and row.status.is_failure:
        plan.retried.append(task)
    elif not is_current or row.status is Status.VANISHED:  # VANISHED: it is back
        plan.changed.append(task)
    elif row.status.is_failure and row.attempts < rules.max_attempts:
        plan.retried.append(task)
    elif row.related:
        plan.watched.append((task, row))
    else:
        plan.given_up.append(row)


def is_same(before: Identity | None, now: Identity | None) -> bool:
    """Return whether a source is unchanged. If its state is unknown it is read again; reading reports why."""
    if before is None or now is None:
        return before is now
    try:
        check_unchanged("", before, now)
    except SourceChanged:
        return False
    return True
