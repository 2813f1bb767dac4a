"""Path patterns. `*`, `?` and `[...]` match within one name; `**` matches any number of groups.

A pattern without a leading slash matches at any depth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Return a function that tests whether a whole path matches."""
    if not pattern.startswith("/"):
        pattern = f"/**/{pattern}"
    names = split_path(pattern)
    return lambda path: _matches(names, split_path(path))


def compile_patterns(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Return a function that tests whether a path, or a group that contains it, matches any of the patterns."""
    tests = [compile_pattern(pattern) for pattern in patterns]
    return lambda path: any(test(place) for place in _with_groups(path) for test in tests)


def split_path(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _with_groups(path: str) -> Iterable[str]:
    while len(path) > 1:
        yield path
        path = path.rpartition("/")[0]


def _matches(names: list[str], path: list[str]) -> bool:
    if not names:
        return not path
    if names[0] == "**":
        return _matches(names[1:], path) or (bool(path) and _matches(names, path[1:]))
    return bool(path) and fnmatchcase(path[0], names[0]) and _matches(names[1:], path[1:])
