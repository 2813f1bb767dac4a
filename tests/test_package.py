"""What is published: extras, the files of the source distribution, and how installation is described."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import h5zarr
from tests.collections_of_files import PROJECT

METADATA = tomllib.loads((PROJECT / "pyproject.toml").read_text())
EXTRAS = METADATA["project"]["optional-dependencies"]
FOR_DEVELOPERS = {"test", "lint", "docs"}


def test_the_extra_all_has_all_extras() -> None:
    (wanted,) = EXTRAS["all"]
    names = re.fullmatch(r"h5zarr\[(.*)\]", wanted)
    assert names is not None
    assert set(names[1].split(",")) == set(EXTRAS) - FOR_DEVELOPERS - {"all"}


def test_the_extra_for_xarray_decodes_all_calendars() -> None:
    assert {re.split(r"\W", one)[0] for one in EXTRAS["xarray"]} == {"cftime", "xarray"}


def test_every_extra_is_in_getting_started() -> None:
    text = (PROJECT / "docs" / "getting-started.md").read_text()
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", text, re.MULTILINE)
    assert set(EXTRAS) - FOR_DEVELOPERS <= {name for row in rows for name in re.findall(r"\w+", row)}


def test_nothing_says_that_h5zarr_is_on_pypi() -> None:
    """There is no such package: `pip install h5zarr` would fail, or install something else."""
    pages = [*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.*"), *(PROJECT / "h5zarr").rglob("*.py")]
    said = re.compile(r"pip install[^\n`]*[\s'\"]h5zarr\b")
    texts = {page.name: page.read_text(errors="replace") for page in pages}  # pictures are no text, and say nothing
    assert [f"{name}: {line}" for name, text in texts.items() for line in text.splitlines() if said.search(line)] == []


def test_the_citation_has_the_version_of_the_package() -> None:
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((PROJECT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == h5zarr.__version__
    assert citation["license"] == METADATA["project"]["license"]


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("hatchling"), reason="hatchling is not installed")
def test_the_distributions_have_what_they_need_and_no_caches(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"CITATION.cff", "LICENSE", "README.md", "mkdocs.yml", "Containerfile", ".ci/run", "pyproject.toml"}
    wanted |= {
        str(path.relative_to(PROJECT))
        for folder in ("h5zarr", "tests", "sample_data", "docs", "benchmarks")
        for path in (PROJECT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted - names == set()
    assert not [name for name in names if "cache__" in name or name.endswith(".pyc") or name.startswith(".venv")]
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        tops = {name.partition("/")[0] for name in wheel.namelist()}
        assert "h5zarr/py.typed" in wheel.namelist()
    assert tops == {"h5zarr", f"h5zarr-{h5zarr.__version__}.dist-info"}
