"""Values in a configuration file, checked and converted as the options of the command line are."""

from __future__ import annotations

import argparse
import glob
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from h5zarr.cli.options import Pairs, Tables, storage_option
from h5zarr.cli.parsing import suggestion
from h5zarr.cli.toml_lines import KeyPath

PLACES = frozenset(("sources", "out", "files_from", "report", "metrics", "allow"))
HIDDEN = ("storage_options", "output_options", "push_metrics", "otel")
"""Options whose values are never shown. Only they may refer to environment variables."""

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET = re.compile(
    r"secret|token|passw|passphrase|credential|signature|authori[sz]ation|cookie|connection_string|^auth$|(?:^|[_-])key$",
    re.IGNORECASE,
)
_NOT_SECRET = frozenset(("anon", "google_default", "cache", "cloud", "browser"))  # values of gcsfs's `token`
_PASSWORD = re.compile(r"://[^/@]*:([^@]*)@")


def option_value(action: argparse.Action, value: Any) -> Any:
    """Return the value that an option has if a file gives it. Raises ArgumentTypeError."""
    if isinstance(action, argparse._StoreTrueAction):
        return _expect(value, bool, "true or false")
    if isinstance(action, Pairs):
        table = _expect(value, dict, "a table such as { name = value }")
        return {key: _pair(action, key, one) for key, one in table.items()}
    if isinstance(action, Tables):
        if not isinstance(value, list) or not all(isinstance(one, str | dict) for one in value):
            raise argparse.ArgumentTypeError("expected a list of tables or strings")
        describe: Any = action.type
        return [describe(one) for one in value]
    if isinstance(action, argparse._AppendAction):
        return [_scalar(action, one) for one in _strings(value)]
    return _scalar(action, value)


def source_list(value: Any) -> list[str]:
    """Return the sources: one or several strings. Raises ArgumentTypeError."""
    sources = [value] if isinstance(value, str) else _strings(value)
    if not sources:
        raise argparse.ArgumentTypeError("expected at least one source")
    return sources


def _strings(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise argparse.ArgumentTypeError("expected a list of strings")
    return value


def _expect(value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        raise argparse.ArgumentTypeError(f"expected {what}")
    return value


def _pair(action: argparse.Action, key: str, value: Any) -> Any:
    if action.type is storage_option:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise argparse.ArgumentTypeError(f"{key}: expected a number")
    decode: Any = action.type
    return decode(f"{key}={value}")[1]


def _scalar(action: argparse.Action, value: Any) -> Any:
    if action.type is None:
        found = _expect(value, str, "a string")
    elif isinstance(value, bool) or not isinstance(value, int | float | str):
        raise argparse.ArgumentTypeError("expected a number or a string")
    else:
        decode: Any = action.type
        try:
            found = decode(str(value))
        except ValueError:
            raise argparse.ArgumentTypeError(f"{value!r} is not a number") from None
    if action.choices is not None and found not in action.choices:
        known = [str(choice) for choice in action.choices]
        raise argparse.ArgumentTypeError(f"{value!r} is not one of {', '.join(known)}{suggestion(str(value), known)}")
    return found


# --- secrets


def expand(value: Any, environment: Mapping[str, str], *, is_url: bool = False) -> Any:
    """Return a value with all environment variables that it refers to. Raises ArgumentTypeError if one is not set.

    In a URL, a variable that is only a part of it is escaped: a password may contain any character.
    """
    if isinstance(value, dict):
        return {key: expand(one, environment) for key, one in value.items()}
    if isinstance(value, list):
        return [expand(one, environment) for one in value]
    if not isinstance(value, str):
        return value
    missing = [name for name in _REFERENCE.findall(value) if name not in environment]
    if missing:
        raise argparse.ArgumentTypeError(f"the environment variable {missing[0]} is not set")
    is_escaped = is_url and _REFERENCE.fullmatch(value) is None
    return _REFERENCE.sub(
        lambda match: quote(environment[match[1]], safe="") if is_escaped else environment[match[1]], value
    )


def check_secrets(option: str, value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yield where an option has a secret that belongs into the environment, or a variable that would be shown."""
    for inner, text in _texts(value, path):
        name = ".".join(str(part) for part in inner[len(path) - 1 :] if isinstance(part, str))
        if option not in HIDDEN and "${" in text:
            allowed = f"{', '.join(HIDDEN[:-1])} and {HIDDEN[-1]}"
            yield inner, f"{name}: only {allowed} may contain ${{NAME}}: other values are shown in logs and reports"
        elif _is_secret(inner if option in HIDDEN[:2] else (), text) or (option not in HIDDEN and _has_secret(text)):
            yield inner, f'{name}: put secrets into an environment variable, and write "${{NAME}}" here'


def _texts(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yield all strings in a value, with their paths."""
    if isinstance(value, str):
        yield path, value
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _texts(inner, (*path, key))


def _is_secret(path: KeyPath, text: str) -> bool:
    """Return whether this looks like a secret that is written out, by its name or as a password in a URL."""
    if _REFERENCE.search(text):
        return False
    is_named = any(isinstance(part, str) and _SECRET.search(part) for part in path) and text not in _NOT_SECRET
    return is_named or any(_PASSWORD.findall(text))


def _has_secret(text: str) -> bool:
    """Return whether a path or URL has a part that is never shown, such as a signature."""
    from h5zarr.io.location import Location

    return "://" in text and Location.parse(text).without_secrets() != text


# --- places


def locate(option: str, value: Any, directory: str) -> Any:
    """Return a value in which relative paths start at `directory`. URLs and `-` stay."""
    if option == "cube":
        return [{**one, "out": _locate(one["out"], directory)} for one in value]
    if option not in PLACES:
        return value
    if isinstance(value, list):
        return [_locate(one, directory) for one in value]
    return _locate(value, directory) if isinstance(value, str) else value


def _locate(place: str, directory: str) -> str:
    from h5zarr.io.location import Location

    if place in ("", "-") or os.path.isabs(place) or Location.parse(place).path is None:
        return place
    ending = "/" if place.endswith("/") else ""
    start = glob.escape(directory) if glob.has_magic(place) else directory
    return os.path.normpath(os.path.join(start, place)) + ending
