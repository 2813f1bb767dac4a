"""The README's example prints what the README says."""

from __future__ import annotations

import contextlib
import io
import re

import pytest

from tests.collections_of_files import PROJECT


def test_the_example_prints_what_the_readme_says(monkeypatch: pytest.MonkeyPatch) -> None:
    readme = (PROJECT / "README.md").read_text()
    code = re.search(r"```python\n(.*?)```", readme, re.DOTALL)
    expected = re.search(r"```text\n(.*?)```", readme, re.DOTALL)
    assert code is not None
    assert expected is not None
    monkeypatch.chdir(PROJECT)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code[1], {})
    assert printed.getvalue() == expected[1]
