"""`h5zarr combine --update`: bring a cube up to date with its archive."""

from __future__ import annotations

import argparse
import sys

from h5zarr.cli.common import (
    DONE,
    DONE_WITH_PROBLEMS,
    NOTHING,
    complain_of,
    complain_of_output,
    phrase,
    read_list,
    tell,
)
from h5zarr.cli.options import OPENING, keywords
from h5zarr.cli.outputs import check_report, describe_failure, write_report

_UPDATING = ("on_misfit", "prune", "retry", "dry_run", "at_once", "branch", "message", "output_options", "allow")
_RECORDED = (
    "along",
    "merge",
    "on_duplicate",
    "constant",
    "attributes",
    "group",
    "include",
    "exclude",
    "max_inline_bytes",
)
_ONLY_UPDATING = ("on_misfit", "prune", "retry")


def add_updating(group: argparse._ArgumentGroup) -> None:
    """Add the options of an update."""
    group.add_argument(
        "--update",
        metavar="CUBE",
        help="bring CUBE up to date: add new files, read changed ones again. Without SOURCE, the sources from which it "
        "was made are used, with the options that are recorded in it",
    )
    group.add_argument("--prune", action="store_true", help="remove files from CUBE that have vanished")
    group.add_argument(
        "--on-misfit",
        choices=("skip", "new-regime", "fail"),
        default="skip",
        help="new files that do not fit: leave them out and record why (skip, the default), also accept those that are "
        "stored differently (new-regime), or stop (fail)",
    )
    group.add_argument("--retry", action="store_true", help="try files again that did not fit before")


def check_options(arguments: argparse.Namespace, usual: argparse.Namespace) -> bool:
    """Return whether the options go with --update, or with joining. Otherwise, say which does not."""
    is_update = arguments.update is not None
    for name in (*_RECORDED, "strict", "skip_broken", "overwrite") if is_update else _ONLY_UPDATING:
        if getattr(arguments, name, None) != getattr(usual, name, None):
            option = f"--{name.replace('_', '-')}"
            if not is_update:
                tell([f"h5zarr: {option} goes with --update CUBE"])
            elif name in _RECORDED:
                tell([f"h5zarr: {option} is recorded in the cube, so it is not given with --update"])
            else:
                tell([f"h5zarr: {option} does not go with --update"])
            return False
    return True


def update(arguments: argparse.Namespace) -> int:
    """Update a cube, and say what happened."""
    from h5zarr.cli.progress import CountLine
    from h5zarr.commands.update.update import update as run
    from h5zarr.commands.update.update_result import update_lines
    from h5zarr.display import readable
    from h5zarr.errors import H5ZarrError, NotJoinable, OutputError
    from h5zarr.io.location import Location

    if arguments.places and arguments.files_from is not None:
        tell(["h5zarr: give either sources or --files-from FILE"])
        return NOTHING
    cube = Location.parse(arguments.update)
    progress = CountLine("files", is_shown=sys.stderr.isatty() and not arguments.quiet)
    try:
        check_report(arguments, arguments.update, *arguments.places)
        sources = arguments.places if arguments.files_from is None else read_list(arguments.files_from)
        chosen = keywords(arguments, *_UPDATING, *OPENING)
        done = run(arguments.update, sources or None, on_file=progress.show, **chosen)
    except H5ZarrError as error:
        progress.wipe()
        write_report(arguments, describe_failure(cube, error))
        if isinstance(error, NotJoinable):
            tell([f"h5zarr: {readable(phrase(str(error)))}", f"  {readable(phrase(error.remedy))}"])
            return NOTHING
        return complain_of_output(error) if isinstance(error, OutputError) else complain_of(cube, error)
    progress.wipe()
    write_report(arguments, done.to_json())
    tell(update_lines(done, quiet=arguments.quiet, phrase=phrase))
    return DONE_WITH_PROBLEMS if done.problems else DONE
