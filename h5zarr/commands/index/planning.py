"""Compare the listed sources with the catalog, and plan what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from h5zarr.commands.catalog.listing import Listed, Listing
from h5zarr.commands.catalog.rows import UNWRITTEN, Known, Row, Status, settings_of
from h5zarr.commands.catalog.source_names import is_same, source_name
from h5zarr.commands.index.naming import Names
from h5zarr.io.source import Identity

# No part of it is special: no user, query, escape, chain or "..".


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
    newest: str = ""  # the latest modification time of an unchanged source, as its row has it

    def keep(self, row: Known | Row) -> None:
        """Count an indexed source that is unchanged."""
        self.unchanged_count += 1
        mtime = row.identity.mtime if row.identity is not None else None
        if mtime is not None and mtime > self.newest:  # text in ISO 8601 and UTC sorts by time
            self.newest = mtime

    @property
    def tasks(self) -> list[Task]:
        """All sources to index, starting with those never tried."""
        return self.new + self.changed + self.retried


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How outputs are named and made, and how often to try. `settings` is a digest of how outputs are made.

    `suffix` is empty if there are no outputs. If `strict`, sources with problems count as failed.
    """

    template: str
    suffix: str
    settings: str
    max_attempts: int
    force: bool = False
    strict: bool = False

    def fits(self, output: str) -> bool:
        """Return whether an output is of the format of this job, which may have none."""
        return output.endswith(self.suffix) if self.suffix else not output


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
        elif rules.fits(row.output):
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


def _adopt(row: Known | Row, found_by: str) -> Known | Row:
    return row._replace(found_by=found_by) if isinstance(row, Known) else replace(row, found_by=found_by)


def _sort_in(plan: Plan, listed: Listed, row: Known | Row, rules: Rules) -> None:
    """Add a known source to the plan."""
    is_unchanged = is_same(row.identity, listed.identity)
    settings = settings_of(rules.settings, row.status, strict=rules.strict)
    is_current = is_unchanged and row.settings == settings and not rules.force
    if is_current and row.status.is_indexed and not row.related:
        plan.keep(row)
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
