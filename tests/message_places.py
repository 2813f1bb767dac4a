"""The messages of the package, as its source has them, and whether the tests trigger them.

A message counts as triggered if three successive words of it, or a short message as a whole, are in a string of a test,
or in what `validate` says about an example for a rule. Comments, docstrings and names do not count.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from h5zarr.commands.validate.validate import hold_against
from tests.collections_of_files import PROJECT
from tests.commands.validate.examples import EXAMPLES
from tests.commands.validate.made import changed

PACKAGE = PROJECT / "h5zarr"
_LEAST_LETTERS = 8
# What carries a message, besides errors: some are made in one place, and raised or shown in another.
_CARRIERS = {"Exception", "ValueError", "Failure", "Problem", "Found", "Violation", "NotChecked", "RawPart"}
_NOT_SAID = re.compile(r'"""[\s\S]*?"""|(?<= )# .*')
_CLASS = re.compile(r"^class (\w+)\((.*)\):", re.MULTILINE)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def rooms() -> list[str]:
    """Return the rooms of the package: folders and modules, with a room for each command."""
    inside = [path for path in PACKAGE.iterdir() if path.name not in ("commands", "__pycache__")]
    commands = [path for path in (PACKAGE / "commands").iterdir() if path.name != "__pycache__"]
    return sorted(str(path.relative_to(PACKAGE)) for path in (*inside, *commands))


def messages(room: str) -> dict[str, list[str]]:
    """Return the literal parts of every message in a room, by its place."""
    found: dict[str, list[str]] = {}
    for file in [PACKAGE / room] if room.endswith(".py") else sorted((PACKAGE / room).rglob("*.py")):
        module = ast.parse(file.read_text())
        constants = ast.Module([node for node in module.body if isinstance(node, ast.Assign)], [])
        functions = [node for node in ast.walk(module) if isinstance(node, _Function)]
        for scope in (constants, *functions):
            for line, parts in _raised(scope, _carriers()):
                found.setdefault(f"{file.relative_to(PACKAGE)}:{line}", parts)
    return found


@cache
def _carriers() -> frozenset[str]:
    """Return the names of all classes that carry a message."""
    sources = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    classes = [(name, re.findall(r"\w+", bases)) for name, bases in _CLASS.findall(sources)]
    found, before = set(_CARRIERS), 0
    while len(found) > before:
        before = len(found)
        found |= {name for name, bases in classes if not found.isdisjoint(bases)}
    return frozenset(found)


def _raised(scope: ast.AST, carriers: frozenset[str]) -> Iterator[tuple[int, list[str]]]:
    named: dict[str, list[str]] = {}
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            named.setdefault(node.targets[0].id, []).extend(_literals(node.value, {}))
    for node in ast.walk(scope):
        call = node.exc if isinstance(node, ast.Raise) else node
        if isinstance(call, ast.Call) and (call is not node or getattr(call.func, "id", "") in carriers):
            parts = [words(part) for argument in call.args for part in _literals(argument, named)]
            if long := [part for part in parts if len(part) >= _LEAST_LETTERS]:
                yield call.lineno, long


def _literals(tree: ast.AST, named: dict[str, list[str]]) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
        elif isinstance(node, ast.Name):
            found += named.get(node.id, [])
    return found


def words(text: str) -> str:
    """Return the words of a text or of a regular expression, without punctuation."""
    return " ".join(re.findall(r"[\w{}=*]+", text.replace("\\", "")))


def is_triggered(part: str) -> bool:
    """Return whether some of these words are in a test."""
    single = part.split()
    threes = [" ".join(single[at : at + 3]) for at in range(len(single) - 2)] or [part]
    return any(three in _said() for three in threes if len(three) >= _LEAST_LETTERS)


@cache
def _said() -> str:
    tests = [_NOT_SAID.sub("", path.read_text()) for path in (PROJECT / "tests").rglob("*.py")]
    return "\n".join(map(words, (*tests, *_findings())))


def _findings() -> Iterator[str]:
    """Yield what `validate` really says about an example that breaks each rule."""
    for rule, example in EXAMPLES.items():
        broken = changed(example.bad_form or example.form, example.bad).decode()
        for one in hold_against(broken, "made", nz=rule.startswith("nz/")).findings:
            yield f"{one.message}. {one.remedy}"
