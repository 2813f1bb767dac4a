"""The library speaks Python, and the command line speaks of its options: `h5zarr/cli/terms.py` translates."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from h5zarr.cli import main
from h5zarr.cli.common import option_names
from h5zarr.cli.terms import in_cli_terms
from tests.collections_of_files import PROJECT

PACKAGE = PROJECT / "h5zarr"
# What a user runs in a shell: other programs, and commands of h5zarr that a message shows.
SHELL = re.compile(r"\b(?:h5zarr [a-z]+|h5repack|h5unjam|nccopy|pip install)\b")
PROGRAMS = {"h5repack", "h5unjam", "nccopy"}
API = re.compile(r"\bh5zarr\.(?:translate|convert|inspect|check|index|status|verify|validate)\b")
FOR_PYTHON = ("virtualizarr.py", "kerchunk.py")  # these are used from Python only


@cache
def library_texts() -> tuple[tuple[str, str], ...]:
    """Return the place and the text of every string outside `cli/`, but no docstrings and no arguments of programs."""
    return tuple(_library_texts())


def _library_texts() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.is_relative_to(PACKAGE / "cli"):
            continue
        tree = ast.parse(path.read_text())
        skipped = {id(node) for root in ast.walk(tree) for node in _not_messages(root)}
        for node in ast.walk(tree):
            if id(node) not in skipped and (text := _text(node)):
                yield f"{path.relative_to(PROJECT)}:{getattr(node, 'lineno', 0)}", text


def _not_messages(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Expr(value=ast.Constant() as docstring):
            yield docstring
        case ast.JoinedStr(values=parts):
            yield from parts
        case ast.List(elts=[ast.Constant(value=str(program)), *words]) if program in PROGRAMS:
            yield from words


def _text(node: ast.AST) -> str:
    """Return the text of a string; where an f-string has an expression, NAME in quotes, or VALUE."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if not isinstance(node, ast.JoinedStr):
        return ""
    return "".join(_part(part) for part in node.values)


def _part(part: ast.expr) -> str:
    if isinstance(part, ast.FormattedValue):
        return "'NAME'" if part.conversion == ord("r") else "VALUE"
    return _text(part)


def test_the_library_names_no_options_of_the_command_line() -> None:
    found = [(place, text) for place, text in library_texts() if re.search(r"(?<![\w-])--[a-z]", text)]
    assert [(place, text) for place, text in found if not SHELL.search(text)] == []


def test_every_option_that_the_library_names_has_a_form_for_the_command_line() -> None:
    names = "|".join(sorted(option_names()))
    python = re.compile(rf"(?<![\w.\-])(?:{names})=")
    texts = [(place, text) for place, text in library_texts() if python.search(text)]
    assert len(texts) > 20
    for place, text in texts:
        told = in_cli_terms(text, option_names())
        assert not python.search(re.sub(r"--[\w-]+ \w+=", "", told)), (place, told)
        flags = re.findall(r"--([\w-]+)", told)
        assert flags, (place, told)
        assert {flag.replace("-", "_") for flag in flags} <= option_names(), (place, told)


def test_messages_for_both_name_no_function_of_the_api() -> None:
    found = [(place, text) for place, text in library_texts() if API.search(text)]
    assert [one for one in found if not one[0].split(":")[0].endswith(FOR_PYTHON)] == []


@pytest.mark.parametrize(
    ("python", "prompt"),
    [
        ("write it with strict=True.", "write it with --strict."),
        ("exclude=[PATTERN]", "--exclude PATTERN"),
        ("limits={'depth': NUMBER}", "--limits depth=NUMBER"),
        ("network={'attempts': 5, 'timeout_seconds': 60}", "--network attempts=5 --network timeout_seconds=60"),
        ("Omit branch= and message=.", "Omit --branch and --message."),
        ("max_inline_bytes=NUMBER", "--max-inline-bytes NUMBER"),
        ("workers=1.", "--workers 1."),
        ("requester_pays=True", "requester_pays=True"),
        ("x.strict=True, a-strict=True", "x.strict=True, a-strict=True"),
    ],
)
def test_python_terms_become_options(python: str, prompt: str) -> None:
    assert in_cli_terms(python, option_names()) == prompt


def test_validate_gives_advice_in_terms_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    array = {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "<i4", "fill_value": None, "order": "C"}
    array |= {"filters": None, "compressor": None}
    references = {".zgroup": {"zarr_format": 2}, "v/.zarray": array, "v/0": ["file.nc", 0, 8]}
    (tmp_path / "refs.json").write_text(json.dumps({"version": 1, "refs": references}))
    main(["validate", str(tmp_path / "refs.json")])
    assert "translate with --target-url URL" in capsys.readouterr().err
