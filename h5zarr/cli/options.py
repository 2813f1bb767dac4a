"""The options that commands share, each declared once. Names and meanings are those of the Python parameters.

`keywords` turns parsed arguments back into Python keywords, so that a command only says which it passes on.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeAlias

from h5zarr.cli.parsing import size, suggestion

if TYPE_CHECKING:
    from h5zarr.io.network import NetworkPolicy
    from h5zarr.limits import Limits

# Settings of a policy that are sizes.
_SIZE_NAME = re.compile("nbytes$|^bytes_")

Parser: TypeAlias = argparse.ArgumentParser | argparse._ArgumentGroup

OPENING = ("storage_options", "anon", "network", "limits")
SELECTION = ("group", "include", "exclude")
FORM = ("zarr_format", "nz", "chunk_bytes", "inline_bytes", "max_inline_bytes", "joinable")
WRITING = ("output_options", "overwrite", "branch", "message")

# Storage options that are text whatever they look like.
_TEXT = re.compile(r"key|secret|token|passw|user|profile|project|account|credential|(?:^|_)id$", re.IGNORECASE)


def keywords(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the chosen values of these options as Python keywords."""
    return {name: getattr(arguments, name) for name in names}


def add_config(parser: Parser, what: str) -> None:
    """Add the options for a configuration file; `what` is done with its collections."""
    parser.add_argument(
        "--config", action=_Config, metavar="FILE", help=f"{what} the collections of a configuration file in TOML"
    )
    parser.add_argument(
        "--collection",
        action="append",
        default=[],
        metavar="NAME",
        help="with --config: only this collection. May be repeated",
    )


class _Config(argparse.Action):
    """Takes the name of a file. The places of the command are in the file, so they are not required."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, values)
        for action in parser._get_positional_actions():
            action.required = False


def add_location(parser: Parser) -> None:
    """Add the options for reaching a place through fsspec: the first two of `OPENING`."""
    _add_pairs(
        parser,
        "--storage-options",
        storage_option,
        "KEY=VALUE",
        "fsspec option for opening the input, such as anon=true, profile=research or "
        "endpoint_url=http://host:9000. VALUE may be JSON: "
        """'client_kwargs={"region_name": "eu-west-1"}'. May be repeated""",
    )
    parser.add_argument("--anon", action="store_true", help="read from the cloud without credentials")


def add_network(parser: Parser) -> None:
    """Add the option for reading over a network."""
    _add_pairs(
        parser,
        "--network",
        network_option,
        "NAME=VALUE",
        "how to read over a network: timeout_seconds=120, attempts=5, concurrency=16 and others. Latency and "
        "bandwidth are measured unless you give them. May be repeated",
    )


def add_opening(parser: Parser) -> None:
    """Add the options of every command that opens a file or references: `OPENING`."""
    add_location(parser)
    add_network(parser)
    _add_pairs(
        parser,
        "--limits",
        limit_option,
        "NAME=NUMBER",
        "resources that an untrusted input may use: depth, object_count, metadata_nbytes, file_count, chunk_nbytes, "
        "references_nbytes. May be repeated",
    )


def add_allow(parser: Parser, what: str) -> None:
    """Add the option that allows the input to refer to other files; `what` starts the help text."""
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        type=_place,
        metavar="PLACE",
        help=f"{what} below PLACE, a directory or its URL; / allows all files on this machine. May be repeated",
    )


def add_selection(parser: Parser, group_help: str = "translate only this group, which becomes the root") -> None:
    """Add the options that choose a part of a file: `SELECTION`."""
    parser.add_argument("--group", default="/", metavar="PATH", help=group_help)
    parser.add_argument(
        "--include", action="append", default=[], metavar="PATTERN", help="use only arrays that match. May be repeated"
    )
    parser.add_argument(
        "--exclude", action="append", default=[], metavar="PATTERN", help="leave out arrays that match. May be repeated"
    )


def add_zarr_format(parser: Parser) -> None:
    """Add the option for the version of Zarr."""
    parser.add_argument(
        "--zarr-format", type=int, choices=(2, 3), default=3, help="version of the Zarr metadata (default 3)"
    )


def add_max_inline(parser: Parser) -> None:
    """Add the limit for inlined data."""
    parser.add_argument(
        "--max-inline-bytes",
        type=_at_least(0),
        metavar="SIZE",
        help="limit for all inlined arrays together (default 64 MiB)",
    )


def add_form(parser: Parser) -> None:
    """Add the options that choose how arrays are represented: `FORM`."""
    add_zarr_format(parser)
    parser.add_argument("--nz", action="store_true", help="declare the NZ-1.0 convention, and warn about violations")
    parser.add_argument(
        "--chunk-bytes",
        type=_at_least(1),
        metavar="SIZE",
        help="cut contiguous datasets and netCDF-3 variables into chunks of about SIZE, such as 8MB (default 8MiB)",
    )
    parser.add_argument(
        "--inline-bytes",
        type=_at_least(0),
        metavar="SIZE",
        help="store arrays of up to SIZE in the references themselves; 0 inlines only what cannot be referenced "
        "(default: 1 KiB, and 256 KiB for coordinates)",
    )
    add_max_inline(parser)
    parser.add_argument(
        "--joinable",
        action="store_true",
        help="make arrays that can be joined with those of other files: chunk shapes, codecs and fill values do "
        "not depend on the length of an array",
    )


def add_strict(parser: Parser) -> None:
    """Add the option to write all or nothing."""
    parser.add_argument("--strict", action="store_true", help="write nothing if anything must be left out")


def add_output_options(parser: Parser) -> None:
    """Add the option for the file system that is written to."""
    _add_pairs(parser, "--output-options", storage_option, "KEY=VALUE", "like --storage-options, but for OUT")


def add_overwrite(parser: Parser, what: str = "OUT or FILE") -> None:
    """Add the option to replace what h5zarr did not write."""
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help=f"replace {what} even if it holds neither references nor a report. HDF5 and netCDF files are never "
        "replaced",
    )


def add_writing(parser: Parser) -> None:
    """Add the options of commands that write references: `WRITING`."""
    add_output_options(parser)
    add_overwrite(parser)
    parser.add_argument(
        "--branch", help="branch of an Icechunk repository, created if it does not exist (default main)"
    )
    parser.add_argument("--message", help="commit message for an Icechunk repository")


def add_reporting(parser: Parser, quiet: str = "print only problems") -> None:
    """Add the options for what a command says at its end."""
    parser.add_argument("--report", metavar="FILE", help="write a report as JSON; - is standard output")
    parser.add_argument("--quiet", action="store_true", help=quiet)


def _add_pairs(
    parser: Parser, flag: str, decode: Callable[[str], tuple[str, Any]], metavar: str, help_text: str
) -> None:
    parser.add_argument(flag, action=Pairs, default={}, type=decode, metavar=metavar, help=help_text)


class Tables(argparse._AppendAction):
    """Collects descriptions: text on the command line, and text or tables in a configuration file."""


class Pairs(argparse.Action):
    """Collects NAME=VALUE arguments in a dictionary."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        assert isinstance(values, tuple)
        setattr(namespace, self.dest, {**getattr(namespace, self.dest, {}), values[0]: values[1]})


