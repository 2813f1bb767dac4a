"""`h5zarr status`: summarise the catalog of an index."""

from __future__ import annotations

import argparse
import json

from h5zarr.cli.common import DONE, DONE_WITH_PROBLEMS, complain, phrase, require_index, write_lines
from h5zarr.cli.options import add_location, add_network, keywords

HELP = """\
Summarise the catalog of an index: how many sources are in each state, and which need attention, with the reasons.
"""
EXAMPLES = """\
examples:
  h5zarr status s3://refs/ocean/ --storage-options profile=research
  h5zarr status refs/ --all
  h5zarr status refs/ --json | jq .failed

states:
  indexed                the references are up to date
  indexed with problems  the same, but parts of the source are left out: the problems name them
  failed                 there are no references; the reason is shown
  stale                  the source could not be indexed again after a change: the references are outdated
  vanished               there are references, but the source is gone: `h5zarr index --prune` removes them

exit codes:
  0  all sources are indexed, with or without problems
  1  some sources are failed, stale or vanished
  2  there is no index, or it cannot be read
"""


def add_status(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `status` command."""
    parser = commands.add_parser(
        "status",
        usage="h5zarr status [OPTION ...] OUT",
        help="summarise the catalog of an index",
        description=HELP,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", metavar="OUT", help="the directory of an index, as a path or URL")
    add_location(parser)
    add_network(parser)
    parser.add_argument("--all", action="store_true", help="list every source that needs attention, and every reason")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.set_defaults(command=status)


def status(arguments: argparse.Namespace) -> int:
    """Print the summary, and return the exit code."""
    from h5zarr.errors import H5ZarrError
    from h5zarr.io.location import Location

    try:
        require_index((), arguments.out, str(Location.parse(arguments.out)), is_dask=False)
        from h5zarr.commands.status.status import status as run
        from h5zarr.commands.status.status import summary_lines

        summary = run(arguments.out, **keywords(arguments, "storage_options", "anon", "network"))
    except H5ZarrError as error:
        place, _, what = str(error).partition(": ")  # the directory, or a file in it
        return complain(place, what, error.remedy)
    if arguments.json:
        write_lines([json.dumps(summary.to_json(), indent=2)])
    else:
        lines = list(summary_lines(summary, show_all=arguments.all, phrase=phrase))
        is_short = lines != list(summary_lines(summary, show_all=True, phrase=phrase))
        write_lines([*lines, *(["", "--all shows everything."] if is_short else [])])
    return DONE if summary.is_good else DONE_WITH_PROBLEMS
