"""What there is to do follows from what is listed and what is known, and from nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from h5zarr.commands.catalog.listing import Listed, Listing
from h5zarr.commands.catalog.rows import Row, Status
from h5zarr.commands.catalog.source_names import source_name
from h5zarr.commands.index.planning import Plan, Rules, make_plan
from h5zarr.io.source import Identity

RULES = Rules(template="{path}", suffix=".json", settings="abc", max_attempts=3)
BEFORE = Identity(nbytes=10, etag='"1"', mtime="2024-01-01T00:00:00Z")
AFTER = Identity(nbytes=10, etag='"2"', mtime="2024-01-02T00:00:00Z")
PATTERN = "s3://bucket/*.nc"


def listing(*sources: tuple[str, Identity | None], found_by: str = PATTERN) -> Listing:
    listed = (Listed(f"s3://bucket/{name}", name, identity, found_by) for name, identity in sources)
    return Listing(frozenset({found_by}), tuple(listed))


def row(name: str, **changes: Any) -> Row:
    made = Row(
        source=f"s3://bucket/{name}",
        found_by=PATTERN,
        identity=BEFORE,
        output=f"{name}.json",
        settings="abc",
        status=Status.INDEXED,
        time=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return replace(made, **changes)


def names(plan: Plan) -> dict[str, list[str]]:
    """Return what a plan does, by the reason for it, where it does something."""
    told = {
        "new": [task.output for task in plan.new],
        "changed": [task.output for task in plan.changed],
        "retried": [task.output for task in plan.retried],
        "given up": [one.output for one in plan.given_up],
        "vanished": [one.output for one in plan.vanished],
        "unchanged": ["?"] * plan.unchanged_count,
    }
    return {reason: outputs for reason, outputs in told.items() if outputs}


def test_what_is_not_known_is_new() -> None:
    plan = make_plan(listing(("a.nc", BEFORE), ("b.nc", None)), [], RULES)
    assert names(plan) == {"new": ["a.nc.json", "b.nc.json"]}
    assert (plan.new[0].identity, plan.new[0].had_output, plan.new[0].attempts) == (BEFORE, False, 0)


@pytest.mark.parametrize(
    ("known", "listed", "expected"),
    [
        (row("a.nc"), BEFORE, "unchanged"),
        (row("a.nc"), AFTER, "changed"),
        (row("a.nc"), Identity(nbytes=11, etag='"1"'), "changed"),
        (row("a.nc"), Identity(nbytes=10, mtime=BEFORE.mtime), "unchanged"),
        (row("a.nc"), Identity(nbytes=10, mtime=AFTER.mtime), "changed"),
        (row("a.nc"), Identity(nbytes=10), "unchanged"),
        (row("a.nc"), None, "changed"),
        (row("a.nc", identity=None), BEFORE, "changed"),
        (row("a.nc", settings="other"), BEFORE, "changed"),
        (row("a.nc", status=Status.INDEXED_WITH_PROBLEMS), BEFORE, "unchanged"),
        (row("a.nc", status=Status.INDEXED_WITH_PROBLEMS), AFTER, "changed"),
        (row("a.nc", settings="abc-strict"), BEFORE, "changed"),
        (row("a.nc", status=Status.FAILED, attempts=3, settings="abc-strict"), BEFORE, "changed"),
        (row("a.nc", status=Status.VANISHED), BEFORE, "changed"),
        (row("a.nc", status=Status.FAILED, attempts=2), BEFORE, "retried"),
        (row("a.nc", status=Status.STALE, attempts=2), BEFORE, "retried"),
        (row("a.nc", status=Status.FAILED, attempts=3), BEFORE, "given up"),
        (row("a.nc", status=Status.STALE, attempts=3), BEFORE, "given up"),
        (row("a.nc", status=Status.FAILED, attempts=3), AFTER, "changed"),
        (row("a.nc", status=Status.FAILED, attempts=3, settings="other"), BEFORE, "changed"),
        (row("a.nc", status=Status.FAILED, attempts=2, identity=None), None, "retried"),
        (row("a.nc", status=Status.FAILED, attempts=3, identity=None), None, "given up"),
        (row("a.nc", status=Status.FAILED, attempts=3, identity=None), BEFORE, "changed"),
    ],
)
def test_what_is_known_is_compared(known: Row, listed: Identity | None, expected: str) -> None:
    assert list(names(make_plan(listing(("a.nc", listed)), [known], RULES))) == [expected]


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (row("a.nc"), "unchanged"),
        (row("a.nc", status=Status.INDEXED_WITH_PROBLEMS), "changed"),
        (row("a.nc", status=Status.STALE, attempts=1, settings="abc-strict"), "retried"),
        (row("a.nc", status=Status.STALE, attempts=3, settings="abc-strict"), "given up"),
        (row("a.nc", status=Status.FAILED, attempts=3, settings="abc"), "changed"),
    ],
)
def test_a_strict_run_reads_sources_with_problems_again_and_no_others(known: Row, expected: str) -> None:
    plan = make_plan(listing(("a.nc", BEFORE)), [known], replace(RULES, strict=True))
    assert list(names(plan)) == [expected]


def test_sources_of_this_job_are_counted_by_status() -> None:
    known = [
        row("a.nc", status=Status.INDEXED_WITH_PROBLEMS),
        row("b.nc", status=Status.FAILED),
        row("gone.nc"),
        row("other.h5", found_by="s3://bucket/*.h5"),
    ]
    plan = make_plan(listing(("a.nc", BEFORE), ("b.nc", AFTER), ("new.nc", BEFORE)), known, RULES)
    assert plan.states == {Status.INDEXED_WITH_PROBLEMS: 1, Status.FAILED: 1, Status.INDEXED: 1}
    assert [task.former for task in plan.tasks] == [None, Status.FAILED]


def test_attempts_count_from_the_last_change() -> None:
    known = row("a.nc", status=Status.FAILED, attempts=2)
    assert make_plan(listing(("a.nc", BEFORE)), [known], RULES).retried[0].attempts == 2
    assert make_plan(listing(("a.nc", AFTER)), [known], RULES).changed[0].attempts == 0


def test_a_source_keeps_the_name_of_its_output() -> None:
    known = [row("a.nc", output="other/place.json"), row("b.nc", output="A.NC.json")]
    plan = make_plan(listing(("a.nc", AFTER), ("b.nc", AFTER), ("c.nc", BEFORE)), known, RULES)
    assert names(plan) == {"changed": ["other/place.json", "A.NC.json"], "new": ["c.nc.json"]}


def test_another_form_gets_another_name_and_replaces_the_first() -> None:
    (task,) = make_plan(listing(("a.nc", BEFORE)), [row("a.nc")], replace(RULES, suffix=".parquet")).changed
    assert (task.output, task.replaces) == ("a.nc.parquet", "a.nc.json")
    failed = row("a.nc", status=Status.FAILED)
    assert make_plan(listing(("a.nc", BEFORE)), [failed], replace(RULES, suffix=".parquet")).changed[0].replaces == ""


def test_force_indexes_what_is_unchanged_and_what_was_given_up() -> None:
    known = [row("a.nc"), row("b.nc", status=Status.FAILED, attempts=3)]
    plan = make_plan(listing(("a.nc", BEFORE), ("b.nc", BEFORE)), known, replace(RULES, force=True))
    assert names(plan) == {"changed": ["a.nc.json", "b.nc.json"]}


def test_only_who_lists_the_same_can_say_that_a_source_is_gone() -> None:
    known = [row("a.nc"), row("b.nc", found_by="s3://bucket/*.h5"), row("c.nc", status=Status.FAILED)]
    assert names(make_plan(listing(("d.nc", BEFORE)), known, RULES)) == {
        "new": ["d.nc.json"],
        "vanished": ["a.nc.json", "c.nc.json"],
    }


def test_a_source_without_a_known_origin_is_adopted_by_the_next_listing() -> None:
    plan = make_plan(listing(("a.nc", BEFORE)), [row("a.nc", found_by=""), row("b.nc", found_by="")], RULES)
    assert names(plan) == {"unchanged": ["?"]}
    assert [one.found_by for one in plan.adopted] == [PATTERN]


def test_a_source_that_is_listed_twice_is_indexed_once() -> None:
    assert names(make_plan(listing(("a.nc", BEFORE), ("a.nc", BEFORE)), [], RULES)) == {"new": ["a.nc.json"]}


def test_what_was_never_tried_comes_first() -> None:
    known = [row("a.nc"), row("b.nc", status=Status.FAILED, attempts=1)]
    plan = make_plan(listing(("b.nc", BEFORE), ("a.nc", AFTER), ("c.nc", BEFORE)), known, RULES)
    assert [task.output for task in plan.tasks] == ["c.nc.json", "a.nc.json", "b.nc.json"]


def test_a_source_is_called_what_its_references_call_it() -> None:
    assert source_name("s3://bucket/a b.nc") == "s3://bucket/a b.nc"
    assert source_name("https://me:hunter2@host/a b.nc") == "https://host/a%20b.nc"
    assert "hunter2" not in source_name("https://host/a.nc?X-Amz-Signature=hunter2")
    assert source_name("simplecache::s3://bucket/a.nc") == "s3://bucket/a.nc"
    listed = Listed("https://me:hunter2@host/a.nc", "a.nc", None, PATTERN)
    plan = make_plan(Listing(frozenset({PATTERN}), (listed,)), [], RULES)
    assert "hunter2" not in repr(plan)
