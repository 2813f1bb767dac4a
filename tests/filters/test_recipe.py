"""The recipe "Add a filter" of CONTRIBUTING.md, applied to a copy of the package."""

from __future__ import annotations

import filecmp
import shutil
from pathlib import Path

import pytest

from tests.filters.new_filters import (
    ROOT,
    TRANSLATE,
    assert_read,
    chunks,
    code_blocks,
    run,
    translate_and_read,
    write_filtered,
)

KEY = 0x5A


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a copy of the package in which the recipe was followed."""
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "h5zarr", site / "h5zarr", ignore=shutil.ignore_patterns("__pycache__"))
    for name, code in code_blocks(ROOT / "CONTRIBUTING.md", "Add a filter", "python").items():
        place = site / name
        if not place.exists():
            place.write_text(code)
            continue
        table = place.read_text()
        end_of_rows = "    )\n}\nREFUSED = {"
        assert table.count(end_of_rows) == 1
        place.write_text(table.replace(end_of_rows, f"        {code.strip()},\n{end_of_rows}"))
    return site


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    encoded = {origin: bytes(byte ^ KEY for byte in content) for origin, content in chunks().items()}
    return write_filtered(tmp_path_factory.mktemp("source") / "xor.h5", 32998, (KEY,), encoded)


def changed_files(one: Path, other: Path) -> set[str]:
    """Return the files that are not the same in both directories."""
    found = {path.relative_to(top).as_posix() for top in (one, other) for path in top.rglob("*.py")}
    _, different, odd = filecmp.cmpfiles(one, other, found, shallow=False)
    return {*different, *odd}


def test_the_recipe_touches_two_files(site: Path) -> None:
    assert changed_files(ROOT / "h5zarr", site / "h5zarr") == {"filters/xor.py", "filters/table.py"}


def test_without_the_recipe_the_filter_is_unknown(source: Path, tmp_path: Path) -> None:
    done = run(TRANSLATE, source, tmp_path / "refs.json", path=tmp_path, fails=True)
    assert "filter 32998 (unnamed) is not known" in done.stderr


@pytest.mark.parametrize("version", [3, 2])
def test_files_with_the_new_filter_are_translated_and_read(
    version: int, site: Path, source: Path, tmp_path: Path
) -> None:
    references = tmp_path / "refs.json"
    assert_read(translate_and_read(source, references, "--zarr-format", version, path=site))
    assert "h5zarr.filter" in references.read_text()


def test_inspect_shows_its_setting(site: Path, source: Path) -> None:
    done = run("import sys; from h5zarr.cli import main; main(['inspect', sys.argv[1]])", source, path=site)
    assert f"xor({KEY})" in done.stdout
