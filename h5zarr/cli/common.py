"""What the commands share: exit codes, storage options, and how to write to people."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from h5zarr.errors import H5ZarrError, OutputError

if TYPE_CHECKING:
    from h5zarr.io.policy import ReadPolicy
    from h5zarr.limits import Limits

DONE, DONE_WITH_PROBLEMS, NOTHING = 0, 1, 2

# Storage options that are text whatever they look like.
_TEXT = re.compile(r"key|secret|token|passw|user|profile|project|account|credential|(?:^|_)id$", re.IGNORECASE)

EXIT_CODES = """\
exit codes:
  0  all done
  1  done, but some of the file could not be read or translated: see the problems at the end
  2  nothing could be done, or the command line is wrong
"""


def add_storage_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add the options of commands that open a URL."""
    parser.add_argument(
        "--storage-option",
        action="append",
        default=[],
        type=storage_option,
        metavar="KEY=VALUE",
        help="passed on to the file system of fsspec, such as anon=true, profile=research or "
        "endpoint_url=http://host:9000; VALUE is JSON if it can be, so that options may have parts: "
        """'client_kwargs={"region_name": "eu-west-1"}'; else it is text. May be repeated""",
    )
    parser.add_argument("--anon", action="store_true", help="read from the cloud without credentials")
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        type=policy_option,
        metavar="NAME=VALUE",
        help="how to read from far away, where the defaults do not fit: timeout_seconds=120, attempts=5, "
        "concurrency=16 and others. Latency and bandwidth are measured, unless they are given. May be repeated",
    )


def add_limits(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add the option of commands that read files of strangers."""
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        type=limit_option,
        metavar="NAME=NUMBER",
        help="what the input may take, where the defaults are too low or too high: depth, object_count, "
        "metadata_nbytes, file_count, chunk_nbytes, references_nbytes. May be repeated",
    )


def add_allow(parser: argparse.ArgumentParser | argparse._ArgumentGroup, what: str) -> None:
    """Add the option of commands that read other files which the input names."""
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        type=place_option,
        metavar="PLACE",
        help=f"{what} below PLACE, a directory as a path or URL; / is this whole machine. May be repeated",
    )


def source_limits(arguments: argparse.Namespace) -> Limits:
    """Return the limits that the user chose."""
    from h5zarr.limits import Limits

    return Limits(**dict(arguments.limit))


def limit_option(text: str) -> tuple[str, int]:
    """Return the name and the value of a limit."""
    from dataclasses import fields

    from h5zarr.limits import Limits

    name, _, value = text.partition("=")
    names = [field.name for field in fields(Limits)]
    if name not in names:
        raise argparse.ArgumentTypeError(f"there is no {name!r}; there are {', '.join(names)}")
    if not value.isdecimal() or not int(value):
        raise argparse.ArgumentTypeError(f"{name}={value}: a positive number is wanted")
    return name, int(value)


def place_option(text: str) -> str:
    """Return a place where files may be."""
    if not text:
        raise argparse.ArgumentTypeError("a directory is wanted")
    return text


def source_options(url: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the storage options for `url` that the user chose."""
    from h5zarr.io.anonymous import anonymous_options

    url = url.removeprefix("icechunk+")
    return {**(anonymous_options(url) if arguments.anon else {}), **dict(arguments.storage_option)}


def source_policy(arguments: argparse.Namespace) -> ReadPolicy | None:
    """Return the policy that the user chose; None where that is the usual one."""
    if not arguments.policy:
        return None
    from h5zarr.io.policy import ReadPolicy

    return ReadPolicy(**dict(arguments.policy))


def complain(url: str, message: str, remedy: str = "") -> int:
    """Write an error to stderr, without what may be secret in the URL, and return the exit code for it."""
    from h5zarr.inspect.escape import readable
    from h5zarr.io.url import display_url

    shown = display_url(url)
    message = message.removeprefix(f"{shown}:").strip()
    tell([f"h5zarr: {readable(shown)}: {readable(message)}", *([f"  {readable(remedy)}"] if remedy else [])])
    return NOTHING


def complain_of_source(url: str, error: H5ZarrError) -> int:
    """Write why a file cannot be read to stderr, and return the exit code: it may be references to one."""
    from h5zarr.read.references import are_references

    if not isinstance(error, OutputError) and are_references(url):
        remedy = 'Open them with engine="h5zarr" of xarray, or write them into another container with h5zarr convert.'
        return complain(url, "these are references, and not the file that they refer to", remedy)
    return complain(url, str(error), error.remedy)


def tell(lines: Iterable[str]) -> None:
    """Write lines to stderr."""
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.writelines(_encodable(lines, encoding))


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to stdout. What its encoding lacks is replaced: a report should not end at a letter."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.writelines(_encodable(lines, encoding))


def _encodable(lines: Iterable[str], encoding: str) -> Iterator[str]:
    for line in lines:
        yield line.encode(encoding, "replace").decode(encoding) + "\n"


def storage_option(text: str) -> tuple[str, Any]:
    """Return the name and the value of an option: JSON where it is some, else text."""
    import json

    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError("KEY=VALUE is wanted")  # what was given may be a secret
    try:
        found = json.loads(value)
    except ValueError as error:
        if value[:1] in ("{", "[", '"'):
            raise argparse.ArgumentTypeError(f"the value of {key} begins like JSON, but {_complaint(error)}") from None
        return key, value
    # A key of digits only is still a key, and 1e5 may be a password.
    return key, value if _TEXT.search(key) and isinstance(found, int | float) else found


def policy_option(text: str) -> tuple[str, float]:
    """Return the name and the value of a field of the policy."""
    from dataclasses import fields

    from h5zarr.io.policy import ReadPolicy

    name, _, value = text.partition("=")
    kinds = {field.name: int if field.type == "int" else float for field in fields(ReadPolicy)}
    if name not in kinds:
        raise argparse.ArgumentTypeError(f"there is no {name!r}; there are {', '.join(kinds)}")
    try:
        number = kinds[name](value)
        ReadPolicy(**{name: number})  # type: ignore[arg-type]  # each field has its own type
    except ValueError as error:
        what = str(error) if value and str(error).startswith(name) else f"{name}={value}: a number is wanted"
        raise argparse.ArgumentTypeError(what) from None
    return name, number


def _complaint(error: ValueError) -> str:
    """Return what a JSON parser complains of, without the text."""
    what, place = getattr(error, "msg", "is none"), getattr(error, "colno", 1)
    return f"at character {place}: {what}. Text in it stands in double quotes"


def positive(text: str) -> int:
    """Return a number that an option is given, which is at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)
