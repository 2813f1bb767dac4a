"""The command line: arguments, exit codes, and where output goes. Other modules write the messages.

Functions import the rest of the package when they are called, so that `h5zarr --help` is fast.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from h5zarr import __version__
from h5zarr.cli.check import add_check
from h5zarr.cli.common import DONE, EXIT_CODES, NOTHING
from h5zarr.cli.convert import add_convert
from h5zarr.cli.index import add_index
from h5zarr.cli.inspect import add_inspect
from h5zarr.cli.status import add_status
from h5zarr.cli.translate import add_translate
from h5zarr.cli.validate import add_validate
from h5zarr.cli.verify import add_verify

DESCRIPTION = "Read local and remote HDF5 and netCDF files as Zarr, without copying a byte."


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 all done, 1 done with problems, 2 nothing done."""
    parser = build_parser()
    try:
        arguments, unknown = parser.parse_known_args(argv)
        if hasattr(arguments, "places"):  # argparse ends their list at the first option
            arguments.places += [word for word in unknown if not word.startswith("-")]
            unknown = [word for word in unknown if word.startswith("-")]
        if unknown:
            parser.error(f"unrecognized arguments: {' '.join(map(_named, unknown))}")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else NOTHING
    try:
        code: int = arguments.command(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        return 130
    return code


def _named(word: str) -> str:
    """Return an unknown argument without what may be secret: the name of an option, dots for anything else."""
    return word.partition("=")[0] if word.startswith("-") else "..."


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; `arguments.command` is the function to call."""
    parser = argparse.ArgumentParser(
        prog="h5zarr",
        description=DESCRIPTION,
        epilog=f"h5zarr COMMAND --help shows examples.\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"h5zarr {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    add_translate(commands)
    add_convert(commands)
    add_inspect(commands)
    add_index(commands)
    add_status(commands)
    add_verify(commands)
    add_validate(commands)
    add_check(commands)
    return parser
