"""The configuration file of an archive: collections with their sources, outputs and options, and shared defaults.

    [defaults]
    workers = 4

    [collection.ocean]
    sources = "ocean/**/*.nc"
    out = "refs/{collection}"

Everything that is wrong is reported at once, with its line.
"""

from __future__ import annotations

import argparse
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from h5zarr.cli.config_values import check_secrets, expand, locate, option_value, source_list
from h5zarr.cli.options import Pairs
from h5zarr.cli.parsing import suggestion
from h5zarr.cli.toml_lines import KeyPath, key_lines
from h5zarr.errors import ArgumentError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_NOT_IN_FILES = frozenset(("help", "config", "collection", "run_id"))  # they belong to one run
_WITH_NAME = ("out", "report", "metrics", "job")  # may contain {collection}
_OWN = ("out", "report", "metrics", "job")  # two collections must not share them


class ConfigError(ArgumentError):
    """A configuration file is wrong. The message has a line for everything that is."""


@dataclass(frozen=True, slots=True)
class Collection:
    """The values of one collection by the Python names of the options, besides `sources` and `out`."""

    name: str
    values: Mapping[str, Any] = field(repr=False)  # they may be secret


def read_collections(
    path: str, options: Mapping[str, argparse.Action], names: Iterable[str], environment: Mapping[str, str]
) -> list[Collection]:
    """Return the collections of a file, or those with the given names. Raises ConfigError.

    `options` are the options of the command by name. Only the values of the returned collections are checked: another
    one may need environment variables that are not set here.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        document = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or 'this is not text in UTF-8'}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax_error(path, str(error), text)) from None
    reader = _Reader(document, key_lines(text), os.path.dirname(os.path.abspath(path)), options, environment)
    found = list(reader.collections(tuple(names)))
    if reader.faults:
        raise ConfigError("\n".join(f"{path}:{line}: {what}" for line, what in sorted(set(reader.faults))))
    return found


def _syntax_error(path: str, message: str, text: str) -> str:
    """Return an error of `tomllib` with the line in front. It names the end of the document without a number."""
    match = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", message)
    line = match[1] if match and match[1] else str(text.count("\n") + 1)
    return f"{path}:{line}: {message[: match.start()] if match else message}"


@dataclass(slots=True)
class _Reader:
    """Reads a document, and collects what is wrong with it, with the lines."""

    document: dict[str, Any]
    lines: dict[KeyPath, int]
    directory: str
    options: Mapping[str, argparse.Action]
    environment: Mapping[str, str]
    faults: list[tuple[int, str]] = field(default_factory=list)

    def collections(self, wanted: tuple[str, ...]) -> Iterator[Collection]:
        """Yield the wanted collections, or all of them."""
        for key in self.document.keys() - {"defaults", "collection"}:
            known = suggestion(key, ("defaults", "collection"))
            self._fault((key,), f"{key}: expected [defaults] and [collection.NAME]{known}")
        tables = self._tables()
        for name in wanted:
            if name not in tables:
                known = suggestion(name, tables) or f": there are {', '.join(tables) or 'none'}"
                self._fault((), f"there is no collection {name}{known}")
        for name in tables:
            self._check_keys(("collection", name), tables[name], {*self.options, "sources", "out"})
        chosen = [name for name in tables if not wanted or name in wanted]
        found = [Collection(name, self._values(name, tables[name])) for name in chosen]
        self._check_shared(found)
        yield from found

    def _tables(self) -> dict[str, dict[str, Any]]:
        """Return the tables of all collections, in the order of the file."""
        self._check_keys(("defaults",), self._defaults, {*self.options, "sources", "out"})
        tables = self.document.get("collection")
        if not isinstance(tables, dict) or not all(isinstance(one, dict) for one in tables.values()) or not tables:
            self._fault(("collection",), "expected at least one table [collection.NAME] with `sources` and `out`")
            return {}
        for name in tables:
            if _NAME.fullmatch(name) is None:
                what = "the name of a collection has letters, digits and . _ -, and starts with a letter or digit"
                self._fault(("collection", name), what)
        return tables

    @property
    def _defaults(self) -> dict[str, Any]:
        defaults = self.document.get("defaults", {})
        return defaults if isinstance(defaults, dict) else {"defaults": defaults}

    def _check_keys(self, path: KeyPath, table: dict[str, Any], known: set[str]) -> None:
        known = known - _NOT_IN_FILES
        for key in table.keys() - known:
            self._fault((*path, key), f"there is no option {key}{suggestion(key, known)}")

    def _values(self, name: str, table: dict[str, Any]) -> dict[str, Any]:
        """Return all values of a collection, with the defaults. Tables of options are merged."""
        values = self._read(("defaults",), self._defaults, name)
        for key, value in self._read(("collection", name), table, name).items():
            is_table = isinstance(self.options.get(key), Pairs)
            values[key] = {**values.get(key, {}), **value} if is_table else value
        if "out" not in values:
            self._fault(("collection", name), f"the collection {name} needs `out`, the directory for the references")
        if ("sources" in values) is ("files_from" in values):
            self._fault(("collection", name), f"the collection {name} needs either `sources` or `files_from`")
        return values

    def _read(self, path: KeyPath, table: dict[str, Any], name: str) -> dict[str, Any]:
        """Return the checked values of a table, and note what is wrong with the others."""
        values = {}
        for key, given in table.items():
            if key not in self.options and key not in ("sources", "out"):
                continue
            exposed = list(check_secrets(key, given, (*path, key)))
            for place, what in exposed:
                self._fault(place, what)
            try:
                if not exposed:
                    values[key] = self._value(key, given, name)
            except argparse.ArgumentTypeError as error:
                self._fault((*path, key), f"{key}: {error}")
        return values

    def _value(self, key: str, given: Any, name: str) -> Any:
        value = expand(given, self.environment, is_url=key in ("push_metrics", "otel"))
        if key == "sources":
            value = source_list(value)
        elif key == "out":
            if not isinstance(value, str) or not value:
                raise argparse.ArgumentTypeError("expected a string")
        else:
            value = option_value(self.options[key], value)
        if key in _WITH_NAME:
            value = value.replace("{collection}", name)
        if key == "cube":
            value = [{**one, "out": one["out"].replace("{collection}", name)} for one in value]
        return locate(key, value, self.directory)

    def _check_shared(self, found: list[Collection]) -> None:
        """Note collections that would overwrite each other's outputs."""
        for key in _OWN:
            owners: dict[str, str] = {}
            for one in found:
                value = str(one.values.get(key, "")).rstrip("/")
                if value and (owner := owners.setdefault(value, one.name)) != one.name:
                    place: KeyPath = ("collection", one.name, key)
                    path = place if place in self.lines else ("defaults", key)
                    what = f"the collections {owner} and {one.name} have the same `{key}`"
                    self._fault(path, f"{what}: use {{collection}} in its name, or one collection with several sources")

    def _fault(self, path: KeyPath, what: str) -> None:
        while path and path not in self.lines:
            path = path[:-1]
        self.faults.append((self.lines.get(path, 1), what))
