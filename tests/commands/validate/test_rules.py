"""Every rule passes an example that keeps to it, and finds one that does not."""

from __future__ import annotations

import re

import pytest

from h5zarr.commands.validate.rule_table import RULES, SPECIFICATIONS
from h5zarr.commands.validate.rules import Level
from h5zarr.commands.validate.validate import hold_against
from tests.collections_of_files import PROJECT
from tests.commands.validate.examples import EXAMPLES, Example
from tests.commands.validate.made import changed, make

FORMS = ("json3", "json2", "parquet3", "parquet2")


def test_every_rule_has_an_example_that_passes_and_one_that_fails() -> None:
    assert EXAMPLES.keys() == RULES.keys()


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_found_in_references_that_are_valid(form: str) -> None:
    result = hold_against(make(form).decode(), "made")
    assert result.findings == []
    assert result.not_checked == []
    assert result.is_valid


def test_nothing_of_nz_is_found_where_it_is_declared() -> None:
    result = hold_against(make("json3").decode(), "made", nz=True)
    assert result.findings == []


@pytest.mark.parametrize(("rule", "example"), EXAMPLES.items(), ids=EXAMPLES)
def test_the_rule_passes_what_keeps_to_it(rule: str, example: Example) -> None:
    result = hold_against(changed(example.form, example.good).decode(), "made", nz=rule.startswith("nz/"))
    assert rule in result.rules
    assert [one for one in result.findings if one.rule == rule] == []
    assert [str(one) for one in result.errors] == []


@pytest.mark.parametrize(("rule", "example"), EXAMPLES.items(), ids=EXAMPLES)
def test_the_rule_finds_what_does_not(rule: str, example: Example) -> None:
    form = example.bad_form or example.form
    result = hold_against(changed(form, example.bad).decode(), "made", nz=rule.startswith("nz/"))
    found = [one for one in result.findings if one.rule == rule]
    assert found
    for one in found:
        assert one.path
        assert one.message
        assert one.remedy
        assert one.section == RULES[rule].section
        assert one.level is RULES[rule].level
    assert not any("could not be applied" in one.reason for one in result.not_checked)
    assert result.is_valid is not any(one.level is Level.ERROR for one in result.findings)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_says_what_it_asks_and_where_that_is_said(rule: str) -> None:
    told = RULES[rule]
    assert told.asks
    assert told.section
    assert told.family in SPECIFICATIONS
    assert re.fullmatch(r"[a-z0-9]+/[a-z0-9-]+", rule)


def test_the_page_lists_every_rule_with_its_level_and_section() -> None:
    page = (PROJECT / "docs" / "validate.md").read_text()
    rows = re.findall(r"^\| `([a-z0-9]+/[a-z0-9-]+)` \| (error|warning) \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    assert rows == [(rule.id, rule.level.value, rule.asks, rule.section) for rule in RULES.values()]
