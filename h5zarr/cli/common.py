"""What the commands share: exit codes, and how they write to people."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, TextIO

from h5zarr.cli.terms import in_cli_terms
from h5zarr.errors import H5ZarrError, OutputError, PackageMissing

if TYPE_CHECKING:
    from h5zarr.io.location import Location

DONE, DONE_WITH_PROBLEMS, NOTHING = 0, 1, 2

EXIT_CODES = """\
exit codes:
  0  success
  1  done, but parts of the file could not be read or translated: see the problems
  2  nothing was done, or the command line is wrong
"""
PATTERNS = """\
patterns:
  *, ? and [...] match within one name, ** matches any number of groups. A pattern without a leading slash matches at
  any depth; one that matches a group matches everything in it.
"""


@cache
def option_names() -> frozenset[str]:
    """Return the Python names of all options of all commands."""
    from h5zarr.cli import build_parser

    parsers = [parser for action in build_parser()._actions for parser in _subparsers(action)]
    return frozenset(action.dest for parser in parsers for action in parser._actions if action.option_strings)


def _subparsers(action: argparse.Action) -> Iterable[argparse.ArgumentParser]:
    return action.choices.values() if isinstance(action, argparse._SubParsersAction) else ()


def phrase(text: str) -> str:
    """Return a message of the library in the terms of the command line."""
    return in_cli_terms(text, option_names())


def complain(place: str | Location, message: str, remedy: str = "") -> int:
    """Write an error to stderr, without secrets in the URL, and return the exit code for it."""
    from h5zarr.io.location import Location

    shown = str(Location.parse(place))
    tell(error_lines(shown, message.removeprefix(f"{shown}:").strip(), remedy))
    return NOTHING


def error_lines(place: str, message: str, remedy: str = "") -> list[str]:
    """Return the lines of an error message in the terms of the command line."""
    from h5zarr.display import readable

    lines = [f"h5zarr: {readable(place)}: {readable(phrase(message))}"]
    return [*lines, f"  {readable(phrase(remedy))}"] if remedy else lines


def complain_of_source(source: str, error: H5ZarrError) -> int:
    """Write why a file cannot be read, and return the exit code. The user may have given references instead."""
    from h5zarr.containers.registry import container_of
    from h5zarr.io.location import Location
    from h5zarr.signatures import WrongFormat

    if isinstance(error, OutputError):
        return complain_of_output(error)
    is_other = isinstance(error, WrongFormat) and error.format == "zarr"
    if not is_other and container_of(Location.parse(source)) is not None:
        remedy = 'Open them with xarray and engine="h5zarr", or write another container with h5zarr convert.'
        return complain(source, "these are references, not the file that they refer to", remedy)
    return complain_of(source, error)


def complain_of(place: str | Location, error: H5ZarrError) -> int:
    """Write what is wrong with a place, and return the exit code. A missing package may concern another place."""
    if isinstance(error, PackageMissing):
        place = error.place or place
    return complain(place, str(error), error.remedy)


def complain_of_output(error: OutputError) -> int:
    """Write why an output cannot be written, and return the exit code."""
    return complain(error.path, str(error), error.remedy)


def tell(lines: Iterable[str]) -> None:
    """Write lines to stderr."""
    encoding = sys.stderr.encoding or "utf-8"
    for line in _encodable(lines, encoding):
        write_message(line)


def write_message(text: str) -> None:
    """Write text to stderr. If nobody reads it any more, as in `2>&1 | head`, the command goes on without messages."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except BrokenPipeError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Discard what is written to a stream from now on. Python would complain once more when it flushes at exit."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to stdout. Characters that its encoding lacks are replaced, so that a report is always complete."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.writelines(_encodable(lines, encoding))


def _encodable(lines: Iterable[str], encoding: str) -> Iterator[str]:
    for line in lines:
        yield line.encode(encoding, "replace").decode(encoding) + "\n"


def read_list(place: str) -> list[str]:
    """Return the names in a list of files; `-` is standard input. Raises SourceError if it cannot be read."""
    from h5zarr.commands.catalog.listing import read_names
    from h5zarr.errors import SourceGone
    from h5zarr.io.location import Location

    if place == "-":
        return read_names(sys.stdin)
    try:
        with open(place, encoding="utf-8", errors="surrogateescape") as lines:
            return read_names(lines)
    except OSError as error:
        what = f"{Location.parse(place)}: {error.strerror or type(error).__name__}"
        raise SourceGone(what, remedy="Check files_from=.") from None


def require_index(sources: Iterable[str], out: str, shown: str, *, is_dask: bool) -> None:
    """Raise PackageMissing if an index of these sources needs a package that is not installed."""
    from h5zarr.io.protocols import require_sources
    from h5zarr.packages import require, require_catalog

    require_catalog(shown)
    if is_dask:
        require("distributed", "dask=")
    require_sources((*sources, out))
