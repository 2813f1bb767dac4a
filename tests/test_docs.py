"""The documentation is true: its examples print what it says, its commands parse, its links lead somewhere.

A `python` block that is directly followed by a `text` block is run and must print that text. The blocks of a page share
their names and a directory with the sample files. A block that imports a package which is not there is not run.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from h5zarr.cli import build_parser, main
from h5zarr.commands.catalog.rows import Status
from tests.collections_of_files import PROJECT, SAMPLES
from tests.servers import RangeServer
from tests.test_architecture import MAY_IMPORT

DOCS = PROJECT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
READ_FIRST = [PROJECT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
EVERY_PAGE = pytest.mark.parametrize("page", [*READ_FIRST, *PAGES], ids=lambda page: page.name)

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RUNNABLE = re.compile(r"^```python\n((?:(?!^```).)*)^```\n\n```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.DOTALL | re.MULTILINE)

FAR_AWAY = "https://data.example.org"


@pytest.fixture
def beside_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a directory with the sample files, in which examples may write."""
    for sample in SAMPLES.glob("*.*"):
        (tmp_path / sample.name).symlink_to(sample)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(code: str, names: dict[str, Any]) -> str:
    """Return what an example prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


# --- examples


def packages_in(code: str) -> set[str]:
    """Return the names of the packages that an example imports."""
    nodes = list(ast.walk(ast.parse(code)))
    found = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    found |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {name.partition(".")[0] for name in found}


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if RUNNABLE.search(page.read_text())], ids=lambda page: page.name
)
def test_examples_print_what_the_page_says(page: Path, beside_samples: Path) -> None:
    names: dict[str, Any] = {}
    for code, expected in RUNNABLE.findall(page.read_text()):
        if all(find_spec(package) for package in packages_in(code)):
            assert run(code, names) == expected


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
def test_the_storage_options_for_http_are_those_that_work(beside_samples: Path) -> None:
    blocks = [code for _, code in BLOCK.findall((DOCS / "getting-started.md").read_text())]
    (code,) = [block for block in blocks if f'translate("{FAR_AWAY}' in block]
    names: dict[str, Any] = {}
    with RangeServer({"/ocean.nc": (SAMPLES / "ocean.nc").read_bytes()}) as server:
        run("import h5zarr, xarray\n" + code.replace(FAR_AWAY, server.url("")), names)
        assert float(names["remote"].lat[0]) == -58.5
        assert names["remote"].sst[0, 0, 0].item() == pytest.approx(14.13)


@pytest.mark.filterwarnings("ignore:The 'fastparquet' engine is deprecated", "ignore:Both zarr.json")
@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
@pytest.mark.parametrize("version", [3, 2])
def test_the_storage_options_for_parquet_are_those_that_work(beside_samples: Path, version: int) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("fastparquet")
    pytest.importorskip("pyarrow.parquet")
    import h5zarr

    (code,) = [code for _, code in BLOCK.findall((DOCS / "containers.md").read_text()) if "plain = " in code]
    for place in ("ocean.parquet", "ocean.json"):
        h5zarr.translate("ocean.nc", place, zarr_format=version)
    names: dict[str, Any] = {"xarray": xarray}
    run(code, names)
    options = {"fo": "ocean.json", "remote_protocol": "file"}
    expected = xarray.open_dataset("reference://", engine="zarr", storage_options=options)
    xarray.testing.assert_identical(names["plain"].load(), expected.load())


# --- commands


COMMANDS = {"translate", "inspect", "convert", "index", "status", "verify", "validate", "check", "combine"}


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the arguments of each `h5zarr` command in a page, from blocks and from running text."""
    text = page.read_text()
    lines = [line for kind, block in BLOCK.findall(text) if kind == "sh" for line in block.splitlines()]
    lines += re.findall(r"`(h5zarr [^`\n]+)`", BLOCK.sub("", text))
    for part in (part for line in lines for part in re.split(r" (?:\||&&) ", line)):
        if part.strip().startswith(("h5zarr ", ".venv/bin/h5zarr ")):
            yield shlex.split(part, comments=True)[1:]


@EVERY_PAGE
def test_commands_parse(page: Path) -> None:
    for arguments in commands(page):
        if "--help" in arguments or arguments == [arguments[0]]:
            assert arguments[0] in COMMANDS
            continue
        try:
            build_parser().parse_args(arguments)
        except SystemExit:
            pytest.fail(f"h5zarr {shlex.join(arguments)} does not parse")


def test_commands_are_found() -> None:
    assert len(list(commands(DOCS / "getting-started.md"))) > 5
    assert ["translate", "sample_data/ocean.nc", "ocean.json"] in commands(PROJECT / "README.md")


def options_of(command: str) -> set[str]:
    (choices,) = [action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction)]
    actions = choices.choices[command]._actions
    return {name for action in actions for name in action.option_strings if name.startswith("--")} - {"--help"}


@pytest.mark.parametrize("option", sorted(options_of("translate")))
def test_every_option_of_translate_is_in_getting_started(option: str) -> None:
    assert re.search(rf"`[^`]*{option}\b", (DOCS / "getting-started.md").read_text())


@pytest.mark.parametrize("option", sorted(options_of("index") | options_of("status")))
def test_every_option_of_index_and_status_is_in_indexing(option: str) -> None:
    assert re.search(rf"`[^`]*{option}\b", (DOCS / "indexing.md").read_text())


@pytest.mark.parametrize("option", sorted(options_of("combine") - options_of("translate")))
def test_every_option_that_only_combine_has_is_on_its_page(option: str) -> None:
    assert re.search(rf"`[^`]*{option}\b", (DOCS / "combine.md").read_text())


def test_the_first_commands_of_indexing_do_what_is_said_of_them(
    beside_samples: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    for line in BLOCK.findall((DOCS / "indexing.md").read_text())[0][1].splitlines():
        command, _, said = line.partition("#")
        assert main(shlex.split(command)[1:]) == 0
        told = "".join(capfd.readouterr())
        assert said.strip() in told or said.split()[0] == "writes"
    assert (beside_samples / "refs" / "ocean.nc.json").exists()


def test_the_columns_of_the_catalog_are_those_that_it_has() -> None:
    table = pytest.importorskip("h5zarr.commands.catalog.catalog_table")
    rows = re.findall(r"^\| (`[\w ]+`(?:, `\w+`)*) \|", (DOCS / "indexing.md").read_text(), re.MULTILINE)
    found = [name for row in rows for name in re.findall(r"`([\w ]+)`", row)]
    assert found[: len(table.SCHEMA.names)] == table.SCHEMA.names
    after = found[len(table.SCHEMA.names) :]
    assert after[: len(Status)] == [str(status) for status in Status]


@pytest.mark.parametrize("option", sorted(options_of("convert") - options_of("translate")))
def test_every_option_that_only_convert_has_is_among_the_containers(option: str) -> None:
    assert option in (DOCS / "containers.md").read_text()


# --- links


def anchors(page: Path) -> set[str]:
    """Return the names by which the headings of a page can be linked to."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip()) for heading in headings}


@EVERY_PAGE
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(CODE.sub("", page.read_text())):
        if re.match(r"https?://", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_is_in_the_table_of_contents() -> None:
    contents = (PROJECT / "mkdocs.yml").read_text()
    for page in PAGES:
        assert page.name in contents


# --- lists that follow the code


def test_every_room_is_in_the_table_of_the_architecture() -> None:
    rows = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", (DOCS / "architecture.md").read_text(), re.MULTILINE)
    rooms = {room.partition("/")[0] for room in MAY_IMPORT}
    assert sorted(rows) == sorted(rooms)
