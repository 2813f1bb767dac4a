"""The jobs of a configuration file, as arguments of `h5zarr index`. Options of the command line go first."""

from __future__ import annotations

import argparse
import os
from typing import Any

from h5zarr.cli.config_file import Collection, ConfigError, read_collections
from h5zarr.cli.index_options import add_index_options
from h5zarr.cli.options import Pairs
from h5zarr.cli.parsing import Parser

__all__ = ["Collection", "ConfigError", "read_archive", "read_jobs"]

_NOT_OPTIONS = ("places", "config", "collection")


def read_jobs(arguments: argparse.Namespace) -> list[argparse.Namespace]:
    """Return the arguments of a job for each collection. Raises ConfigError."""
    if arguments.places:
        raise ConfigError("give either --config, or sources and OUT: with --config, the file names them")
    given = _given(arguments.words)
    collections = read_archive(arguments)
    for name in ("report", "metrics", "job"):
        if len(collections) > 1 and "{collection}" not in given.get(name, "{collection}"):
            raise ConfigError(f"--{name}: each collection needs its own: use {{collection}} in the name")
    return [_job(arguments, collection, given) for collection in collections]


def read_archive(arguments: argparse.Namespace) -> list[Collection]:
    """Return the collections that the user wants. Raises ConfigError."""
    if not arguments.config:
        raise ConfigError("--collection needs --config FILE, which describes the collections")
    return read_collections(arguments.config, _options(_parser()), arguments.collection, os.environ)


def _job(arguments: argparse.Namespace, collection: Collection, given: dict[str, Any]) -> argparse.Namespace:
    parser = _parser()
    values = {**vars(parser.parse_args([])), **collection.values}
    if "files_from" in given:
        values.pop("sources", None)
    for name, value in given.items():
        if isinstance(_options(parser)[name], Pairs):
            value = {**values[name], **value}
        elif name in ("report", "metrics", "job"):
            value = value.replace("{collection}", collection.name)
        values[name] = value
    values |= {"sources": values.get("sources", []), "run_id": arguments.run_id}
    return argparse.Namespace(**values, command=arguments.command, collection_name=collection.name)


def _given(words: list[str]) -> dict[str, Any]:
    """Return the options that are on the command line, without defaults."""
    parser = _parser()
    for action in parser._actions:
        action.default = argparse.SUPPRESS
    found = vars(parser.parse_known_args(words)[0])
    return {name: value for name, value in found.items() if name not in _NOT_OPTIONS}


def _parser() -> Parser:
    parser = Parser(add_help=False)
    add_index_options(parser)
    for action in parser._get_positional_actions():
        action.required = False
    return parser


def _options(parser: Parser) -> dict[str, argparse.Action]:
    return {action.dest: action for action in parser._actions if action.option_strings}
