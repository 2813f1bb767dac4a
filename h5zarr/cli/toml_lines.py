"""The lines on which the keys of a TOML document are, which `tomllib` does not tell.

The scanner expects text that `tomllib` accepts, and understands just enough to find keys: strings, comments, brackets.
"""

from __future__ import annotations

import re
from typing import TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]

_SPACE = re.compile(r"(?:[ \t]|\r?\n|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(r'"""(?:\\.|[^\\])*?"""(?!")|\'\'\'.*?\'\'\'(?!\')|"(?:\\.|[^"\\])*"|\'[^\']*\'', re.DOTALL)
_SCALAR = re.compile(r"[^,\]}#\n]*")


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the line, counted from 1, of every key and table, by its path. Tables in a list have their number in it.

    A table that several lines add to is where it is first named.
    """
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._lines: dict[KeyPath, int] = {}
        self._counts: dict[KeyPath, int] = {}  # of tables in lists of tables

    def scan(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        self._skip(_SPACE)
        while self._at < len(self._text):
            if self._peek("["):
                table = self._header()
            else:
                self._pair(table)
            self._skip(_SPACE)
        return self._lines

    def _header(self) -> KeyPath:
        """Read [a.b] or [[a.b]], and return the path of the table that begins."""
        is_list = self._peek("[[")
        self._at += 2 if is_list else 1
        keys = self._keys()
        path: KeyPath = ()
        for key in keys[:-1]:
            path = self._inside((*path, key))
        path = (*path, keys[-1])
        if is_list:
            self._note(path)
            self._counts[path] = self._counts.get(path, 0) + 1
        path = self._inside(path)
        self._note(path)
        self._at += 2 if is_list else 1
        return path

    def _inside(self, path: KeyPath) -> KeyPath:
        """Return the path of a table, or of the last table of a list."""
        self._note(path)
        return (*path, self._counts[path] - 1) if path in self._counts else path

    def _pair(self, table: KeyPath) -> None:
        path = table
        for key in self._keys():
            path = (*path, key)
            self._note(path)
        self._at += 1  # the equals sign
        self._skip(_BLANK)
        self._value(path)

    def _keys(self) -> list[str]:
        """Read a dotted key, with the space around it."""
        found = []
        while True:
            self._skip(_BLANK)
            string = _STRING.match(self._text, self._at)
            match = string or _BARE.match(self._text, self._at)
            assert match is not None  # tomllib accepts the text
            found.append(_unquote(match[0]) if string else match[0])
            self._at = match.end()
            self._skip(_BLANK)
            if not self._peek("."):
                return found
            self._at += 1

    def _value(self, path: KeyPath) -> None:
        if self._peek("["):
            self._items(path)
        elif self._peek("{"):
            self._inline_table(path)
        else:
            self._skip(_STRING if _STRING.match(self._text, self._at) else _SCALAR)

    def _items(self, path: KeyPath) -> None:
        self._at += 1
        number = 0
        self._skip(_SPACE)
        while not self._peek("]"):
            self._note((*path, number))
            self._value((*path, number))
            self._separator()
            number += 1
        self._at += 1

    def _inline_table(self, path: KeyPath) -> None:
        self._at += 1
        self._skip(_SPACE)
        while not self._peek("}"):
            self._pair(path)
            self._separator()
        self._at += 1

    def _separator(self) -> None:
        self._skip(_SPACE)
        if self._peek(","):
            self._at += 1
            self._skip(_SPACE)

    def _note(self, path: KeyPath) -> None:
        self._lines.setdefault(path, self._text.count("\n", 0, self._at) + 1)

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self._at)
        assert match is not None
        self._at = match.end()


def _unquote(text: str) -> str:
    """Return the key in quotes, with escapes as `tomllib` understands them."""
    import tomllib

    (key,) = tomllib.loads(f"{text} = 0")
    return key
