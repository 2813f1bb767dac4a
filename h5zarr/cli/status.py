"""`h5zarr status`: summarise the catalog of an index."""

from __future__ import annotations

import argparse
import json

from h5zarr.cli.common import DONE, DONE_WITH_PROBLEMS, complain, phrase, write_lines
from h5zarr.cli.options import add_location, keywords

HELP = """\
Summarise the catalog of an index: how many sources are indexed, and which are not, with the reasons.
"""
EXAMPLES = """\
examples:
  h5zarr status s3://refs/ocean/ --storage-options profile=research
  h5zarr status refs/ --json | jq .failed

status:
  indexed   the references are up to date
  failed    there are no references; the reason is shown
  stale     the source has changed and could not be read again: the references are outdated
  vanished  there are references, but the source is gone: `h5zarr index --prune` removes them

exit codes:
  0  all sources are indexed
  1  some sources are not indexed
  2  there is no index, or it cannot be read
"""


def add_status(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `status` command."""
    parser = commands.add_parser(
        "status",
        help="summarise the catalog of an index",
        description=HELP,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", metavar="OUT", help="the directory of an index, as a path or URL")
    add_location(parser)
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.set_defaults(command=status)


def status(arguments: argparse.Namespace) -> int:
    """Show what the catalog says."""
    from h5zarr.errors import H5ZarrError

    try:
        from h5zarr.commands.status.status import status as run
        from h5zarr.commands.status.status import summary_lines

        summary = run(arguments.out, **keywords(arguments, "storage_options", "anon"))
    except H5ZarrError as error:
        return complain(arguments.out, str(error), error.remedy)
    except ImportError as error:
        return complain(arguments.out, f"a package is missing: {error.name}", 'pip install "h5zarr[index]"')
    if arguments.json:
        write_lines([json.dumps(summary.to_json(), indent=2)])
    else:
        write_lines(summary_lines(summary, phrase=phrase))
    return DONE_WITH_PROBLEMS if summary.others else DONE
