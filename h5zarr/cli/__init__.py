"""The command line: arguments, exit codes, and where output goes. Other modules write the messages.

Functions import the rest of the package when they are called, so that `h5zarr --help` is fast.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn, cast

from h5zarr import __version__
from h5zarr.cli.check import add_check
from h5zarr.cli.combine import add_combine
from h5zarr.cli.common import DONE, EXIT_CODES, NOTHING, discard
from h5zarr.cli.convert import add_convert
from h5zarr.cli.index import add_index
from h5zarr.cli.inspect import add_inspect
from h5zarr.cli.parsing import Parser
from h5zarr.cli.status import add_status
from h5zarr.cli.translate import add_translate
from h5zarr.cli.validate import add_validate
from h5zarr.cli.verify import add_verify

_INSTEAD = {
    "translate": "\nFor several files: h5zarr index SOURCE [SOURCE ...] OUT"
    "\nFor one dataset of several files: h5zarr combine SOURCE [SOURCE ...] OUT",
    "inspect": "\nFor one variable: h5zarr inspect SOURCE --path NAME",
}
DESCRIPTION = "Read local and remote HDF5 and netCDF files as Zarr, without copying a byte."


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 all done, 1 done with problems, 2 nothing done."""
    parser = build_parser()
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        parser.print_help(sys.stderr)
        return NOTHING
    try:
        if words and words[0].startswith("--") and not parser.knows(words[0]):
            parser.refuse_options([words[0].partition("=")[0]])  # argparse would only miss the command
        arguments, unknown = parser.parse_known_args(words)
        arguments.words = words[1:]  # what the user gives goes before what a configuration file says
        if hasattr(arguments, "places"):  # argparse ends their list at the first option
            arguments.places += [word for word in unknown if not word.startswith("-")]
            unknown = [word for word in unknown if word.startswith("-")]
        if unknown:
            _refuse(parser, arguments, unknown)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else NOTHING
    try:
        code: int = arguments.command(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)  # the reader has seen enough
        return DONE
    except KeyboardInterrupt:
        return 130
    except Exception:
        # Python would end with 1, which says that the command is done.
        sys.excepthook(*sys.exc_info())
        print("h5zarr: this is a bug in h5zarr. Please report it, with the lines above.", file=sys.stderr)
        return NOTHING
    return code


def _refuse(parser: argparse.ArgumentParser, arguments: argparse.Namespace, unknown: list[str]) -> NoReturn:
    """End with an error about arguments that the command does not take. Their values may be secret."""
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    name, own = next(
        (name, own) for name, own in commands.choices.items() if own.get_default("command") is arguments.command
    )
    assert isinstance(own, Parser)
    if options := [word.partition("=")[0] for word in unknown if word.startswith("-")]:
        own.refuse_options(options)
    takes = " and ".join(f"one {action.metavar}" for action in own._actions if not action.option_strings)
    more = f"{len(unknown)} more {'was' if len(unknown) == 1 else 'were'} given"
    own.error(f"{name} takes {takes}, but {more}{_INSTEAD.get(name, '')}")


def build_parser() -> Parser:
    """Return the parser of all commands; `arguments.command` is the function to call."""
    parser = Parser(
        prog="h5zarr",
        description=DESCRIPTION,
        epilog=f"h5zarr COMMAND --help shows examples.\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"h5zarr {__version__}")
    commands = cast(
        "argparse._SubParsersAction[argparse.ArgumentParser]",
        parser.add_subparsers(metavar="COMMAND", required=True),
    )
    add_translate(commands)
    add_convert(commands)
    add_combine(commands)
    add_inspect(commands)
    add_index(commands)
    add_status(commands)
    add_verify(commands)
    add_validate(commands)
    add_check(commands)
    return parser