def storage_option(text: str) -> tuple[str, Any]:
    """Return the name and the value of an option for fsspec: JSON if it is valid JSON, else text."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError("expected KEY=VALUE")  # without the text, which may be a secret
    try:
        found = json.loads(value)
    except ValueError as error:
        if value[:1] in ("{", "[", '"'):
            what, place = getattr(error, "msg", "invalid"), getattr(error, "colno", 1)
            raise argparse.ArgumentTypeError(
                f"the value of {key} starts like JSON, but at character {place}: {what}. "
                "Put text inside JSON in double quotes"
            ) from None
        return key, value
    # A key of digits is still a key, and 1e5 may be a password.
    return key, value if _TEXT.search(key) and isinstance(found, int | float) else found


def network_option(text: str) -> tuple[str, float]:
    """Return the name and the value of a setting of the network policy."""
    from h5zarr.io.network import NetworkPolicy

    name, _, value = text.partition("=")
    number = _number(value, is_size=_SIZE_NAME.search(name) is not None)
    _check_pair(NetworkPolicy, name, 1 if number is None else number)
    if number is None:
        raise argparse.ArgumentTypeError(f"{name}={value}: expected a number")
    return name, number


def _number(text: str, *, is_size: bool) -> float | None:
    try:
        return size(text) if is_size and text and not text.replace(".", "").isdecimal() else float(text)
    except ValueError:
        return None


def _check_pair(kind: type[NetworkPolicy] | type[Limits], name: str, value: float) -> None:
    """Raise ArgumentTypeError if there is no such setting, or not with this value; with a suggestion."""
    try:
        kind.from_mapping({name: value})  # type: ignore[dict-item]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}{suggestion(name, [field.name for field in fields(kind)])}") from None


def limit_option(text: str) -> tuple[str, int]:
    """Return the name and the value of a limit."""
    from h5zarr.limits import Limits

    name, _, value = text.partition("=")
    number = _number(value, is_size=_SIZE_NAME.search(name) is not None)
    _check_pair(Limits, name, 1 if number is None else int(number))
    if number is None or number != int(number):
        raise argparse.ArgumentTypeError(f"{name}={value}: expected a positive number")
    return name, int(number)


def positive(text: str) -> int:
    """Return a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _place(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("expected a directory")
    return text


def _at_least(least: int) -> Callable[[str], int]:
    def nbytes(text: str) -> int:
        if (found := size(text)) < least:
            raise argparse.ArgumentTypeError(f"{text!r}: expected at least {least} byte")
        return found

    return nbytes
