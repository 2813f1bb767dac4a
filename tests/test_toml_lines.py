"""The lines of keys in TOML documents."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h5zarr.cli.toml_lines import KeyPath, key_lines

DOCUMENT = '''\
# a comment with [brackets] and a = sign
title = "a \\"quoted\\" = text"   # name = 1

[defaults]
workers = 4
text = """
[not.a.table]
key = 1
""\\""""
raw = \'\'\'
also = "not a key"\'\'\'
many = [
  "one",  # with ] in a comment
  [2, 3],
  { deep = { x = 1 }, y = "}" },
]
a.b."c.d" = 1979-05-27T07:32:00Z
[collection.ocean]
storage_options = { key = "${KEY}", client_kwargs.region = "x" }
[[collection.ocean.cube]]
name = "first"
[[collection.ocean.cube]]
name = "second"
[collection.ocean.cube.more]
x = 1
["odd \\u00e4"]
'k' = -inf'''


def paths(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the paths of everything in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from paths(inner, (*path, key))


def test_every_key_has_its_line() -> None:
    lines = key_lines(DOCUMENT)
    assert set(lines) == set(paths(tomllib.loads(DOCUMENT)))
    assert lines["title",] == 2
    assert lines["defaults", "workers"] == 5
    assert lines["defaults", "raw"] == 10
    assert [lines["defaults", "many", number] for number in range(3)] == [13, 14, 15]
    assert lines["defaults", "many", 2, "deep", "x"] == 15
    assert lines["defaults", "a", "b", "c.d"] == 17
    assert lines["collection", "ocean", "storage_options", "client_kwargs", "region"] == 19
    assert lines["collection", "ocean", "cube", 1, "name"] == 23
    assert lines["collection", "ocean", "cube", 1, "more", "x"] == 25
    assert lines["odd ä", "k"] == 27


def test_lines_that_end_as_on_windows_count_the_same() -> None:
    assert key_lines(DOCUMENT.replace("\n", "\r\n")) == key_lines(DOCUMENT)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment", "x = 1", "x = [ # nothing\n ]\ny = {}\n"])
def test_small_documents_have_lines(text: str) -> None:
    assert set(key_lines(text)) == set(paths(tomllib.loads(text)))


WORDS = st.text(alphabet="ab.=#[]{}\"\\'\n,$ä ", max_size=8)
VALUES = st.recursive(
    st.one_of(st.integers(), st.booleans(), WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=8,
)


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def written(value: Any) -> str:
    """Return a value in TOML."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return "[" + "".join(f"\n  {written(one)}," for one in value) + "\n]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(key)} = {written(one)}" for key, one in value.items()) + "}"
    return str(value).lower()


@given(st.dictionaries(WORDS, VALUES, max_size=4), st.dictionaries(WORDS, VALUES, min_size=1, max_size=3))
def test_the_keys_are_those_that_tomllib_finds(first: dict[str, Any], second: dict[str, Any]) -> None:
    pairs = "".join(f"{quoted(key)} = {written(value)}  # x = 1\n" for key, value in first.items())
    text = pairs + "".join(f"[[t.l]]\n{quoted(key)} = {written(value)}\n" for key, value in second.items())
    if "t" in first:
        return
    document = tomllib.loads(text)
    lines = key_lines(text)
    assert set(lines) == set(paths(document))
    source = text.splitlines() if "\n" in text else [text]
    for path, line in lines.items():
        assert not isinstance(path[-1], str) or quoted(path[-1]) in source[line - 1] or path[-1] in ("t", "l")
