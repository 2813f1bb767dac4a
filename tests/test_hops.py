"""The hops that docs/architecture.md lists are those of a trace, and few."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.hops import hops_of_a_read, hops_of_a_translation
from tests.test_architecture import PACKAGE

OCEAN = PACKAGE.parent / "sample_data" / "ocean.nc"
PAGE = PACKAGE.parent / "docs" / "architecture.md"


def listed(title: str) -> list[str]:
    """Return the hops that the page lists under a title."""
    found = re.search(rf"{title}:\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    return found[1].splitlines()


def test_a_translation_takes_the_listed_hops(tmp_path: Path) -> None:
    found = hops_of_a_translation(OCEAN, tmp_path / "refs.json")
    assert found == listed("One translation")
    assert len(found) <= 18


def test_a_read_takes_the_listed_hops(tmp_path: Path) -> None:
    pytest.importorskip("xarray")
    hops_of_a_translation(OCEAN, tmp_path / "refs.json")
    found = hops_of_a_read(tmp_path / "refs.json")
    assert found == listed("One read")
    assert len(found) <= 14
