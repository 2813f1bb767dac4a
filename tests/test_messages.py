"""Every message that the outer rooms raise is triggered: here, or in a test elsewhere that quotes it.

A message counts as quoted if three words of it, or a short message, stand in a test. So a new message fails here until
a test triggers it.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import h5zarr
from h5zarr import errors
from h5zarr.cli import main
from h5zarr.containers.compression import decompress
from h5zarr.containers.icechunk.manifest_file import decode_manifest
from h5zarr.containers.json.json_reading import decode_references
from h5zarr.containers.output import or_output_error
from h5zarr.io.source import open_source
from h5zarr.io.span import Span
from h5zarr.store import _bounds
from tests.collections_of_files import PROJECT, SAMPLES

PACKAGE = PROJECT / "h5zarr"
ROOMS = (
    *("cli", "io", "containers", "formats.py", "signatures.py", "packages.py", "limits.py", "opening.py", "store.py"),
    *("processes.py", "patterns.py", "commands/translate", "commands/convert", "commands/inspect", "commands/check"),
    *("commands/status",),
)
# Errors and other carriers of messages that are made in one place and raised in another.
MADE = {"Failure", "Problem", *(name for name, one in vars(errors).items() if isinstance(one, type))}
OCEAN = SAMPLES / "ocean.nc"
ICECHUNK = "ICE🧊CHUNK".encode() + bytes(24)
GROUP = {"zarr_format": 3, "node_type": "group"}

TRIGGERS: dict[str, Callable[[Path], Any]] = {
    "expected KEY=VALUE": lambda tmp: main(["inspect", "a.nc", "--storage-options", "profile"]),
    "expected a directory": lambda tmp: main(["check", "a.nc", "--allow", ""]),
    "is not a share between 0 and 1": lambda tmp: main(["verify", "a.json", "--sample", "2"]),
    "refs.json: gzip cannot decompress it": lambda tmp: decompress(b"\x1f\x8b\x08\0\0\0\0\0\0\0\xff", "refs.json"),
    "refs.json: zstd cannot decompress it": lambda tmp: decompress(b"\x28\xb5\x2f\xfd" + b"\xff" * 20, "refs.json"),
    "m is not an Icechunk file": lambda tmp: decode_manifest(b"no", "m"),
    "m is not a manifest": lambda tmp: decode_manifest(ICECHUNK + bytes([1, 3, 0]), "m"),
    "m is of version 9 of Icechunk's format": lambda tmp: decode_manifest(ICECHUNK + bytes([9, 2, 0]), "m"),
    "Icechunk has no option nope here": lambda tmp: h5zarr.translate(
        OCEAN, f"icechunk+file://{tmp}/r", output_options={"nope": 1}
    ),
    "it has generators of references": lambda tmp: _decode({"version": 1, "gen": [{}], "refs": {}}),
    "the node is neither a group nor an array": lambda tmp: _decode({"zarr.json": {**GROUP, "node_type": "x"}}),
    "the URL has a template name in single braces": lambda tmp: _decode(
        {"version": 1, "templates": {"u": "x"}, "refs": {"a/0": ["{{u}}{u}", 0, 1]}}
    ),
    'treat "::" in a name as the separator of a URL chain': lambda tmp: h5zarr.translate(OCEAN, tmp / "a::b.json"),
    "fill_value is null, but some chunks are unwritten": lambda tmp: _convert_unfilled(tmp),
    "interprets braces in the name": lambda tmp: h5zarr.translate(OCEAN, tmp / "a{b}.parquet"),
    "has no metadata, or no record size": lambda tmp: _convert_directory(tmp, {}),
    "this is a directory of Zarr data, not references": lambda tmp: _convert_directory(
        tmp, {"metadata": {".zgroup": {"zarr_format": 2}}, "zarr_consolidated_format": 1}
    ),
    "'x' is not a byte request": lambda tmp: _bounds(3, "x"),  # type: ignore[arg-type]
    "the source is closed": lambda tmp: _read_closed(),
    "a package for this protocol is missing: paramiko": lambda tmp: or_output_error(
        _raise(ImportError("paramiko")), "o"
    ),
    "fsspec cannot write with this protocol": lambda tmp: or_output_error(_raise(NotImplementedError()), "o"),
    "what looks like a secret in the URL is removed": lambda tmp: _raise(
        ValueError(h5zarr.translate(OCEAN, target_url="https://host/a.nc?X-Amz-Signature=abc").warnings)
    )(),
    "include must be a list of strings, not of int": lambda tmp: h5zarr.translate(OCEAN, include=[1]),
    "include must be a list of strings, not one string": lambda tmp: h5zarr.translate(OCEAN, include="sst"),
}

# What no input reaches: it guards against damage that other checks find first, or that only bytes made by hand have.
UNTRIGGERED = {
    "a chunk occurs twice": "keys of JSON objects are unique, and own lines are compared with what h5zarr writes",
    "a reference needs more than 63 bits": "Icechunk itself refuses to write such a reference",
    "lacks a field that every manifest has": "found by the fuzzed manifests of test_manifest_file.py",
    "has chunks without a location": "found by the fuzzed manifests of test_manifest_file.py",
    "the chunks are so far apart that they need more than": "takes a grid of billions of chunks",
    "ends within a list": "found by the fuzzed manifests of test_manifest_file.py",
    "rows instead of": "a Parquet file with the right token has the right number of rows, unless made by hand",
    "there are chunk references outside any array": "own lines that fail it are read by the general parser",
}


def _decode(document: dict[str, Any]) -> None:
    decode_references(json.dumps(document).encode(), "refs.json")


def _raise(error: Exception) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def _read_closed() -> None:
    source = open_source(OCEAN)
    source.close()
    source.read_many([Span(0, 8)])


def _convert_unfilled(directory: Path) -> None:
    array = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4", "fill_value": None, "order": "C"}
    array |= {"compressor": None, "filters": None}
    entries = {".zgroup": {"zarr_format": 2}, "v/.zarray": array, "v/0": "base64:AAAAAAAAAAA="}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in entries.items()}
    (directory / "refs.json").write_text(json.dumps(texts))
    h5zarr.convert(directory / "refs.json", directory / "out.json")


def _convert_directory(directory: Path, metadata: dict[str, Any]) -> None:
    (directory / "data").mkdir()
    (directory / "data" / ".zmetadata").write_text(json.dumps(metadata))
    h5zarr.convert(directory / "data", directory / "out.json")


@pytest.mark.parametrize("message", TRIGGERS)
def test_the_message_is_given(message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        assert TRIGGERS[message](tmp_path) == 2
        said = capsys.readouterr().err
    except (h5zarr.H5ZarrError, TypeError, ValueError) as error:
        said = str(error)
    assert message in said


@cache
def _quoted() -> str:
    return "\n".join(path.read_text() for path in (PROJECT / "tests").rglob("*.py"))


def _messages() -> Iterator[tuple[str, list[str]]]:
    """Yield the place of each error, Problem and Failure with a message, and the literal parts of that."""
    for room in ROOMS:
        files = [PACKAGE / room] if room.endswith(".py") else sorted((PACKAGE / room).rglob("*.py"))
        for file in files:
            module = ast.parse(file.read_text())
            functions = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
            constants = ast.Module([node for node in module.body if isinstance(node, ast.Assign)], [])
            for scope in (constants, *functions):
                yield from _raised(scope, file)


def _raised(function: ast.AST, file: Path) -> Iterator[tuple[str, list[str]]]:
    named: dict[str, list[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            named.setdefault(node.targets[0].id, []).extend(_literals(node.value, {}))
    for node in ast.walk(function):
        call = node.exc if isinstance(node, ast.Raise) else node
        if isinstance(call, ast.Call) and (call is not node or getattr(call.func, "id", "") in MADE):
            parts = [part for argument in call.args for part in _literals(argument, named)]
            if long := [part.strip(" .:,;'\"(") for part in parts if len(part.strip()) >= 8]:
                yield f"{file.relative_to(PACKAGE)}:{call.lineno}", long


def _literals(tree: ast.AST, named: dict[str, list[str]]) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
        elif isinstance(node, ast.Name):
            found += named.get(node.id, [])
    return found


def _is_quoted(part: str) -> bool:
    words = re.split(r"\s+", part)
    threes = [" ".join(words[at : at + 3]) for at in range(len(words) - 2)] or [part]
    return any(three in _quoted() for three in threes if len(three) > 7)


def test_every_message_is_triggered_by_a_test() -> None:
    found = list(_messages())
    assert len(found) > 250
    assert [(place, parts) for place, parts in found if not any(map(_is_quoted, parts))] == []


def test_what_cannot_be_triggered_is_still_a_message() -> None:
    texts = {part for _, parts in _messages() for part in parts}
    assert [one for one in UNTRIGGERED if not any(one in text for text in texts)] == []
